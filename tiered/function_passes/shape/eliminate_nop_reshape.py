"""Reshape(x, shape of x)  =>  x, also with other Reshapes between"""

from typing import Final

from tiered import Graph, Skip, Value, is_shape_of, op, rewrite, var

_RESHAPES: Final = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})


@rewrite(op.Reshape(var.x, var.shape, allowzero=var.allowzero), opt_level=1)
def eliminate_nop_reshape(
    graph: Graph, x: Value, shape: Value, allowzero: int | None
) -> Value | Skip:
    """Drop a Reshape to the shape of its operand: 0 copies a dim, one -1 is inferred."""
    if shape.const is None:
        return _reshaped_back(x, shape, is_exact=bool(allowzero))
    if x.shape is None:
        return Skip("the rank of x is not known")
    target = shape.const.ravel().tolist()
    if len(target) != len(x.shape):
        return Skip("the rank changes")
    differing = [
        axis
        for axis, (size, dim) in enumerate(zip(target, x.shape, strict=True))
        if size != dim and (size != 0 or allowzero)
    ]
    if not differing:
        return x
    if len(differing) > 1 or target[differing[0]] != -1:
        return Skip("a dim may change")
    if 0 in x.shape[: differing[0]] or 0 in x.shape[differing[0] + 1 :]:
        return Skip("-1 beside a dim of 0 is ambiguous")
    return x


def _reshaped_back(x: Value, shape: Value, *, is_exact: bool) -> Value | Skip:
    """Return x, or the first operand of the Reshapes before it, if it has the computed shape."""
    source = x
    while not is_shape_of(shape, source):
        node = source.producer
        if node is None or node.domain or node.op_type not in _RESHAPES:
            return Skip("shape is neither constant nor that of x")
        source = node.given(0)
    if source is x or is_exact or _copies_zeros(source, x):
        return source
    return Skip("several dims may be 0")


def _copies_zeros(source: Value, x: Value) -> bool:
    """Return whether a Reshape of x to the shape of its source keeps each dim of 0, or fails.

    A single 0 must stay, because there are no elements; of several, each that x has on its axis,
    or where only this dim of x can be 0.
    """
    if x.shape is None:
        return False
    if len(x.shape) <= 1:
        return True
    if source.shape is None:
        return False
    open_axes = [
        axis for axis, dim in enumerate(source.shape) if not isinstance(dim, int) or dim == 0
    ]
    return len(open_axes) <= 1 or all(
        axis >= len(x.shape)
        or (x.shape[axis] is not None and x.shape[axis] == source.shape[axis])
        or all(isinstance(dim, int) and dim > 0 for dim in _without(x.shape, axis))
        for axis in open_axes
    )


def _without(shape: tuple[int | str | None, ...], axis: int) -> tuple[int | str | None, ...]:
    return shape[:axis] + shape[axis + 1 :]
