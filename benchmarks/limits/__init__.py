"""What one core can do: for each program of the table, the loop that one would write by hand.

Every module has `evaluate(inputs) -> Limit`: columns in, as they stand in the file, in any order; the answer out. Index
building is part of it and timed apart. Some modules have more than one way; `VARIANTS` says which.

    program         inputs                       order of work
    tc              arc(x, y)                    for each x a queue of nodes; or rows of bits (`tc_rows`)
    sg              arc(x, y)                    sparse rows, then rows of bits with half joins and transposition
    reach           arc(x, y)                    queue
    cc              arc(x, y)                    smallest label first: each node is settled once
    cc_undirected   arc(x, y)                    the same over both directions; or union-find (`cc_union`)
    sssp            warc(x, y, d)                buckets of distances
    pagerank        arc(x, y)                    rounds that gather over the edges into a node
    apsp            warc(x, y, d)                for each x buckets (linear); middle node by middle node (non-linear)
    delivery        assbl(p, s), basic(p, d)     largest value first: each part is settled once
    andersen        address, assign, load, store rows of bits in hashed words, worklist of variables
"""
