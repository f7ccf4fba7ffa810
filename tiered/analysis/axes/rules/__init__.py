"""The rules by operator, under `@axes_rule("Operator")`: what the axes have in common."""

from tiered.analysis.axes.axis_map import AXES as AXES, axes_rule as axes_rule, axis_map as axis_map
from tiered.analysis.axes.rules import (
    along as along,
    contrib as contrib,
    indexing as indexing,
    pointwise as pointwise,
    products as products,
    shapes as shapes,
    windows as windows,
)
