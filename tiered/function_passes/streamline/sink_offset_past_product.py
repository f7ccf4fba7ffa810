"""MatMul(x + c, w)  =>  MatMul(x, w) + MatMul(c, w), also of Conv without pads, and Sub"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tiered import (
    Constant,
    DataType,
    Graph,
    Node,
    Skip,
    Value,
    broadcasts_into,
    const,
    op,
    opt,
    rewrite,
)
from tiered.rewriter.idioms.elementwise.affine import OFFSET, varying_axis

_FLOATS: Final = (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16)

_w = const(name="w")


@rewrite(
    op.MatMul(OFFSET, _w) | op.MatMul(_w, OFFSET) | op.Conv(OFFSET, _w, opt.bias, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def sink_offset_past_product(
    graph: Graph, node: Node, step: Node, x: Value, c: Value, w: Constant, bias: Value | None
) -> Value | Skip:
    """Add after a product with a constant, what the product makes of the constant."""
    if c.dtype not in _FLOATS:
        return Skip("the addend is not a float of 16, 32 or 64 bits")
    if x.rank is None or not broadcasts_into(c.shape, x.shape):
        return Skip("the addend may change the shape of x")
    if node.op_type == "Conv":
        made = _after_convolution(node, x, c, w.const)
    else:
        made = _after_product(node, x, c, w)
    if isinstance(made, Skip):
        return made
    with np.errstate(over="ignore"):
        addend = made.astype(w.const.dtype)
    if not np.isfinite(addend).all():
        return Skip("the addend of the result is not finite")
    operands = [x if value is step.output else value for value in node.inputs]
    return graph.op.like(step, graph.op.like(node, *operands), graph.constant(addend, c.name))


def _after_product(node: Node, x: Value, c: Value, w: Constant) -> NDArray[np.float64] | Skip:
    assert c.const is not None
    if x.rank == 1 or w.const.ndim != 2:
        return Skip("x is a vector, or w is not a matrix")
    is_left = node.input(1) is w
    addend = c.const.astype(np.float64)
    addend = addend.reshape([1] * (2 - addend.ndim) + list(addend.shape))
    summed = w.const.shape[0 if is_left else 1]
    factor = w.const.astype(np.float64)
    if is_left:
        rows = np.broadcast_to(addend, (*addend.shape[:-1], summed))
        return np.asarray(rows @ factor)
    columns = np.broadcast_to(addend, (*addend.shape[:-2], summed, addend.shape[-1]))
    return np.asarray(factor @ columns)


def _after_convolution(
    node: Node, x: Value, c: Value, w: NDArray[np.generic]
) -> NDArray[np.float64] | Skip:
    """Return what a convolution makes of an addend of each channel, for each output channel."""
    assert c.const is not None
    if any(node.attr("pads", ())) or node.attr("auto_pad") not in ("NOTSET", "VALID"):
        return Skip("the pads of the convolution are zeros")
    axis = varying_axis(x, c.const)
    if isinstance(axis, Skip):
        return axis
    if axis not in (None, 1):
        return Skip("the addend varies along an axis that the kernel moves along")
    groups, (outputs, channels) = int(node.attr("group")), w.shape[:2]
    sums = w.astype(np.float64).reshape(outputs, channels, -1).sum(axis=2)
    addend = np.broadcast_to(c.const.astype(np.float64).ravel(), groups * channels)
    rows = np.repeat(addend.reshape(groups, channels), outputs // groups, axis=0)
    return np.asarray((sums * rows).sum(axis=1).reshape(-1, *[1] * (w.ndim - 2)))
