"""Recursive components as loops read them: ids, pivots, nests, layouts. Values and what follows from them, no data."""
