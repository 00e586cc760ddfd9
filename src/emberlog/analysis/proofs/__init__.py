"""Proofs about aggregates inside recursion.

The way of a component:

    steps (what each rule computes from the values that it reads) -> flows (the properties that this needs)
    -> formulas and prover (Z3) -> conditions and invariants (what the data must meet) -> examine (verdicts)

What is refuted comes with facts that show it (`witness`), evaluated once more by `replay`. `ends` says what is known of
termination. Only `formulas`, `prover` and what stands after them need Z3, and they are loaded when a component has
aggregates.
"""
