"""x / Sqrt(mean(x * x) + epsilon) * scale  =>  RMSNormalization(x, scale)"""

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, const, non_negative_axes, op, rewrite, var

_mean = op.ReduceMean(op.Pow(var.x, 2.0) | op.Mul(var.x, var.x), var.axes)
_shifted = op.Add(_mean, const(name="epsilon"))
_normed = (
    op.Div(var.x, op.Sqrt(_shifted))
    | op.Mul(var.x, op.Reciprocal(op.Sqrt(_shifted)) | op.Div(1.0, op.Sqrt(_shifted)))
    | op.Mul(var.x, op.Pow(_shifted, -0.5))
)
_is_one = const(lambda array: bool((array == 1).all()))
_scaled = op.Mul(op.RMSNormalization(var.x, _is_one, attrs=...).bind("norm"), var.scale)


@rewrite(_normed | _scaled, opt_level=3, required=("infer_shapes",), numerics="reassociating")
def fuse_rmsnorm(
    graph: Graph,
    node: Node,
    x: Value,
    axes: Value | None,
    epsilon: Value | None,
    norm: Node | None,
    scale: Value | None,
) -> Value | Skip:
    """Normalise the last dims by their root mean square, and scale them, at once."""
    if norm is not None and norm.has_references:
        return Skip("the call of the function decides an attribute")
    if axes is not None and axes.const is None:
        return Skip("the axes are not constant")
    if x.rank is None or x.rank != node.output.rank:
        return Skip("the rank of x is not known, or grows")
    if norm is not None:
        assert scale is not None
        normed = x.shape[int(norm.attr("axis")) % x.rank :] if x.shape is not None else ()
        if scale.shape != normed or None in normed:
            return Skip("what it is multiplied with is not one number an element")
        result: Value = graph.op.RMSNormalization(x, scale, **norm.attributes)
        return result
    assert axes is not None
    assert axes.const is not None
    assert epsilon is not None
    assert epsilon.const is not None
    over = non_negative_axes(axes.const.ravel(), x.rank)
    if over is None or sorted(over) != list(range(x.rank - len(over), x.rank)) or not over:
        return Skip("it is not over the last dims")
    if epsilon.const.size != 1 or not 0 < epsilon.const.item() < np.inf:
        return Skip("epsilon is not one positive number")
    if x.dtype is None or not DataType(x.dtype).is_float:
        return Skip("x is no float")
    sizes = x.shape[min(over) :] if x.shape is not None else ()
    if not all(isinstance(size, int) for size in sizes):
        return Skip("the size of what is normalised is not known")
    ones = graph.constant(np.ones(sizes, DataType(x.dtype).numpy), "scale")
    return graph.op.RMSNormalization(
        x, ones, axis=-len(over), epsilon=float(epsilon.const.item())
    )
