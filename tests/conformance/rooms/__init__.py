"""Random models through the rooms of the project: `python -m tests.conformance.rooms`.

A room takes a model and numbers to choose by, and returns what it makes of the model. The engine
compares the outputs of both on made inputs: with offsets, zeros, constant rows, scales over decades
and special values. What the room refuses, it refuses with an error of tiered.
"""
