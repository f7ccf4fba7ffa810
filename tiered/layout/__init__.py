"""Layouts: permutations of axes, how operators pass them, and where Transposes cost the least."""

from tiered.layout.channels import IMAGE_OPERATORS
from tiered.layout.conversion import place_transposes
from tiered.layout.report import LayoutReport, LeftTranspose, layout_report
from tiered.layout.strand import Sizes as LayoutSizes

__all__ = [
    "IMAGE_OPERATORS",
    "LayoutReport",
    "LayoutSizes",
    "LeftTranspose",
    "layout_report",
    "place_transposes",
]
