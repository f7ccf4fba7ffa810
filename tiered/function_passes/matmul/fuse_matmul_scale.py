"""Mul(MatMul(a, Transpose(b)), alpha)  =>  FusedMatMul(a, b, alpha, transB=1)"""

import math
from collections.abc import Sequence
from typing import Any, Final

from tiered import Constant, Graph, Node, Skip, Value, const, op, rewrite, var
from tiered.rewriter.idioms.normalization import fits_float_attribute

_MATRIX: Final = 2


def _of(a: Any, b: Any) -> Any:
    product = op.MatMul(a, b) | op("com.microsoft").FusedMatMul(a, b, attrs=...)
    return product.bind("product")


def _scaled(x: Any) -> Any:
    return op.Mul(x, const(name="factor")) | op.Div(x, const(name="divisor"))


def _turned(x: Any) -> Any:
    turned = op.Transpose(x, attrs="ignored").bind("transpose")
    return turned | op.Cast(turned, attrs="ignored").bind("cast")


_plain = _of(var.a, var.b)


@rewrite(
    _scaled(_plain)
    | _of(_scaled(var.a), var.b)
    | _of(var.a, _scaled(var.b))
    | _of(var.a, _turned(var.b))
    | _of(_turned(var.a), var.b),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::FusedMatMul"],
    numerics="reassociating",
)
def fuse_matmul_scale(
    graph: Graph,
    node: Node,
    product: Node,
    transpose: Node | None,
    cast: Node | None,
    a: Value,
    b: Value,
    factor: Constant | None,
    divisor: Constant | None,
) -> Value | Skip:
    """Multiply, scale, and read a factor with its axes in another order, at once.

    The rows and columns of the first factor read so take as long as with its Transpose, or longer.
    """
    if a.rank is None or b.rank is None or min(a.rank, b.rank) < _MATRIX:
        return Skip("a factor is not known to have matrices")
    settings = dict(product.attributes)
    scale = factor if factor is not None else divisor
    if scale is not None:
        array = scale.const
        if array.size != 1 or array.ndim > min(a.rank, b.rank):
            return Skip("the scale is not one number")
        number = float(array.item())
        if not math.isfinite(number) or number == 0:
            return Skip("the scale is 0 or not finite")
        alpha = float(settings.get("alpha", 1.0))
        settings["alpha"] = alpha * number if factor is not None else alpha / number
        if not fits_float_attribute(settings["alpha"], a.dtype):
            return Skip("the scale does not fit a float attribute")
    else:
        assert transpose is not None
        is_second = product.input(1) is (transpose if cast is None else cast).output
        read = _read_otherwise(product, transpose, "B" if is_second else "A")
        if isinstance(read, Skip):
            return read
        settings = {name: setting for name, setting in settings.items() if name not in read}
        settings |= {name: value for name, value in read.items() if value}
    if cast is not None and transpose is not None:
        x: Value = graph.op.Cast(transpose.inputs[0], **cast.attributes)
        a, b = (a, x) if is_second else (x, b)
    result: Value = graph.op("com.microsoft").FusedMatMul(a, b, **settings)
    return result


def _read_otherwise(product: Node, transpose: Node, side: str) -> dict[str, int] | Skip:
    """Return the attributes with which a product reads what a Transpose of its factor reads."""
    names = f"trans{side}", f"transBatch{side}"
    perm, batches = transpose.perm, [_batch(product, at) for at in (0, 1)]
    if perm is None:
        return Skip("the order of axes is not known")
    before = [int(product.attributes.get(name, 0)) for name in names]
    wanted = [perm[axis] for axis in _order(len(perm), *before)]
    found = [
        (swaps, moves)
        for swaps in (0, 1)
        for moves in (0, 1)
        if _order(len(perm), swaps, moves) == wanted
    ]
    if not found:
        return Skip("the product cannot read this axis order")
    swaps, moves = found[0]
    if side == "A" and swaps and not moves:
        return Skip("a transposed first factor is not faster")
    if moves and (None in batches or batches[0] != batches[1]):
        return Skip("a batch dim that moves is broadcast")
    return dict(zip(names, (swaps, moves), strict=True))


def _batch(product: Node, at: int) -> list[int | str | None] | None:
    """Return the batch dims of a factor as the product reads it, None where one is not known."""
    value = product.given(at)
    if value.shape is None or None in value.shape:
        return None
    moves = int(product.attributes.get(f"transBatch{'AB'[at]}", 0))
    return [value.shape[axis] for axis in _order(len(value.shape), 0, moves)[:-2]]


def _order(rank: int, swaps: int, moves: int) -> Sequence[int]:
    """Return in which order the product reads the axes of a factor.

    Args:
        rank: of the factor.
        swaps: transA or transB: rows are columns.
        moves: transBatchA or transBatchB: the first axis stands behind the batch dims.
    """
    axes = [*range(1, rank - 1), 0, rank - 1] if moves else [*range(rank)]
    return [*axes[:-2], axes[-1], axes[-2]] if swaps else axes
