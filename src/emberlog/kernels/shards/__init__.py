"""Tables in shards, for rules that look up growing tables (`components.shards` says what they are).

keys       the key of a fact, where its shard is, and which row it has
directory  keys and their rows, in shards that workers fill side by side
vectors    facts by some of their columns: for each key, what is found lies side by side
relations  tables as facts, and as rows of sets
run        the rounds
"""
