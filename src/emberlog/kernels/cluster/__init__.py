"""Workers that run together, as threads of this process or as the barrier tasks of one Spark job.

What they compute is not known here. `exchange` is how the workers of a run talk: `Alone`, `threads`, and `sockets`
with `wire`, its messages, and `meeting`, how workers find one another. `job.run_workers` starts workers inside Spark:
`probe` looks at what the cluster can do, `inputs` brings relations to the workers, `task` is what runs in a task,
`parts` writes results, `manifest` publishes them, and `returned` is what tasks yield.
"""
