"""Row-wise evaluation: components of binary relations over dense ids that have no pivot.

`program` says what is evaluated, as plain data; `evaluate.RowsRun` evaluates it. The other modules load the compiler
and are imported by `evaluate` only.
"""
