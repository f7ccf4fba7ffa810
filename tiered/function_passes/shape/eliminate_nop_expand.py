"""Expand(x, shape that does not enlarge x)  =>  x"""

from tiered import Graph, Skip, Value, is_shape_of, op, rewrite, var


@rewrite(op.Expand(var.x, var.shape), opt_level=1)
def eliminate_nop_expand(graph: Graph, x: Value, shape: Value) -> Value | Skip:
    """Drop an Expand if each of its sizes is 1 or the dim of x on that axis."""
    if is_shape_of(shape, x):
        return x
    if shape.const is None:
        return Skip("shape is neither constant nor that of x")
    if x.shape is None:
        return Skip("the rank of x is not known")
    sizes = shape.const.ravel().tolist()
    if len(sizes) > len(x.shape):
        return Skip("the rank grows")
    dims = x.shape[len(x.shape) - len(sizes) :]
    if any(size not in (1, dim) for size, dim in zip(sizes, dims, strict=True)):
        return Skip("a dim may grow")
    return x
