"""MultiThreshold(x * c, t)  =>  MultiThreshold(x, t / c), also of Div, Add and Sub"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, rewrite, var
from tiered.function_passes.streamline._monotone import least_reaching
from tiered.rewriter.idioms.elementwise.affine import STEP, varying_axis
from tiered.rewriter.idioms.qonnx_bodies import DOMAINS, channel_axis, form_of

_operands = (STEP, var.thresholds)


@rewrite(
    op(DOMAINS[0]).MultiThreshold(*_operands, attrs=...)
    | op(DOMAINS[1]).MultiThreshold(*_operands, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
)
def fuse_affine_into_threshold(
    graph: Graph, node: Node, step: Node, x: Value, c: Value, thresholds: Value
) -> Value | Skip:
    """Compare with the least number whose step reaches the threshold.

    The step keeps the order of numbers after rounding, so that all counts are equal. The sign of a
    negative factor goes to x.
    """
    form = form_of(node)
    if isinstance(form, Skip):
        return form
    if graph.model.function(node.domain, "MultiThreshold") is not None:
        return Skip("the model defines MultiThreshold")
    if thresholds.const is None:
        return Skip("the thresholds are not constant")
    assert c.const is not None
    is_scale, array = step.op_type in ("Div", "Mul"), c.const
    if not np.isfinite(array).all() or (is_scale and not array.all()):
        return Skip("the step does not keep the order of numbers")
    axis = varying_axis(x, array)
    if isinstance(axis, Skip):
        return axis
    if axis is not None and axis != channel_axis(form.mode, x.rank):
        return Skip("the constant does not vary along the channels")
    column = array.reshape(-1, 1)
    if is_scale and (array < 0).any():
        if (array > 0).any():
            return Skip("the factors have both signs")
        x, column = graph.op.Neg(x), -column
    reached = least_reaching(step.op_type, column, thresholds.const)
    return graph.op.like(node, x, graph.constant(reached, thresholds.name))
