"""MatMul(x, w)  =>  Concat(MatMul(x, w[:, :k]), MatMul(x, w[:, k:]), ...), or by rows or sums"""

from functools import reduce
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np

from tiered import DataType, Graph, Node, Skip, UsageError, Value, op, rewrite, var

_PLACES = {"columns": (None, -1), "rows": (-2, None), "inner": (-1, -2)}
"""The axis of x, and that of the second factor, that each dim cuts."""


@rewrite(
    op.MatMul(var.x, var.weight),
    opt_level=None,
    required=("infer_shapes",),
    numerics="reassociating",
)
def serialize_matmul(
    graph: Graph,
    node: Node,
    x: Value,
    weight: Value,
    *,
    split: tuple[str, ...] = (),
    dim: Literal["columns", "rows", "inner"] = "columns",
    max_bytes: int = 0,
) -> Value | Skip:
    """Multiply in parts, one after the other; constant weights are cut at once.

    A part needs less scratch memory, and less of a weight at a time. The parts of the result and
    the whole are alive together: `tiered memory` says what that is for the peak.

    Args:
        split: which nodes, as `node=parts`.
        dim: cut the columns of the result, its rows, or the inner dim, whose products are added.
        max_bytes: cut all nodes whose second factor (by rows: whose result) is larger, into parts
            that are not; 0 for none.
    """
    parts = _asked(split, node.label) or _needed(node, weight, dim, max_bytes)
    if parts < 2:
        return Skip("nothing asks for parts of it")
    if x.shape is None or weight.shape is None or min(len(x.shape), len(weight.shape)) < 2:
        return Skip("a factor is not a matrix of known rank")
    of_x, of_weight = _PLACES[dim]
    sizes = {x.shape[of_x] if of_x else None, weight.shape[of_weight] if of_weight else None}
    size = next((each for each in sizes if isinstance(each, int)), None)
    if size is None:
        return Skip("the size of the dim is not known")
    if size < parts:
        return Skip("the dim is shorter than {} parts", parts)
    if dim == "inner" and x.dtype in (DataType.FLOAT16, DataType.BFLOAT16):
        return Skip("sums of parts would round to half precision")
    lengths = [size // parts + (at < size % parts) for at in range(parts)]
    products = [
        graph.op.MatMul(_cut(graph, x, of_x, *ends), _cut(graph, weight, of_weight, *ends))
        for ends in pairwise(accumulate(lengths, initial=0))
    ]
    for at, product in enumerate(products):
        if product.producer is not None:
            # Not the name of the whole product: a part is not cut again.
            graph.rename_node(product.producer, f"{node.label}/part_{at}")
    if dim == "inner":
        return reduce(graph.op.Add, products)
    result: Value = graph.op.Concat(*products, axis=-1 if dim == "columns" else -2)
    return result


def _asked(split: tuple[str, ...], label: str) -> int:
    """Return the number of parts that the user wants of a node; 0 if it is not named."""
    for entry in split:
        name, _, parts = entry.rpartition("=")
        if not name or not parts.isdecimal():
            raise UsageError(f"serialize_matmul: a split is node=parts, not {entry!r}")
        if name == label:
            return int(parts)
    return 0


def _needed(node: Node, weight: Value, dim: str, max_bytes: int) -> int:
    """Return the number of parts that are small enough; 0 if the size is not known."""
    large = node.output if dim == "rows" else weight
    if not max_bytes or large.static_shape is None or large.dtype is None:
        return 0
    nbytes = int(np.prod(large.static_shape)) * DataType(large.dtype).numpy.itemsize
    axis = _PLACES[dim][0 if dim == "rows" else 1]
    size = large.static_shape[axis] if axis and len(large.static_shape) > 1 else 0
    # As many whole columns or rows as fit; one is the least.
    fit = max(1, max_bytes * size // nbytes) if nbytes else 1
    return -(-size // fit) if nbytes > max_bytes else 0


def _cut(
    graph: Graph, value: Value, axis: int | None, begin: int, end: int
) -> Value | np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Return a part of a value along an axis; all of it without one."""
    if axis is None:
        return value
    if value.const is not None:
        taken: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
        taken = np.take(value.const, range(begin, end), axis)
        return taken
    ends = (np.array([each], np.int64) for each in (begin, end, axis))
    result: Value = graph.op.Slice(value, *ends)
    return result
