"""Tables that take inserts and deletes in constant time, and the loops by which recursive facts follow them.

    layout      where the numbers of a table stand
    indexes     rows found by their key, or by the values of some columns
    tables      rows come and go, until a change is committed or undone
    facts       derivations are offered to facts; facts wait in the order of their values
    table       the arrays of a table, and how they grow

All of it is compiled once; `maintain.native` writes the loops that depend on rules.
"""
