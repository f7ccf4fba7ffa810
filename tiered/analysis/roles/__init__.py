"""Roles of values: epsilons, masks, indices, positions, ..., which decide what may be rounded."""
