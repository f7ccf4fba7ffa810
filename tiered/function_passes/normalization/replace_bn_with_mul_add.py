"""BatchNormalization(x, ...)  =>  x * scale' + shift'"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    op.BatchNormalization(
        var.x,
        var.scale,
        var.shift,
        var.mean,
        var.variance,
        epsilon=var.epsilon,
        momentum=var.momentum,
    ),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def replace_bn_with_mul_add(
    graph: Graph,
    node: Node,
    x: Value,
    scale: Value,
    shift: Value,
    mean: Value,
    variance: Value,
    epsilon: float,
) -> Value | Skip:
    """Multiply and add, where scales can be moved on.

    Opt-in: two operators go over x twice, where the batch norm that nothing absorbed goes once.
    """
    if any(value is not None for value in node.outputs[1:]):
        return Skip("with further outputs it is in training mode")
    if x.rank is None or x.rank < 2:
        return Skip("the rank of x is not known")
    vectors = [value.const for value in (scale, shift, mean, variance)]
    s, t, m, v = vectors
    if s is None or t is None or m is None or v is None:
        return Skip("a parameter of the batch norm is not a constant")
    if not (v.astype(np.float64) + epsilon > 0).all():
        return Skip("var + epsilon is not positive")
    factor = s.astype(np.float64) / np.sqrt(v.astype(np.float64) + epsilon)
    offset = t.astype(np.float64) - m.astype(np.float64) * factor
    shape = (-1, *[1] * (x.rank - 2))
    operands = [
        graph.constant(array.astype(s.dtype).reshape(shape), value.name)
        for array, value in ((factor, scale), (offset, shift))
    ]
    return graph.op.Add(graph.op.Mul(x, operands[0]), operands[1])
