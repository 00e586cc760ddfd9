"""Workers that coordinate: each owns a part of a state, takes up what waits there, and sends on what others need.

Nothing here knows rules or programs. `part` says what a worker has, `peers` how it reaches the others, `worker` is its
loop, `modes` decide when it goes on and when it sends, `termination` tells the end. The loop is a generator that says
when it has worked or must wait: `threads` runs it for real, `simulated` under a clock of its own.
"""
