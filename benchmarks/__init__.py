"""Measurements of tiered beside its peers, on the models of any folder."""
