"""Demand: a program that derives only what is asked for (magic sets).

A goal, or a constant in a rule, binds some columns of a predicate. `tc` asked by its first column becomes two
predicates: `demand/tc/bf` has the values that are asked for, and `tc/bf` those rows of `tc` that have them. Rules of
`tc/bf` read `demand/tc/bf` first; where they read a derived predicate, another demand follows from what stands before
it. The result is an ordinary program.

    settings    what is known of the program, and which predicates may be restricted
    sideways    in which order a body hands on what is known, and what it then knows of each atom
    turns       rules of closures, turned so that the side that is asked for leads
    versions    the rules of a predicate that is asked for by some columns
    rewrite     all versions that a program needs, and the rules of their demand
    strata      the components of the new program; what may not go round in them
    transform   the pass, and why parts of a program are evaluated whole
"""
