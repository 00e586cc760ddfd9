"""Why a row holds, and why one does not: answers found backwards from the row in the relations of a finished run.

Nothing is recorded while a program runs. `questions` are plans that find the bodies of rules from rows of their heads,
many rows at a time; `lookups` has statements of the executor answer them; `cone` goes back from a row to those that it
rests on, and finds trees of smallest height there; `derivations` and `refusals` make the answers, which are `tree`s;
`show` prints them.
"""
