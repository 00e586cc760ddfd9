"""Benchmarks of the kernel evaluator: `emberlog bench kernels`, run from a checkout.

`limits` has the loop that one would write by hand for each program, `rivals` what a user would pick in place of us,
`data` the data sets, `programs` the texts, `harness` the runs and the medians, `report` tables and plots.
"""
