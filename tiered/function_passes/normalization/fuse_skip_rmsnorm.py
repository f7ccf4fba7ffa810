"""scale * s / Sqrt(mean(s * s) + epsilon), s = x + skip  =>  SkipSimplifiedLayerNormalization"""

import math

from tiered import Graph, Skip, Value, const, op, rewrite, same_axes, var

_root = op.Sqrt(op.Add(op.ReduceMean(op.Pow(var.x, 2.0) | op.Mul(var.x, var.x), var.axes),
                       const(name="epsilon")))  # fmt: skip
_normed = op.Div(var.x, _root) | op.Mul(var.x, op.Reciprocal(_root) | op.Div(1.0, _root))


@rewrite(
    op.Mul(_normed, var.scale),
    opt_level=3,
    required=("infer_shapes",),
    needs=["com.microsoft::SkipSimplifiedLayerNormalization"],
    numerics="reassociating",
)
def fuse_skip_rmsnorm(
    graph: Graph, x: Value, axes: Value | None, epsilon: Value, scale: Value
) -> Value | Skip:
    """Add and normalise at once; who else reads the sum gets it as the fourth output.

    The root mean square alone has no operator of its own before opset 23.
    """
    added = x.producer
    if added is None or added.op_type != "Add" or added.domain or added.graph is not graph:
        return Skip("what is normalised is no sum")
    first, second = added.inputs
    shape = x.shape
    if shape is None or None in shape or len(shape) not in (2, 3):
        return Skip("the sum is not known to have 2 or 3 dims")
    if any(value is None or value.shape != shape for value in (first, second)):
        return Skip("one of what is added is broadcast")
    if axes is None or axes.const is None or not same_axes(axes.const.ravel(), [-1], len(shape)):
        return Skip("it is not over the last dim alone")
    if epsilon.const is None or epsilon.const.size != 1 or epsilon.const.ndim > len(shape):
        return Skip("epsilon is not one number")
    number = float(epsilon.const.item())
    if not 0 < number < math.inf:
        return Skip("epsilon is not positive and finite")
    if scale.shape != shape[-1:]:
        return Skip("the scale is not one number an element")
    if scale.producer is not None:
        return Skip("the scale is computed, perhaps from the sum")
    result, _, _, total = graph.op("com.microsoft").SkipSimplifiedLayerNormalization(
        first, second, scale, outputs=4, epsilon=number
    )
    graph.replace(added, [total])
    return result
