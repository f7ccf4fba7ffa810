"""Layouts: permutations of axes, how operators pass them, and where Transposes cost the least."""
