"""Operators by their definitions: fused ones, quantised ones, and those of the standard."""
