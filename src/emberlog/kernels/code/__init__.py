"""The loops of a component as Python source, which Numba compiles.

    source      what a source is; constants as names, arrays that come back
    terms       arguments of the function, terms, conditions
    arithmetic  numbers that notice when they leave 64 bits
    tables      slots, and how facts get into tables
    bodies      nests over indexes and tables
    changes     what a changed sum changes of others
    facts       what happens to a fact that is taken up
    loops       rounds over all tables; one fixpoint for each pivot
    buckets     rounds that settle small values first
    sums        rounds of sums that hand on changes, large ones first
    masks       fixpoints of many pivots at once
    states      rounds that replace their state

Each of the classes adds to the one before, from `Terms` to `Loops`; the last four are kinds of `Loops`.
"""
