"""The kernel evaluator: recursive components as native loops over dense ids.

`lower` decides whether a component is of this class and turns its rules into a `KernelProgram`; `pivots` and `nests`
decide how it is evaluated; `encode` turns rows into arrays and back. `evaluate` gives small work to the interpreter
(`columns`) and all else to `native`, whose loops `code` writes and `cache` compiles.
"""
