"""The rules by operator, under `@axes_rule("Operator")`: what the axes have in common."""

from tiered.analysis.axes.axis_map import AXES as AXES, axes_rule as axes_rule, axis_map as axis_map
from tiered.analysis.axes.rules import (
    contrib_axes as contrib_axes,
    indexed_axes as indexed_axes,
    pointwise_axes as pointwise_axes,
    product_axes as product_axes,
    reduced_axes as reduced_axes,
    reshaped_axes as reshaped_axes,
    window_axes as window_axes,
)
