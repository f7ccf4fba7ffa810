"""Minimum-cost layout assignment: the axis order of each operator that moves the fewest bytes."""
