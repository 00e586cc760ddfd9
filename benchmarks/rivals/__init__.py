"""What a user would pick in place of us.

Each rival is a module with `PROGRAMS`, what it can do, and `evaluate(program, inputs) -> Limit`: `build` is what it
makes of columns in memory before it can start, `seconds` the evaluation, with two threads where it has threads.
"""

THREADS = 2
