------------------------------ MODULE Handoff ------------------------------
(***************************************************************************)
(* The queue of handed-off work, and receivers that stop, fall silent and  *)
(* come back.  The queue is durable, and an action is one transaction on   *)
(* it; what a receiver believes to have is in its memory only.             *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  Works,         \* what is handed off
  Receivers,
  AttemptsMax,   \* receivers that accept it before it fails
  FencesMax,     \* how often it may change hands, looked at or accepted; a bound of the model
  FaultsMax,     \* crashes, and leases lost by a receiver that does not know, together
  IsTimed,       \* FALSE: no deadline ever passes
  Defect         \* the rule left out; "none" for the real queue

VARIABLES
  queue,         \* [work -> state, holder, fence, attempts], durable
  told,          \* works whose maker was told that they are durable
  held,          \* [receiver -> <<work, fence>> it believes to have]
  lapsed,        \* works whose lease has run out
  over,          \* works whose deadline has passed
  faults,        \* how many there were
  ends,          \* history: [work -> how often it was ended]
  wrong          \* history: works taken from their holder, or changed by a former one

vars == <<queue, told, held, lapsed, over, faults, ends, wrong>>

Nobody == "nobody"
Ends   == {"completed", "failed", "rejected", "cancelled", "timeout"}

Holds(rule, condition) == Defect = rule \/ condition

IsQueued(w) == queue[w].state = "pending" /\ queue[w].holder = Nobody
IsReserved(w) == queue[w].state = "pending" /\ queue[w].holder \in Receivers /\ queue[w].fence > 0
IsHeld(w)   == queue[w].state \in {"accepted", "input_required"} /\ queue[w].holder \in Receivers /\ queue[w].fence > 0
IsEnded(w)  == queue[w].state \in Ends /\ queue[w].holder = Nobody
IsOpen(w)   == queue[w].state \notin Ends \cup {"none"}
IsTaken(w)  == queue[w].holder # Nobody

\* Whoever looks after the deadline writes down that it has passed, and nothing else happens any more.
CanGoOn(w) == Holds("final", IsOpen(w)) /\ queue[w].state # "none" /\ w \notin over

IsCurrent(r, w, f) == queue[w].holder = r /\ queue[w].fence = f

Init ==
  /\ queue = [w \in Works |-> [state |-> "none", holder |-> Nobody, fence |-> 0, attempts |-> 0]]
  /\ told = {} /\ lapsed = {} /\ over = {} /\ faults = 0 /\ wrong = {}
  /\ held = [r \in Receivers |-> {}]
  /\ ends = [w \in Works |-> 0]

------------------------------------------------------------------------------
(* Who hands off *)

\* A node that runs a tree again offers its work again: who waits for it then is nothing this specification speaks of.
Offer(w) ==
  /\ queue[w].state = "none" /\ w \notin over
  /\ queue' = [queue EXCEPT ![w].state = "pending"]
  /\ UNCHANGED <<told, held, lapsed, over, faults, ends, wrong>>

Acknowledge(w) ==
  /\ w \notin told /\ Holds("durable", queue[w].state # "none")
  /\ told' = told \cup {w}
  /\ UNCHANGED <<queue, held, lapsed, over, faults, ends, wrong>>

End(w, state) ==
  /\ queue' = [queue EXCEPT ![w].state = state, ![w].holder = Nobody]
  /\ ends' = [ends EXCEPT ![w] = @ + 1]
  /\ lapsed' = lapsed \ {w}

Cancel(w) == CanGoOn(w) /\ End(w, "cancelled") /\ UNCHANGED <<told, held, over, faults, wrong>>

Answer(w) ==
  /\ CanGoOn(w) /\ queue[w].state = "input_required"
  /\ queue' = [queue EXCEPT ![w].state = "accepted"]
  /\ UNCHANGED <<told, held, lapsed, over, faults, ends, wrong>>

------------------------------------------------------------------------------
(* Who receives *)

IsReservedBy(r, w) == IsReserved(w) /\ queue[w].holder = r

\* Keep it from others while it is looked at. The model leaves room for all who may accept it.
Reserve(r, w) ==
  /\ CanGoOn(w) /\ IsQueued(w) /\ queue[w].fence + AttemptsMax - queue[w].attempts < FencesMax
  /\ queue' = [queue EXCEPT ![w].holder = r, ![w].fence = @ + 1]
  /\ held' = [held EXCEPT ![r] = @ \cup {<<w, queue[w].fence + 1>>}]
  /\ UNCHANGED <<told, lapsed, over, faults, ends, wrong>>

\* What a receiver saw in the queue may be another's by now: it is compared in the transaction that takes it.
Accept(r, w) ==
  /\ CanGoOn(w) /\ IsOpen(w) /\ queue[w].attempts < AttemptsMax
  /\ Holds("compare", IsQueued(w) \/ IsReservedBy(r, w))
  /\ LET fence == queue[w].fence + IF IsReservedBy(r, w) THEN 0 ELSE 1
     IN /\ queue' = [queue EXCEPT ![w] = [state |-> "accepted", holder |-> r, fence |-> fence, attempts |-> @.attempts + 1]]
        /\ held' = [held EXCEPT ![r] = @ \cup {<<w, fence>>}]
  /\ lapsed' = lapsed \ {w}
  /\ wrong' = IF IsTaken(w) /\ ~IsReservedBy(r, w) THEN wrong \cup {w} ELSE wrong
  /\ UNCHANGED <<told, over, faults, ends>>

\* What a receiver does with what it believes to have: it counts if it is still its own.
Change(r, w, f) ==
  /\ <<w, f>> \in held[r] /\ CanGoOn(w) /\ Holds("holder", IsCurrent(r, w, f))
  /\ wrong' = IF IsCurrent(r, w, f) \/ ~IsOpen(w) THEN wrong ELSE wrong \cup {w}

LetGo(r, w, f) == held' = [held EXCEPT ![r] = @ \ {<<w, f>>}]

Ask(r, w, f) ==
  /\ Change(r, w, f) /\ queue[w].state = "accepted"
  /\ queue' = [queue EXCEPT ![w].state = "input_required"]
  /\ UNCHANGED <<told, held, lapsed, over, faults, ends>>

Finish(r, w, f, state) == Change(r, w, f) /\ LetGo(r, w, f) /\ End(w, state) /\ UNCHANGED <<told, over, faults>>

Complete(r, w, f) == queue[w].state # "pending" /\ Finish(r, w, f, "completed")
Fail(r, w, f)     == queue[w].state # "pending" /\ Finish(r, w, f, "failed")
Reject(r, w, f)   == queue[w].state = "pending" /\ Finish(r, w, f, "rejected")

\* Back into the queue for the next receiver, unless it has had too many. Looking at it does not count.
PutBack(w) ==
  IF queue[w].attempts >= AttemptsMax /\ queue[w].state # "pending"
  THEN End(w, "failed")
  ELSE /\ queue' = [queue EXCEPT ![w].state = IF Defect = "requeue" THEN @ ELSE "pending", ![w].holder = Nobody]
       /\ lapsed' = lapsed \ {w}
       /\ UNCHANGED ends

GiveBack(r, w, f) == Change(r, w, f) /\ LetGo(r, w, f) /\ IsTaken(w) /\ PutBack(w) /\ UNCHANGED <<told, over, faults>>

\* A receiver that was told no stops believing.
Learn(r, w, f) ==
  /\ <<w, f>> \in held[r] /\ ~IsCurrent(r, w, f)
  /\ LetGo(r, w, f)
  /\ UNCHANGED <<queue, told, lapsed, over, faults, ends, wrong>>

------------------------------------------------------------------------------
(* What goes wrong, and who notices *)

Crash(r) ==
  /\ faults < FaultsMax /\ held[r] # {}
  /\ held' = [held EXCEPT ![r] = {}]
  /\ faults' = faults + 1
  /\ UNCHANGED <<queue, told, lapsed, over, ends, wrong>>

IsForgotten(w) == IsTaken(w) /\ <<w, queue[w].fence>> \notin held[queue[w].holder]

\* Nobody renews what its receiver has forgotten; one that falls silent does not know that it has lost it.
Lapse(w) ==
  /\ IsTaken(w) /\ w \notin lapsed
  /\ IsForgotten(w) \/ faults < FaultsMax
  /\ lapsed' = lapsed \cup {w}
  /\ faults' = IF IsForgotten(w) THEN faults ELSE faults + 1
  /\ UNCHANGED <<queue, told, held, over, ends, wrong>>

Redeliver(w) ==
  /\ Defect # "redeliver" /\ CanGoOn(w) /\ w \in lapsed /\ IsTaken(w)
  /\ PutBack(w)
  /\ UNCHANGED <<told, held, over, faults, wrong>>

Pass(w) ==
  /\ IsTimed /\ w \notin over /\ queue[w].state # "none"
  /\ over' = over \cup {w}
  /\ UNCHANGED <<queue, told, held, lapsed, faults, ends, wrong>>

Expire(w) ==
  /\ Defect # "expire" /\ w \in over /\ IsOpen(w)
  /\ End(w, "timeout")
  /\ UNCHANGED <<told, held, over, faults, wrong>>

------------------------------------------------------------------------------

Do(r, w, f) ==
  Ask(r, w, f) \/ Complete(r, w, f) \/ Fail(r, w, f) \/ Reject(r, w, f) \/ GiveBack(r, w, f) \/ Learn(r, w, f)

Next ==
  \/ \E r \in Receivers : Crash(r)
  \/ \E w \in Works : Offer(w) \/ Acknowledge(w) \/ Cancel(w) \/ Answer(w) \/ Lapse(w) \/ Redeliver(w) \/ Pass(w) \/ Expire(w)
  \/ \E r \in Receivers, w \in Works : Reserve(r, w) \/ Accept(r, w) \/ \E f \in 1 .. FencesMax : Do(r, w, f)

\* Deadlines pass and are noticed; nobody need do any work.
Spec == Init /\ [][Next]_vars /\ \A w \in Works : WF_vars(Pass(w)) /\ WF_vars(Expire(w))

\* Receivers take work and end what they can, and leases of those that cannot run out; no deadline need pass.
DeliveringSpec ==
  /\ Init /\ [][Next]_vars
  /\ \A w \in Works :
       /\ WF_vars(Lapse(w) /\ IsForgotten(w)) /\ WF_vars(Redeliver(w))
       /\ WF_vars(\E r \in Receivers : Accept(r, w))
       /\ WF_vars(\E r \in Receivers, f \in 1 .. FencesMax : IsCurrent(r, w, f) /\ Complete(r, w, f))

------------------------------------------------------------------------------
(* What always holds *)

\* What its maker was told of is there: queued or looked at, held under a lease, or ended, once; and nobody else's word counted for it.
NoLostHandoff ==
  /\ \A w \in told : queue[w].state # "none"
  /\ \A w \in Works : queue[w].state = "none" \/ IsQueued(w) \/ IsReserved(w) \/ IsHeld(w) \/ IsEnded(w)
  /\ \A w \in Works : ends[w] <= 1
  /\ wrong = {}

EveryHandoffEnds == \A w \in Works : w \in told ~> IsEnded(w)

------------------------------------------------------------------------------
(* What happens, or nothing of this means anything *)

NeverRedelivered    == \A w \in Works : queue[w].attempts < 2 \/ queue[w].state # "completed"
NeverFormerReceiver == \A r \in Receivers : \A x \in held[r] : IsCurrent(r, x[1], x[2]) \/ ~IsTaken(x[1])
NeverDeadLettered   == \A w \in Works : queue[w].state # "failed" \/ queue[w].attempts < AttemptsMax \/ ends[w] = 0

=============================================================================
