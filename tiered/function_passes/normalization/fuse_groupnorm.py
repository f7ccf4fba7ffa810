"""Reshape(InstanceNormalization(Reshape(x))) * scale + bias  =>  GroupNormalization(x)"""

import numpy as np

from tiered import Constant, Graph, Node, Skip, Value, const, op, rewrite, var

_FIRST_OPSET = 21
"""In opset 18 the operator has one scale and bias per group, not per channel."""

_is_one = const(lambda array: bool((array == 1).all()))
_is_zero = const(lambda array: bool((array == 0).all()))
_grouped = op.Reshape(var.x, ...).bind("grouped")
_normed = op.InstanceNormalization(_grouped, _is_one, _is_zero, epsilon=var.epsilon)
_back = op.Reshape(_normed, ...).bind("back")


@rewrite(
    op.Add(op.Mul(_back, const(name="scale")), const(name="bias")),
    opt_level=None,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_groupnorm(
    graph: Graph,
    grouped: Node,
    back: Node,
    x: Value,
    epsilon: float,
    scale: Constant,
    bias: Constant,
) -> Value | Skip:
    """Normalise groups of channels by one operator.

    Opt-in: onnxruntime has no kernel for it and runs its function body, which takes twice as long.
    """
    if graph.opset() < _FIRST_OPSET:
        return Skip("before opset 21 a group has one scale")
    shape, groups = x.shape, grouped.output.dim(1)
    if shape is None or len(shape) < 3 or None in shape or shape != back.output.shape:
        return Skip("output and input may differ in shape")
    channels = shape[1]
    if grouped.output.rank != 3 or grouped.output.dim(0) != shape[0]:
        return Skip("batch entries are not kept separate")
    if not isinstance(groups, int) or not isinstance(channels, int) or channels % groups:
        return Skip("channels are not split into groups")
    wanted = (channels, *[1] * (len(shape) - 2))
    vectors = []
    for value in (scale, bias):
        array = value.const
        if array.ndim > len(shape) or array.size not in (1, channels):
            return Skip("scale or bias is not per channel")
        if array.size > 1 and array.shape[-len(wanted) :] != wanted:
            return Skip("scale or bias is not along the channels")
        whole = np.broadcast_to(array.ravel(), (channels,))
        vectors.append(graph.constant(np.ascontiguousarray(whole), value.name))
    return graph.op.GroupNormalization(x, *vectors, epsilon=epsilon, num_groups=groups)
