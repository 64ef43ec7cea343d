------------------------------ MODULE Workflow ------------------------------
(* A join behind three branches, one of which waits for a person, on a node that may die at any moment.                              *)
(*                                                                                                                                   *)
(* Every branch ends: it arrives at the join, or it is skipped, which arrives as an edge that was not taken. An event is written     *)
(* before what follows from it is done; what was written survives the node, what was only in memory does not. The join fires once,   *)
(* whatever the order, and the run ends.                                                                                             *)
EXTENDS Naturals, FiniteSets

CONSTANTS Branches,   \* the branches before the join
          Asking,     \* the branch that waits for a person
          Needed,     \* how many taken edges the join needs; 0 means all of them
          Crashes,    \* how often the node may die
          Defect      \* a rule that is left out: "none", "skip", "refire" or "early"

VARIABLES journal,    \* what is written: for each branch "none", "taken" or "skipped"; and whether the person answered
          answered,
          memory,     \* what the node knows, which is the journal unless it is down
          up,         \* whether the node runs
          fired,      \* how often the node behind the join was started under an id of its own
          started,    \* whether that start is written
          ended,      \* whether the end of the run is written
          crashes

vars == <<journal, answered, memory, up, fired, started, ended, crashes>>

Init ==
  /\ journal = [b \in Branches |-> "none"]
  /\ answered = FALSE
  /\ memory = journal
  /\ up = TRUE
  /\ fired = 0
  /\ started = FALSE
  /\ ended = FALSE
  /\ crashes = 0

Taken(m) == Cardinality({b \in Branches : m[b] = "taken"})
Pending(m) == Cardinality({b \in Branches : m[b] = "none"})

\* The join as the planner has it: all taken ones once every edge is settled, or the first `Needed`.
Holds(m) ==
  IF Defect = "skip" THEN Taken(m) = Cardinality(Branches)  \* a skipped branch is waited for
  ELSE IF Needed = 0 THEN Pending(m) = 0 /\ Taken(m) > 0 ELSE Taken(m) >= Needed
Cannot(m) == IF Needed = 0 THEN Pending(m) = 0 /\ Taken(m) = 0 ELSE Taken(m) + Pending(m) < Needed

\* A branch ends. Its event is written, and the node knows it in the same step.
Arrive(b, how) ==
  /\ up /\ memory[b] = "none" /\ ~ended
  /\ b = Asking => answered \/ Defect = "early"
  /\ journal' = [journal EXCEPT ![b] = how]
  /\ memory' = journal'
  /\ UNCHANGED <<answered, up, fired, started, ended, crashes>>

\* A person answers; the answer is written by whatever process takes it, also while the node is down.
Answer ==
  /\ ~answered
  /\ answered' = TRUE
  /\ UNCHANGED <<journal, memory, up, fired, started, ended, crashes>>

\* The node behind the join is started. Its call has an id that every replay gives again: a second start under it does nothing.
Fire ==
  /\ up /\ Holds(memory) /\ ~started /\ ~ended
  /\ fired < 2
  /\ fired' = fired + 1
  /\ started' = (Defect # "refire" \/ fired = 1)  \* else the start is done before it is written
  /\ UNCHANGED <<journal, answered, memory, up, ended, crashes>>

End ==
  /\ up /\ ~ended
  /\ started \/ Cannot(memory)
  /\ ended' = TRUE
  /\ UNCHANGED <<journal, answered, memory, up, fired, started, crashes>>

Crash ==
  /\ up /\ crashes < Crashes
  /\ up' = FALSE
  /\ crashes' = crashes + 1
  /\ memory' = [b \in Branches |-> "none"]
  /\ UNCHANGED <<journal, answered, fired, started, ended>>

\* A node that opens the store folds the journal.
Restart ==
  /\ ~up
  /\ up' = TRUE
  /\ memory' = journal
  /\ UNCHANGED <<journal, answered, fired, started, ended, crashes>>

Next ==
  \/ \E b \in Branches : Arrive(b, "taken") \/ Arrive(b, "skipped")
  \/ Answer \/ Fire \/ End \/ Crash \/ Restart

Fairness ==
  /\ \A b \in Branches : WF_vars(Arrive(b, "taken") \/ Arrive(b, "skipped"))
  /\ WF_vars(Answer) /\ WF_vars(Fire) /\ WF_vars(End) /\ WF_vars(Restart)

Spec == Init /\ [][Next]_vars /\ Fairness

TypeOK ==
  /\ journal \in [Branches -> {"none", "taken", "skipped"}]
  /\ memory \in [Branches -> {"none", "taken", "skipped"}]
  /\ fired \in Nat

FiresOnce == fired <= 1
KnowsWhatIsWritten == up => memory = journal
NoEndWithoutReason == ended => started \/ Cannot(journal)
WaitsForThePerson == journal[Asking] # "none" => answered
NoEarlyFire == started => Holds(journal)
EveryRunEnds == <>ended
EveryJoinSettles == <>(started \/ Cannot(journal))
=============================================================================
