"""DequantizeLinear as other operators: its scale may be trained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, expansion


@expansion("DequantizeLinear", domain="com.microsoft")
@expansion("DequantizeLinear")
def dequantize_linear(step: Step) -> Sequence[Expr | None]:
    """y = (x - zero_point) * scale, with one scale for the tensor or for each slice of an axis"""
    x, scale = step.x, step.operand(1)
    dtype = step.y.dtype
    number = x.cast(dtype)
    axes: Sequence[int] = ()
    if scale.rank == 1 and x.rank > 1:
        axis = int(step.node.attr("axis", 1)) % x.rank
        axes = [at for at in range(x.rank) if at != axis]

    def spread(parameter: Expr) -> Expr:
        return _of_blocks(step, parameter.cast(dtype)).unsqueeze(axes)

    if step.has(2):
        number = number - spread(step.operand(2))
    return (number * spread(scale),)


def _of_blocks(step: Step, parameter: Expr) -> Expr:
    """Return a parameter for each element, if there is one for each block of an axis."""
    block = int(step.node.attr("block_size", 0))
    if not block:
        return parameter
    axis = int(step.node.attr("axis", 1)) % step.x.rank
    size = step.x.dim(axis).squeeze([0])
    places = step.x.call("Range", np.int64(0), size, np.int64(1)) / block
    return parameter.call("Gather", parameter, places, axis=axis)
