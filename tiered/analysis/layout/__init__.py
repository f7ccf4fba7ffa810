"""Minimum-cost layout assignment: the axis order of each operator that takes the least time."""
