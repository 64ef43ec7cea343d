------------------------------- MODULE Comity -------------------------------
(***************************************************************************)
(* How calls between agents are admitted, run and ended, on several nodes  *)
(* that may stop, lose a lease without knowing it, and send messages that  *)
(* arrive late or twice.                                                   *)
(*                                                                         *)
(* The journal is the one thing everybody agrees on: an action is one      *)
(* atomic append to it, or changes only what is not durable.  Request ids  *)
(* are sequences: <<2>> is a root and <<2, 1>> the first call it makes in  *)
(* any of its lives, so a resumed call asks again under the same ids.      *)
(*                                                                         *)
(* Every rule has a name, and the constant Defect names the one that is    *)
(* left out ("none" for the real protocol).                                *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Agents, Nodes, Users,
  Ask,          \* [request id -> what is asked]: to (agents it may go to), user, depth, fanOut, calls, ms, effect
  Home,         \* [agent -> node that holds its lease at first]
  Places,       \* calls one agent runs at a time; 1 is a serial agent
  PendingMax,   \* calls that may wait for one agent
  Horizon,      \* the clock stops here
  FaultsMax,    \* crashes and lost leases together
  Mortal,       \* nodes that may crash
  Frail,        \* agents whose lease may be lost
  Patient,      \* TRUE: an agent answers only when all it asked for has ended
  Defect        \* the rule left out

VARIABLES
  now,          \* the clock
  journal,      \* [request id -> record], durable
  late,         \* requests with a Late record, durable
  lease,        \* [agent -> newest fencing token granted], durable
  lapsed,       \* agents whose lease ran out under a holder that does not know
  belief,       \* [node -> [agent -> token it thinks it holds; 0 for none]]
  down,         \* nodes that crashed; what is started again has a new name
  runs,         \* executions: call, node, token, number of calls asked, those of them denied when asked again, has it acted
  net,          \* messages on their way; results stay, so each may arrive late, twice or never
  world,        \* [request id -> how often its effect took place]
  faults,       \* how many there were
  ends,         \* history: [request id -> how often it was ended]
  tardy,        \* history: requests recorded as success after their deadline
  stale,        \* history: requests for which a write by a former holder took effect
  told          \* history: <<user, request>> answered though the request is another user's

ofJournal == <<journal, late, ends, tardy>>
ofLeases  == <<lease, lapsed, belief, down>>
vars == <<now, ofJournal, ofLeases, runs, net, world, faults, stale, told>>

------------------------------------------------------------------------------
(* Request ids *)

Requests == DOMAIN Ask
Tokens   == 1 .. (1 + FaultsMax)

IsRoot(r) == Len(r) = 1
Depth(r)  == Len(r) - 1
Parent(r) == SubSeq(r, 1, Len(r) - 1)
Last(r)   == r[Len(r)]

Above == [r \in Requests |-> {SubSeq(r, 1, i) : i \in 1 .. Len(r) - 1}]
Below == [r \in Requests |-> {x \in Requests : r \in Above[x]}]
Kids  == [r \in Requests |-> {x \in Below[r] : Len(x) = Len(r) + 1}]

------------------------------------------------------------------------------
(* Reading the state *)

Min(x, y) == IF x < y THEN x ELSE y

Holds(rule, condition)   == Defect = rule \/ condition
Refuses(rule, condition) == Defect # rule /\ condition

IsOpen(r)     == journal[r].status = "open"
IsAccepted(r) == journal[r].status \notin {"none", "refused"}
IsEnded(r)    == IsAccepted(r) /\ ~IsOpen(r)
Target(r)     == journal[r].to

Result(r, t) == [kind |-> "result", call |-> r, token |-> t]
Effect(r, t) == [kind |-> "effect", call |-> r, token |-> t]

IsCurrent(r, t) == t = lease[Target(r)]
LiveRuns(r)     == {e \in runs : e.call = r /\ IsCurrent(r, e.token)}
IsRunning(r)    == LiveRuns(r) # {}
HasRun(r, t)    == \E e \in runs : e.call = r /\ e.token = t
Run(r, t)       == CHOOSE e \in runs : e.call = r /\ e.token = t

HasAsked(e, c) == Last(c) <= e.asked /\ Last(c) \notin e.denied
WaitsFor(e)    == {c \in Kids[e.call] : HasAsked(e, c) /\ IsOpen(c)}
Awaited(r)     == UNION {WaitsFor(e) : e \in LiveRuns(r)}

\* What an earlier life asked for and this one has not asked yet is nobody's wish.
IsWanted(r)   == IsRoot(r) \/ \E e \in LiveRuns(Parent(r)) : HasAsked(e, r)
InProgress(a) == {r \in Requests : IsOpen(r) /\ Target(r) = a /\ (IsWanted(r) \/ IsRunning(r))}
Holders(a)    == {e.call : e \in {x \in runs : x.token = lease[a] /\ Target(x.call) = a /\ IsOpen(x.call)}}
IsFull(a)     == Cardinality(Holders(a)) >= Places

------------------------------------------------------------------------------
(* Admission: the rules in the order in which the first refusal wins *)

\* Calls that can be shown to end although `caller` never does. A running call is free when everything it waits for is; a
\* waiting one when it has a place or somebody who holds one is free.
RECURSIVE Freed(_, _)
Freed(caller, free) ==
  LET IsFree(c) == IF IsRunning(c) THEN c \in free ELSE ~IsFull(Target(c)) \/ Holders(Target(c)) \cap free # {}
      more == {r \in Requests \ (free \cup {caller}) : IsOpen(r) /\ IsRunning(r) /\ \A c \in Awaited(r) : IsFree(c)}
  IN  IF more = {} THEN free ELSE Freed(caller, free \cup more)

\* Would `caller` wait for ever if it waited for `c` at agent `a`?
ClosesLoop(caller, c, a) ==
  IF IsOpen(c) /\ IsRunning(c)
  THEN c \notin Freed(caller, {})
  ELSE IsFull(a) /\ Holders(a) \cap Freed(caller, {}) = {}

\* Calls charged to the account of r, without c itself.
Spent(r, c) == Cardinality({x \in ({r} \cup Below[r]) \ {c} : IsAccepted(x) /\ (Defect = "budget" => IsOpen(x))})

\* What a call gets: never more than the call that makes it has.
Narrowed(c) ==
  LET asked == [depth |-> Ask[c].depth, fanOut |-> Ask[c].fanOut, calls |-> Ask[c].calls]
      given == journal[Parent(c)].limits
  IN  IF IsRoot(c) \/ Defect = "narrow"
      THEN asked
      ELSE [field \in DOMAIN asked |-> Min(asked[field], given[field])]
Deadline(c) ==
  IF IsRoot(c) \/ Defect = "narrow" THEN now + Ask[c].ms ELSE Min(now + Ask[c].ms, journal[Parent(c)].deadline)
User(c) == IF IsRoot(c) \/ Defect = "isolation" THEN Ask[c].user ELSE journal[Parent(c)].user

WhyNotRoot(a) == IF Refuses("pending", Cardinality(InProgress(a)) >= Places + PendingMax) THEN "pending" ELSE ""

WhyNot(c, e, a) ==
  LET p == e.call
  IN  CASE Refuses("depth", Depth(c) > journal[p].limits.depth)                               -> "depth"
        [] Refuses("cycle", a \in {Target(x) : x \in Above[c]})                               -> "cycle"
        [] Refuses("waits", ClosesLoop(p, c, a))                                              -> "waits"
        [] Refuses("fan_out", Cardinality(WaitsFor(e)) >= journal[p].limits.fanOut)           -> "fan_out"
        [] Refuses("pending", Cardinality(InProgress(a) \ {c}) >= Places + PendingMax)        -> "pending"
        [] Deadline(c) <= now                                                                 -> "deadline"
        [] \E x \in Above[c] : Spent(x, c) >= journal[x].limits.calls                         -> "budget"
        [] OTHER                                                                              -> ""

Record(c, a) ==
  [status |-> "open", to |-> a, user |-> User(c), limits |-> Narrowed(c), deadline |-> Deadline(c), intent |-> 0]

\* Every durable write names the token of its writer, and takes effect only if that is the newest.
Fenced(r, t) ==
  /\ Holds("fence", IsCurrent(r, t))
  /\ stale' = IF IsCurrent(r, t) THEN stale ELSE stale \cup {r}

------------------------------------------------------------------------------
(* Opening calls *)

AcceptRoot(r) ==
  /\ IsRoot(r) /\ now + Ask[r].ms <= Horizon
  /\ Holds("dedupe", ~IsAccepted(r))
  /\ \E a \in Ask[r].to :
       /\ WhyNotRoot(a) = ""
       /\ journal' = [journal EXCEPT ![r] = Record(r, a)]
  /\ UNCHANGED <<now, late, ends, tardy, ofLeases, runs, net, world, faults, stale, told>>

RefuseRoot(r) ==
  /\ IsRoot(r) /\ journal[r].status = "none" /\ now + Ask[r].ms <= Horizon
  /\ \E a \in Ask[r].to :
       /\ WhyNotRoot(a) # ""
       /\ journal' = [journal EXCEPT ![r] = [status |-> "refused", why |-> WhyNotRoot(a)]]
  /\ UNCHANGED <<now, late, ends, tardy, ofLeases, runs, net, world, faults, stale, told>>

\* The same id again: its owner gets the first outcome and nothing runs, anybody else is refused.
Repeat(r, u) ==
  /\ IsRoot(r) /\ IsAccepted(r)
  /\ Holds("owner", journal[r].user = u)
  /\ told' = IF journal[r].user = u THEN told ELSE told \cup {<<u, r>>}
  /\ UNCHANGED <<now, ofJournal, ofLeases, runs, net, world, faults, stale>>

\* The run of c's parent that holds token t makes its next call, and c is that.
IsNext(c, t) ==
  /\ ~IsRoot(c)
  /\ HasRun(Parent(c), t)
  /\ IsOpen(Parent(c)) /\ Holds("fence", IsCurrent(Parent(c), t))
  /\ Run(Parent(c), t).asked + 1 = Last(c)

Asked(c, t, isDenied) ==
  LET e == Run(Parent(c), t)
  IN  runs' = (runs \ {e}) \cup {[e EXCEPT !.asked = @ + 1, !.denied = IF isDenied THEN @ \cup {Last(c)} ELSE @]}

AcceptCall(c, t) ==
  /\ IsNext(c, t) /\ journal[c].status = "none"
  /\ Fenced(Parent(c), t)
  /\ \E a \in Ask[c].to :
       /\ WhyNot(c, Run(Parent(c), t), a) = ""
       /\ journal' = [journal EXCEPT ![c] = Record(c, a)]
  /\ Asked(c, t, FALSE)
  /\ UNCHANGED <<now, late, ends, tardy, ofLeases, net, world, faults, told>>

RefuseCall(c, t) ==
  /\ IsNext(c, t) /\ journal[c].status = "none"
  /\ Fenced(Parent(c), t)
  /\ \E a \in Ask[c].to :
       /\ WhyNot(c, Run(Parent(c), t), a) # ""
       /\ journal' = [journal EXCEPT ![c] = [status |-> "refused", why |-> WhyNot(c, Run(Parent(c), t), a)]]
  /\ Asked(c, t, FALSE)
  /\ UNCHANGED <<now, late, ends, tardy, ofLeases, net, world, faults, told>>

\* An earlier life made this call, and it ended or was refused: the journal has the reply.
AnswerCall(c, t) ==
  /\ IsNext(c, t) /\ (IsEnded(c) \/ journal[c].status = "refused")
  /\ Asked(c, t, FALSE)
  /\ UNCHANGED <<now, ofJournal, ofLeases, net, world, faults, stale, told>>

\* An earlier life made this call and it is open: it is admitted again, or left to end with its caller.
TakeUpCall(c, t) ==
  /\ IsNext(c, t) /\ IsOpen(c)
  /\ Fenced(Parent(c), t)
  /\ LET isDenied == Refuses("take_up", WhyNot(c, Run(Parent(c), t), Target(c)) # "")
     IN  /\ Asked(c, t, isDenied)
         /\ journal' = IF isDenied THEN journal ELSE [journal EXCEPT ![c].deadline = Deadline(c)]
  /\ UNCHANGED <<now, late, ends, tardy, ofLeases, net, world, faults, told>>

------------------------------------------------------------------------------
(* Running calls *)

Start(r, n) ==
  /\ IsOpen(r) /\ IsWanted(r)
  /\ LET t == belief[n][Target(r)]
     IN  /\ IsCurrent(r, t) /\ ~HasRun(r, t)
         /\ Cardinality({e \in runs : e.token = t /\ Target(e.call) = Target(r)}) < Places
         /\ runs' = runs \cup {[call |-> r, node |-> n, token |-> t, asked |-> 0, denied |-> {}, acted |-> FALSE]}
  /\ UNCHANGED <<now, ofJournal, ofLeases, net, world, faults, stale, told>>

\* The intent is durable before anything is done, and names the run that will do it.
Intend(r, t) ==
  /\ HasRun(r, t) /\ IsOpen(r) /\ Ask[r].effect /\ journal[r].intent = 0
  /\ Fenced(r, t)
  /\ journal' = [journal EXCEPT ![r].intent = t]
  /\ UNCHANGED <<now, late, ends, tardy, ofLeases, runs, net, world, faults, told>>

\* The run acts, or what a run that is gone had sent arrives. Only the run that wrote the intent may: a later one cannot know
\* whether it happened, and does not risk it twice.
ApplyEffect(r, t) ==
  /\ Ask[r].effect /\ IsOpen(r)
  /\ \/ /\ HasRun(r, t) /\ ~Run(r, t).acted
        /\ runs' = (runs \ {Run(r, t)}) \cup {[Run(r, t) EXCEPT !.acted = TRUE]}
        /\ UNCHANGED net
     \/ /\ Effect(r, t) \in net
        /\ net' = net \ {Effect(r, t)}
        /\ UNCHANGED runs
  /\ Holds("intent", journal[r].intent # 0)
  /\ Holds("repeat", journal[r].intent \in {0, t})
  /\ Fenced(r, t)
  /\ world' = [world EXCEPT ![r] = Min(@ + 1, 2)]
  /\ UNCHANGED <<now, ofJournal, ofLeases, faults, told>>

------------------------------------------------------------------------------
(* Ending calls: a call and everything below it end in one append *)

\* Cancelling reaches the runs below at once, but for at most one that `stays` and goes on until it notices.
EndTree(r, status) ==
  LET ending == {r} \cup {x \in Below[r] : IsOpen(x) /\ Defect # "cascade"}
      running == {e \in runs : e.call \in ending /\ IsCurrent(e.call, e.token)}
      StatusOf(x) == IF x = r THEN status ELSE IF journal[x].deadline <= now THEN "timeout" ELSE "cancelled"
  IN  /\ journal' = [x \in Requests |-> IF x \in ending THEN [journal[x] EXCEPT !.status = StatusOf(x)] ELSE journal[x]]
      /\ ends' = [x \in Requests |-> IF x \in ending THEN Min(ends[x] + 1, 2) ELSE ends[x]]
      /\ \E stays \in {{}} \cup {{e} : e \in {x \in running : x.call # r \/ status # "success"}} :
           runs' = runs \ (running \ stays)

IsDone(e) == Patient => e.asked = Cardinality(Kids[e.call]) /\ WaitsFor(e) = {}

\* A result arrives: from the run, or once more as a message of one.
Settle(r, t) ==
  /\ Result(r, t) \in net \/ (HasRun(r, t) /\ IsDone(Run(r, t)))
  /\ Holds("once", IsOpen(r))
  /\ Holds("late", now < journal[r].deadline)
  /\ Fenced(r, t)
  /\ EndTree(r, "success")
  /\ net' = net \cup {Result(r, t)}
  /\ tardy' = IF now < journal[r].deadline THEN tardy ELSE tardy \cup {r}
  /\ UNCHANGED <<now, late, ofLeases, world, faults, told>>

\* A run that went on after its call had ended comes to its end: what it has is recorded and goes nowhere.
RecordLate(r, t) ==
  /\ HasRun(r, t) /\ IsEnded(r) /\ IsCurrent(r, t)
  /\ runs' = runs \ {Run(r, t)}
  /\ late' = late \cup {r}
  /\ UNCHANGED <<now, journal, ends, tardy, ofLeases, net, world, faults, stale, told>>

TimeOut(r) ==
  /\ IsOpen(r) /\ journal[r].deadline <= now /\ Defect # "timeout"
  /\ EndTree(r, "timeout")
  /\ UNCHANGED <<now, late, tardy, ofLeases, net, world, faults, stale, told>>

\* By its user, or by a caller that stops waiting.
Cancel(r) ==
  /\ IsOpen(r) /\ Ask[r].cancel
  /\ EndTree(r, "cancelled")
  /\ UNCHANGED <<now, late, tardy, ofLeases, net, world, faults, stale, told>>

\* After a crash: whoever finds an open root that it cannot take up ends it.
GiveUp(r) ==
  /\ IsRoot(r) /\ IsOpen(r) /\ ~IsRunning(r) /\ faults > 0 /\ Ask[r].cancel
  /\ EndTree(r, "error")
  /\ UNCHANGED <<now, late, tardy, ofLeases, net, world, faults, stale, told>>

------------------------------------------------------------------------------
(* Time, leases and crashes *)

Tick ==
  /\ now < Horizon
  /\ now' = now + 1
  /\ UNCHANGED <<ofJournal, ofLeases, runs, net, world, faults, stale, told>>

IsHeld(a) == \E n \in Nodes : belief[n][a] = lease[a]

\* The holder is paused or cut off: it goes on and knows nothing.
ExpireLease(a) ==
  /\ faults < FaultsMax /\ a \in Frail \ lapsed /\ IsHeld(a)
  /\ lapsed' = lapsed \cup {a}
  /\ faults' = faults + 1
  /\ UNCHANGED <<now, ofJournal, lease, belief, down, runs, net, world, stale, told>>

TakeLease(n, a) ==
  /\ a \in lapsed \/ ~IsHeld(a)
  /\ n \notin down /\ belief[n][a] # lease[a]
  /\ \E r \in InProgress(a) : TRUE
  /\ LET t == IF Defect = "token" THEN lease[a] ELSE lease[a] + 1
     IN  /\ lease' = [lease EXCEPT ![a] = t]
         /\ belief' = [belief EXCEPT ![n][a] = t]
  /\ lapsed' = lapsed \ {a}
  /\ UNCHANGED <<now, ofJournal, down, runs, net, world, faults, stale, told>>

\* Memory is gone; what one of the runs had just sent may still be on its way.
Crash(n) ==
  LET lost == {e \in runs : e.node = n}
      sent == {Result(e.call, e.token) : e \in {x \in lost : IsDone(x)}}
                \cup {Effect(e.call, e.token) : e \in {x \in lost : journal[x.call].intent = x.token /\ ~x.acted}}
  IN  /\ faults < FaultsMax /\ n \in Mortal \ down /\ Nodes # down \cup {n}
      /\ down' = down \cup {n}
      /\ runs' = runs \ lost
      /\ belief' = [belief EXCEPT ![n] = [a \in Agents |-> 0]]
      /\ faults' = faults + 1
      /\ \E arrives \in {{}} \cup {{m} : m \in sent} : net' = net \cup arrives
      /\ UNCHANGED <<now, ofJournal, lease, lapsed, world, stale, told>>

------------------------------------------------------------------------------

Init ==
  /\ now = 0
  /\ journal = [r \in Requests |-> [status |-> "none"]]
  /\ late = {} /\ tardy = {} /\ stale = {} /\ told = {}
  /\ ends = [r \in Requests |-> 0]
  /\ lease = [a \in Agents |-> 1] /\ lapsed = {} /\ down = {}
  /\ belief = [n \in Nodes |-> [a \in Agents |-> IF Home[a] = n THEN 1 ELSE 0]]
  /\ runs = {} /\ net = {} /\ faults = 0
  /\ world = [r \in Requests |-> 0]

\* The run of c's parent goes on to its next call.
Call(c, t) == AcceptCall(c, t) \/ RefuseCall(c, t) \/ AnswerCall(c, t) \/ TakeUpCall(c, t)

Step ==
  \/ \E r \in Requests : AcceptRoot(r) \/ RefuseRoot(r) \/ TimeOut(r) \/ Cancel(r) \/ GiveUp(r)
  \/ \E r \in Requests, u \in Users : Repeat(r, u)
  \/ \E r \in Requests, n \in Nodes : Start(r, n)
  \/ \E r \in Requests, t \in Tokens :
       \/ Call(r, t)
       \/ Intend(r, t) \/ ApplyEffect(r, t) \/ Settle(r, t) \/ RecordLate(r, t)
  \/ \E a \in Agents : ExpireLease(a)
  \/ \E n \in Nodes, a \in Agents : TakeLease(n, a)
  \/ \E n \in Nodes : Crash(n)

Next == Step \/ Tick

\* Time passes and somebody watches the deadlines. Nothing is asked of agents: they may hang for ever.
Spec == Init /\ [][Next]_vars /\ WF_vars(Tick) /\ \A r \in Requests : WF_vars(TimeOut(r))

\* Time stands still, so that no deadline helps; but agents that can go on do, and what they send arrives.
AnsweringSpec ==
  /\ Init /\ [][Step]_vars
  /\ \A r \in Requests, n \in Nodes : WF_vars(Start(r, n))
  /\ \A r \in Requests, t \in Tokens : WF_vars(Call(r, t)) /\ WF_vars(Settle(r, t)) /\ WF_vars(RecordLate(r, t))
  /\ \A a \in Agents : WF_vars(\E n \in Nodes : TakeLease(n, a))

------------------------------------------------------------------------------
(* What always holds *)

\* No set of calls in which each waits, directly or for a place, only for others of the set.
NoDeadlock ==
  LET blocked == {r \in Requests : IsOpen(r) /\ IF IsRunning(r) THEN Awaited(r) # {} ELSE IsWanted(r) /\ IsFull(Target(r))}
      WaitsWithin(r, S) == IF IsRunning(r) THEN Awaited(r) \cap S # {} ELSE Holders(Target(r)) \subseteq S
  IN  \A S \in SUBSET blocked : S # {} => \E r \in S : ~WaitsWithin(r, S)

NoCycle == \A r \in Requests : IsAccepted(r) => \A x \in Above[r] : Target(x) # Target(r)

\* At most one node can write for an agent, and nobody else ever did.
SingleActivation ==
  /\ stale = {}
  /\ \A a \in Agents : Cardinality({n \in Nodes : belief[n][a] = lease[a]}) <= 1

DepthBounded ==
  \A r \in Requests : IsAccepted(r) /\ ~IsRoot(r) => Depth(r) <= journal[Parent(r)].limits.depth

FanOutBounded ==
  \A r \in Requests : IsOpen(r) => Cardinality(Awaited(r)) <= journal[r].limits.fanOut

BoundedPendingCalls == \A a \in Agents : Cardinality(InProgress(a)) <= Places + PendingMax

LimitsOnlyShrink ==
  \A r \in Requests : IsAccepted(r) /\ ~IsRoot(r) =>
    LET p == Parent(r)
    IN  /\ journal[r].deadline <= journal[p].deadline
        /\ \A field \in DOMAIN journal[r].limits : journal[r].limits[field] <= journal[p].limits[field]

\* A tree never makes more calls than its root had, nor a part of it more than was left to that part, over all its lives.
BudgetConserved ==
  \A r \in Requests :
    IsAccepted(r) => Cardinality({x \in {r} \cup Below[r] : IsAccepted(x)}) <= journal[r].limits.calls

SettledOnce == \A r \in Requests : ends[r] <= 1 /\ (IsEnded(r) <=> ends[r] = 1)

NoLateSuccess == tardy = {} /\ \A r \in late : journal[r].status # "success"

EffectAtMostOnce == \A r \in Requests : world[r] <= 1

AuditPrecedesEffect == \A r \in Requests : world[r] > 0 => journal[r].intent # 0

\* Whatever runs is on record, and an ended call has nothing open below it.
AuditComplete ==
  /\ \A e \in runs : IsAccepted(e.call)
  /\ \A r \in Requests : IsEnded(r) => \A x \in Below[r] : ~IsOpen(x)
  /\ \A r \in Requests : IsAccepted(r) => \A x \in Above[r] : IsAccepted(x)

IsolationHolds ==
  /\ told = {}
  /\ \A r \in Requests : IsAccepted(r) => \A x \in Above[r] : journal[r].user = journal[x].user

------------------------------------------------------------------------------
(* What eventually happens *)

EveryCallEnds == \A r \in Requests : IsOpen(r) ~> ~IsOpen(r)

=============================================================================
