"""Analyses of a whole graph that passes ask, and the searches on top of them."""
