"""Layouts: permutations of axes, how operators pass them, and where Transposes cost the least."""

from tiered.layout.conversion import place_transposes
from tiered.layout.region import Sizes as LayoutSizes

__all__ = ["LayoutSizes", "place_transposes"]
