"""The kernel evaluator: recursive components as native loops over dense ids.

`lower` decides whether a component is of this class and turns its rules into a `KernelProgram`; `pivots`, `split` and
`nests` decide how it is evaluated; `encode` turns rows into arrays and back; `source` writes the loops and `cache`
compiles them; `evaluate` runs them.
"""
