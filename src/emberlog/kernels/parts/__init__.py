"""Components that workers share out: each has a part of every table, evaluated over NumPy columns.

`components.shares` plans it, `part` is a worker's share, `parcels` are the facts between them, `build` divides the
inputs, `evaluate` runs it on threads.
"""
