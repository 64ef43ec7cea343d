------------------------------ MODULE Breaker ------------------------------
(***************************************************************************)
(* The circuit breaker of one capability, and the calls that pass it.      *)
(***************************************************************************)
EXTENDS Integers

CONSTANTS
  Callers,       \* each has at most one call under way
  FailuresMax,   \* consecutive failures that open it
  Probes,        \* successes that close it again
  Defect         \* the rule left out; "none" for the real breaker

VARIABLES
  state,         \* closed, open or half_open
  failures,      \* consecutive, while closed
  hasCooled,     \* while open: its time has gone
  probing,       \* probes under way, while half-open
  passed,        \* probes that succeeded, while half-open
  calls          \* [caller -> none, plain or probe]

vars == <<state, failures, hasCooled, probing, passed, calls>>

CanPass ==
  \/ state = "closed"
  \/ state = "open" /\ hasCooled
  \/ state = "half_open" /\ probing + passed < Probes

Max0(x) == IF x < 0 THEN 0 ELSE x

Init ==
  /\ state = "closed" /\ failures = 0 /\ hasCooled = FALSE /\ probing = 0 /\ passed = 0
  /\ calls = [c \in Callers |-> "none"]

Enter(c) ==
  /\ calls[c] = "none" /\ CanPass
  /\ IF state = "closed"
     THEN calls' = [calls EXCEPT ![c] = "plain"] /\ UNCHANGED <<state, failures, hasCooled, probing, passed>>
     ELSE /\ calls' = [calls EXCEPT ![c] = "probe"]
          /\ state' = "half_open"
          /\ probing' = (IF state = "open" THEN 0 ELSE probing) + 1
          /\ passed' = IF state = "open" THEN 0 ELSE passed
          /\ hasCooled' = FALSE
          /\ UNCHANGED failures

Leave(c) == calls[c] # "none" /\ calls' = [calls EXCEPT ![c] = "none"]

IsProbe(c) == calls[c] = "probe" /\ state = "half_open"

Open == state' = "open" /\ failures' = 0 /\ hasCooled' = FALSE /\ probing' = 0 /\ passed' = 0

Succeed(c) ==
  /\ Leave(c)
  /\ CASE state = "closed"                  -> failures' = 0 /\ UNCHANGED <<state, hasCooled, probing, passed>>
       [] IsProbe(c) /\ passed + 1 < Probes ->
            passed' = passed + 1 /\ probing' = Max0(probing - 1) /\ UNCHANGED <<state, failures, hasCooled>>
       [] IsProbe(c) /\ passed + 1 >= Probes ->
            state' = "closed" /\ failures' = 0 /\ probing' = 0 /\ passed' = 0 /\ UNCHANGED hasCooled
       [] OTHER -> UNCHANGED <<state, failures, hasCooled, probing, passed>>

Fail(c) ==
  /\ Leave(c)
  /\ CASE state = "closed" /\ failures + 1 < FailuresMax ->
            failures' = failures + 1 /\ UNCHANGED <<state, hasCooled, probing, passed>>
       [] state = "closed" /\ failures + 1 >= FailuresMax -> Open
       [] IsProbe(c) -> Open
       [] OTHER -> UNCHANGED <<state, failures, hasCooled, probing, passed>>

Trip(c) == Leave(c) /\ Open

\* Cancelled or refused further on: says nothing about the capability, and gives its place back.
Release(c) ==
  /\ Leave(c)
  /\ probing' = IF IsProbe(c) /\ Defect # "release" THEN Max0(probing - 1) ELSE probing
  /\ UNCHANGED <<state, failures, hasCooled, passed>>

CoolDown ==
  /\ state = "open" /\ ~hasCooled
  /\ hasCooled' = TRUE
  /\ UNCHANGED <<state, failures, probing, passed, calls>>

End(c) == Succeed(c) \/ Fail(c) \/ Trip(c) \/ Release(c)

Next == CoolDown \/ \E c \in Callers : Enter(c) \/ End(c)

\* Time passes, callers keep asking, and every call ends.
Spec == Init /\ [][Next]_vars /\ WF_vars(CoolDown) /\ \A c \in Callers : WF_vars(Enter(c)) /\ WF_vars(End(c))

------------------------------------------------------------------------------

\* Whoever is turned away is not turned away for ever, and an open breaker is tried again.
BreakerEventuallyProbes ==
  /\ ~CanPass ~> CanPass
  /\ state = "open" ~> state = "half_open"

=============================================================================
