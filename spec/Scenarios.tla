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
  @@ (<<2>>          :> [To({"b"}) EXCEPT !.user = "u2", !.cancel = TRUE])
  @@ (<<2, 1>>       :> [To({"a"}) EXCEPT !.user = "u2"])

\* Root 1 asks several agents at once and more than it may: too many in parallel, too many in all, too deep, in a circle, wider
\* than its own limits and in another user's name. Root 2 competes for one of its agents.
Wide ==
     (<<1>>       :> [To({"a"}) EXCEPT !.calls = 4])
  @@ (<<1, 1>>    :> [To({"b"}) EXCEPT !.user = "u2", !.depth = 1])
  @@ (<<1, 1, 1>> :> To({"c"}))
  @@ (<<1, 2>>    :> [To({"c"}) EXCEPT !.calls = 9, !.cancel = TRUE])
  @@ (<<1, 2, 1>> :> To({"b"}))
  @@ (<<1, 3>>    :> To({"a", "c"}))
  @@ (<<2>>       :> [To({"c"}) EXCEPT !.user = "u2"])

\* The crossing alone.
Crossing ==
     (<<1>>       :> To({"a"}))
  @@ (<<1, 1>>    :> To({"b"}))
  @@ (<<1, 1, 1>> :> To({"c"}))
  @@ (<<2>>       :> To({"b"}))
  @@ (<<2, 1>>    :> To({"a"}))

\* Deep, with a parallel call.
Large == Deep @@ (<<1, 2>> :> To({"c"}))

Homes == [a \in Agents |-> IF a \in {"a", "c"} THEN "n1" ELSE "n2"]

=============================================================================
