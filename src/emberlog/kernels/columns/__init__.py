"""The interpreter of the kernels: a component evaluated by NumPy operators over whole columns, without a compiler.

It follows the same nests as the compiled loops, one step for all bindings at a time. `joins` finds rows by their
columns, `terms` computes, `facts` keeps the tables, `rounds` runs the nests. Small work is done before a compiler
would have been loaded; what turns out to be more is handed over (`Overworked`).
"""
