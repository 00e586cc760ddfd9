"""Recursive components of numbers and ids, maintained by compiled loops over columns.

    encoding    values as words of 64 bits, with dictionaries that grow
    place       the rows of a relation in a table of the kernels
    shapes      which rules loops can follow, and the tables that they need
    nests       a nest as the text of a compiled function
    driver      the text of the loop that takes a change from its rows to all facts
    facts       the method: runs the loops, makes room, tells what happened

`recursion.py` does the same over sets of tuples, for all types of values; there is the idea.
"""
