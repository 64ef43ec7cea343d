----------------------------- MODULE Scenarios -----------------------------
(* Small worlds for the checker: who asks whom, with which limits. *)
EXTENDS Comity, TLC

To(agents) ==
  [to |-> agents, user |-> "u1", depth |-> 3, fanOut |-> 2, calls |-> 5, ms |-> 1, effect |-> FALSE, cancel |-> FALSE]

\* Root 1 goes three hops deep, and the last of them acts on the world. Root 2 holds the agent that root 1 asks first, and asks
\* for the one that root 1 holds.
Deep ==
     (<<1>>          :> To({"a"}))
  @@ (<<1, 1>>       :> To({"b"}))
  @@ (<<1, 1, 1>>    :> To({"c"}))
  @@ (<<1, 1, 1, 1>> :> [To({"d"}) EXCEPT !.effect = TRUE])
  @@ (<<2>>          :> [To({"b"}) EXCEPT !.user = "u2"])
  @@ (<<2, 1>>       :> [To({"a"}) EXCEPT !.user = "u2"])

\* One root asks several agents at once and more than it may: too many in parallel, too many in all, too deep, in a circle,
\* wider than its own limits, longer than its own time and in another user's name.
Wide ==
     (<<1>>       :> [To({"a"}) EXCEPT !.calls = 4, !.ms = 2])
  @@ (<<1, 1>>    :> [To({"b"}) EXCEPT !.user = "u2", !.depth = 1])
  @@ (<<1, 1, 1>> :> To({"c"}))
  @@ (<<1, 2>>    :> [To({"c"}) EXCEPT !.calls = 9, !.ms = 9])
  @@ (<<1, 2, 1>> :> To({"b"}))
  @@ (<<1, 3>>    :> To({"a", "b"}))

\* The crossing alone; a caller may stop waiting, and a user may cancel.
Crossing ==
     (<<1>>    :> To({"a"}))
  @@ (<<1, 1>> :> [To({"b"}) EXCEPT !.cancel = TRUE])
  @@ (<<2>>    :> [To({"b"}) EXCEPT !.cancel = TRUE])
  @@ (<<2, 1>> :> To({"a"}))

\* The crossing one hop deeper; nothing is cancelled, so that it is the answers that end it.
Answering ==
     (<<1>>       :> To({"a"}))
  @@ (<<1, 1>>    :> To({"b"}))
  @@ (<<1, 1, 1>> :> To({"c"}))
  @@ (<<2>>       :> To({"b"}))
  @@ (<<2, 1>>    :> To({"a"}))

\* Deep, with a parallel call.
Large == Deep @@ (<<1, 2>> :> To({"c"}))

Homes == [a \in Agents |-> IF a \in {"a", "c"} THEN "n1" ELSE "n2"]

------------------------------------------------------------------------------
(* What must be reachable. Each stands negated in a configuration of its own, which the checker has to refute with a trace. *)

IsRefused(why) == \E r \in Requests : journal[r].status = "refused" /\ journal[r].why = why

Nested == \E r \in Requests : Depth(r) = 3 /\ IsRunning(r) /\ \A x \in Above[r] : IsRunning(x)

Parallel == \E r \in Requests : Cardinality({c \in Kids[r] : IsRunning(c)}) > 1

\* Two roots hold an agent each, one waits for the other's, and the call that would close the loop is refused.
CrossRootRefused ==
  /\ IsRefused("waits")
  /\ \E r \in Requests : IsOpen(r) /\ ~IsRunning(r) /\ IsFull(Target(r))
  /\ Cardinality({r \in Requests : IsRoot(r) /\ IsRunning(r)}) > 1

\* A former holder has a result while a new holder runs the same call.
Zombie == \E e \in runs : IsOpen(e.call) /\ ~IsCurrent(e.call, e.token) /\ IsDone(e) /\ IsRunning(e.call)

\* A call in its second life is about to ask for what its first life already got.
Resumed == \E e \in runs : e.token > 1 /\ e.asked = 0 /\ \E c \in Kids[e.call] : Last(c) = 1 /\ journal[c].status = "success"

\* What was open in the first life cannot be taken up again, and not for want of time.
Denied == \E e \in runs : e.denied # {} /\ journal[e.call].deadline > now

\* The node is gone and its result is still on the way.
InFlight == \E m \in net : m.kind = "result" /\ IsOpen(m.call) /\ ~HasRun(m.call, m.token)

LateResult == late # {}

NeverNested            == ~Nested
NeverParallel          == ~Parallel
NeverCrossRootRefused  == ~CrossRootRefused
NeverZombie            == ~Zombie
NeverResumed           == ~Resumed
NeverDenied            == ~Denied
NeverInFlight          == ~InFlight
NeverLateResult        == ~LateResult
NeverRefusedDepth      == ~IsRefused("depth")
NeverRefusedCycle      == ~IsRefused("cycle")
NeverRefusedFanOut     == ~IsRefused("fan_out")
NeverRefusedPending    == ~IsRefused("pending")
NeverRefusedDeadline   == ~IsRefused("deadline")
NeverRefusedBudget     == ~IsRefused("budget")

=============================================================================
