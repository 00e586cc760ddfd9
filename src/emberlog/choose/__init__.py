"""How each stratum is evaluated: choices as values, made from the program (`choose`) and from its inputs (`refine`).

`wishes` is what the user asked for, `ways` how loops evaluate a component, `placement` where a stratum over Spark's
tables runs. Nothing here reads data: what is known of inputs comes as numbers.
"""
