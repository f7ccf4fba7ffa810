"""Variants of the models that the tests of the passes have: see `changes` and `recorded`."""
