"""DequantizeLinear as other operators: its scale may be trained."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.gradients.expression import Expr
from tiered.gradients.rule import Step, expansion


@expansion("DequantizeLinear")
def dequantize_linear(step: Step) -> Sequence[Expr | None]:
    """y = (x - zero_point) * scale, with one scale for the tensor or for each slice of an axis"""
    x, scale = step.x, step.operand(1)
    if int(step.node.attr("block_size", 0)):
        raise step.error("its scales are those of blocks")
    dtype = step.y.dtype
    number = x.cast(dtype)
    axes: Sequence[int] = ()
    if scale.rank == 1 and x.rank > 1:
        axis = int(step.node.attr("axis", 1)) % x.rank
        axes = [at for at in range(x.rank) if at != axis]
    if step.has(2):
        number = number - step.operand(2).cast(dtype).unsqueeze(axes)
    return (number * scale.cast(dtype).unsqueeze(axes),)
