"""A MatMul in parts along one of its dims, with or without the bias that is added to it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

import numpy as np

from tiered.graph import DataType
from tiered.rewriter.idioms.parts_along import part_along, part_ranges
from tiered.rewriter.skip import Skip
from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value

Dim = Literal["columns", "rows", "inner"]

_PLACES: Final[dict[Dim, tuple[int | None, int | None]]] = {
    "columns": (None, -1),
    "rows": (-2, None),
    "inner": (-1, -2),
}
"""The axis of the first factor, and that of the second, that each dim cuts."""


class Cut(NamedTuple):
    """A number of parts along a dim of a product."""

    dim: Dim
    parts: int


def requested_cuts(split: Iterable[str], dim: Dim, owner: str) -> dict[str, Cut]:
    """Return the cuts that `node=parts` and `node=parts/dim` request, by node.

    Args:
        split: the requests.
        dim: the dim of a request without one.
        owner: the pass that asks, for the message.

    Raises:
        UsageError: an entry is no request.
    """
    cuts: dict[str, Cut] = {}
    for entry in split:
        name, _, wanted = entry.rpartition("=")
        parts, _, of = wanted.partition("/")
        is_number = parts.isdecimal() and int(parts) > 0
        if not name or not is_number or (of and of not in _PLACES):
            raise UsageError(
                f"{owner}: a split is node=parts or node=parts/dim, not {entry!r}; "
                f"dim is one of {', '.join(get_args(Dim))}"
            )
        cuts.setdefault(name, Cut(of or dim, int(parts)))
    return cuts


def cut_by_bytes(product: Node, dim: Dim, max_bytes: int) -> Cut | None:
    """Return a cut into parts of at most `max_bytes`; None if none is needed or known.

    The bytes are those of the second factor, by rows those of the result.
    """
    large = product.output if dim == "rows" else product.given(1)
    shape = large.static_shape
    if not max_bytes or shape is None or len(shape) < 2 or large.dtype is None:
        return None
    nbytes = int(np.prod(shape)) * DataType(large.dtype).numpy.itemsize
    if nbytes <= max_bytes:
        return None
    size = shape[-1 if dim == "columns" else -2]
    # As many whole columns or rows as fit; one is the least.
    fit = max(1, max_bytes * size // nbytes)
    return Cut(dim, -(-size // fit))


def product_in_parts(
    graph: Graph, product: Node, cut: Cut, bias: Value | None = None
) -> Value | Skip:
    """Return a value equal to a product, plus a bias, that is computed in parts.

    A constant is cut at once, another factor by Slice. The bias is cut with the columns or rows
    that it has; the sum of the parts of the inner dim gets it once.
    """
    x, weight = product.inputs
    assert x is not None
    assert weight is not None
    if x.shape is None or weight.shape is None or min(len(x.shape), len(weight.shape)) < 2:
        return Skip("a factor is not a matrix of known rank")
    of_x, of_weight = _PLACES[cut.dim]
    sizes = (x.shape[of_x] if of_x else None, weight.shape[of_weight] if of_weight else None)
    size = next((each for each in sizes if isinstance(each, int)), None)
    if size is None:
        return Skip("the size of the dim is not known")
    if size < cut.parts:
        return Skip("the dim is shorter than {} parts", cut.parts)
    if cut.dim == "inner" and x.dtype in (DataType.FLOAT16, DataType.BFLOAT16):
        return Skip("sums of parts would round to half precision")
    axis = -2 if cut.dim == "rows" else -1
    of_bias = None
    if bias is not None and cut.dim != "inner":
        if not _broadcasts(bias, axis, size):
            return Skip("the bias has another size along the dim")
        of_bias = axis if _dim(bias, axis) == size else None
    results = []
    for at, ends in enumerate(part_ranges(size, cut.parts)):
        part = graph.op.MatMul(
            part_along(graph, x, of_x, *ends), part_along(graph, weight, of_weight, *ends)
        )
        if part.producer is not None:
            # Not the name of the whole product: a part is not cut again.
            name = graph.model.node_names.fresh(f"{product.label}/part_{at}")
            graph.rename_node(part.producer, name)
        if bias is not None and cut.dim != "inner":
            part = graph.op.Add(part, part_along(graph, bias, of_bias, *ends))
        results.append(part)
    if cut.dim != "inner":
        joined: Value = graph.op.Concat(*results, axis=axis)
        return joined
    whole: Value = reduce(graph.op.Add, results)
    return whole if bias is None else graph.op.Add(whole, bias)


def _dim(value: Value, axis: int) -> object:
    """Return a dim of a value of known rank, counted from the end; 1 if there is none."""
    assert value.shape is not None
    return value.shape[axis] if len(value.shape) >= -axis else 1


def _broadcasts(bias: Value, axis: int, size: int) -> bool:
    """Return whether a bias has this size along an axis, or is broadcast along it."""
    return bias.shape is not None and _dim(bias, axis) in (1, size)
