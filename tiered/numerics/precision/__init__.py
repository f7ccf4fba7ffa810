"""Precision: which values are computed in a narrower dtype, and the Casts between the two."""
