"""Op(x, c)  =>  Op(x, c[:1]), if c repeats along an axis that x has"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiered import Graph, Node, PassContext, Skip, function_pass
from tiered.rewriter.idioms.elementwise.broadcasting import BROADCASTS, has_size


@function_pass(
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    matches=tuple(sorted(BROADCASTS)),
)
def unbroadcast(graph: Graph, ctx: PassContext) -> None:
    """Store equal elements of a constant once, where the operator repeats them."""
    for node in graph.topological_order():
        if node.domain or node.op_type not in BROADCASTS:
            continue
        for slot, value in enumerate(node.reads):
            array = value.const
            axes = [] if array is None or array.dtype.hasobject else _repeated_axes(array)
            if array is None or not axes:
                continue
            there = [axis for axis in axes if _has_other(node, slot, array, axis)]
            if not there:
                ctx.skip(node, Skip("only the constant has the size"))
                continue
            with graph.rewrite("Op(x, c) => Op(x, c[:1])", node):
                small = array[tuple(slice(1 if at in there else None) for at in range(array.ndim))]
                small = np.ascontiguousarray(small)
                graph.set_input(node, slot, graph.constant(small, value.name))


def _repeated_axes(array: NDArray[Any]) -> list[int]:
    """Return the axes of several indices along which all elements are equal, bit for bit."""
    found, left = [], np.ascontiguousarray(array)
    for axis, size in enumerate(array.shape):
        first = left.take([0], axis=axis) if size > 1 else left
        if size > 1 and left.tobytes() == np.broadcast_to(first, left.shape).tobytes():
            found.append(axis)
            left = first
    return found


def _has_other(node: Node, slot: int, array: NDArray[Any], axis: int) -> bool:
    """Return whether another operand has the size of an axis, so that the result keeps it."""
    others = [value.shape for at, value in enumerate(node.inputs) if value and at != slot]
    return has_size(others, array.shape[axis], array.ndim - axis)
