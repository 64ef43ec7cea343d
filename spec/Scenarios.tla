----------------------------- MODULE Scenarios -----------------------------
(* Small worlds for the checker: who asks whom, with which limits. *)
EXTENDS Comity, TLC

Call(to) == [to |-> to, user |-> "u1", depth |-> 3, fanOut |-> 2, calls |-> 5, ms |-> 1, effect |-> FALSE, cancel |-> FALSE]

\* Root 1 goes three hops deep and asks two agents in parallel; root 2 holds the agent that root 1 wants and wants the one that
\* root 1 holds.
SmallAsk ==
     (<<1>>          :> Call({"a"}))
  @@ (<<1, 1>>       :> Call({"b"}))
  @@ (<<1, 1, 1>>    :> Call({"c"}))
  @@ (<<1, 1, 1, 1>> :> [Call({"d"}) EXCEPT !.effect = TRUE])
  @@ (<<1, 2>>       :> Call({"c"}))
  @@ (<<2>>          :> [Call({"b"}) EXCEPT !.user = "u2"])
  @@ (<<2, 1>>       :> Call({"a"}))

SmallHome == ("a" :> "n1") @@ ("b" :> "n2") @@ ("c" :> "n1") @@ ("d" :> "n2")

=============================================================================
