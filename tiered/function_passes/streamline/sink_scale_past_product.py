"""MatMul(x * c, w)  =>  MatMul(x, w) * c, also of Conv, and Div"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.elementwise.affine import SCALE, placed, varying_axis, why_no_factor


@rewrite(
    op.MatMul(SCALE, var.w) | op.MatMul(var.w, SCALE) | op.Conv(SCALE, var.w, opt.bias, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def sink_scale_past_product(
    graph: Graph, node: Node, step: Node, x: Value, c: Value, w: Value, bias: Value | None
) -> Value | Skip:
    """Scale the result, so that the product is one of integers if x and w are.

    Factors along the axis that is summed over stay: `forward_fold_scale_axis` has them in w.
    """
    if reason := why_no_factor(c):
        return reason
    if bias is not None:
        return Skip("the convolution has a bias")
    if not _is_weight(w):
        return Skip("both operands are computed at run time")
    assert c.const is not None
    axis = varying_axis(x, c.const)
    if isinstance(axis, Skip):
        return axis
    if axis is None:
        factors: Value | Skip = placed(graph, c, None, None)
    elif node.op_type == "Conv":
        factors = _after_convolution(graph, node, x, w, c, axis)
    else:
        factors = _after_product(node, x, w, c, axis)
    if isinstance(factors, Skip):
        return factors
    operands = [x if value is step.output else value for value in node.inputs]
    return graph.op.like(step, graph.op.like(node, *operands), factors)


def _is_weight(w: Value) -> bool:
    """Return whether a value is a constant, or one that a node quantises."""
    if w.is_constant:
        return True
    node = w.producer
    return node is not None and all(value is None or value.is_constant for value in node.inputs)


def _after_product(node: Node, x: Value, w: Value, c: Value, axis: int) -> Value | Skip:
    """Return the factors along the axis of the result, from the right the same as in x."""
    if x.rank is None or x.rank < 2 or w.rank is None or w.rank < 2:
        return Skip("an operand may be a vector")
    summed = x.rank - (1 if node.input(1) is w else 2)
    return Skip("the factors vary along the summed axis") if axis == summed else c


def _after_convolution(
    graph: Graph, node: Node, x: Value, w: Value, c: Value, axis: int
) -> Value | Skip:
    """Return the factors of images or, of a depthwise convolution, of its output channels."""
    if axis == 0:
        return c
    channels, outputs = x.dim(1), w.dim(0)
    if axis != 1 or node.attr("group") != channels or not isinstance(outputs, int):
        return Skip("the factors vary along an axis that Conv sums over")
    assert c.const is not None
    assert x.rank is not None
    assert isinstance(channels, int)
    repeated = np.repeat(c.const.ravel(), outputs // channels)
    return graph.constant(repeated.reshape(-1, *[1] * (x.rank - 2)), c.name)
