"""Notebooks: cells of rules, over the tables of the notebook."""
