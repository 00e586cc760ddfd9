"""Schedulers for incremental maintenance, and a simulator to compare them.

After "A Scheduling Approach to Incremental Maintenance of Datalog Programs" (Singh et al.): a change activates some
nodes of a graph of tasks, a task runs when no active, unfinished node is its ancestor, and most descendants never
run. `interface` is what drivers need. `graph` and `intervals` are what is computed once for a graph; `finders` has
the ready queue, `level`, `logicblox` and `signals` the ways to fill it, `meta` the two of them inside a budget.
`trace` is a change that was recorded or generated (`files`, `shapes`, `examples`, `durations`), `simulate` replays it
on P processors, and `tables` compares. Nothing here knows what a task does.
"""
