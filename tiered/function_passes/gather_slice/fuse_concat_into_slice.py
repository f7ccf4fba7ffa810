"""Slice(Concat(a, b), ...)  =>  Slice(b, ...), if all of it comes from b; and so for Gather"""

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Value, function_pass


@function_pass(opt_level=1, required=("infer_shapes",), matches=("Concat",))
def fuse_concat_into_slice(graph: Graph, ctx: PassContext) -> None:
    """Select from the part that has all of the elements; the Concat may have other consumers."""
    for concat in graph.nodes_of("Concat"):
        for node in list(concat.output.readers):
            is_selection = node.op_type in ("Gather", "Slice") and not node.domain
            if not is_selection or node.input(0) is not concat.output:
                continue
            found = _from_part(graph, concat, node)
            if isinstance(found, Skip):
                ctx.skip(node, found)
                continue
            part, places = found
            with graph.rewrite(f"{node.op_type}(Concat(a, b)) => {node.op_type}(b)", node):
                if node.op_type == "Slice":
                    made = graph.op.Slice(part, *places)
                else:
                    made = graph.op.Gather(part, *places, axis=node.attr("axis"))
                graph.replace(node, (made,))
                graph.prune([concat])


_Found = tuple[Value, list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]]


def _from_part(graph: Graph, concat: Node, node: Node) -> _Found | Skip:
    """Return the part that a selection takes from, and the operands of one from it."""
    if concat.has_references or node.has_references or concat.output.rank is None:
        return Skip("the rank is not known, or an axis is a parameter")
    rank = concat.output.rank
    axis = int(concat.attr("axis")) % rank
    sizes = [None if part is None else part.dim(axis) for part in concat.inputs]
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) < len(sizes):
        return Skip("the size of a part is not known")
    whole = sum(known)
    taken = _taken(node, axis, rank, whole)
    if isinstance(taken, Skip):
        return taken
    start = 0
    for part, size in zip(concat.inputs, known, strict=True):
        if taken.size and start <= taken.min() and taken.max() < start + size and part is not None:
            return part, _operands(graph, node, taken - start, axis)
        start += size
    return Skip("it takes elements of several parts, or none")


def _taken(
    node: Node, axis: int, rank: int, whole: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | Skip:
    """Return the places that are taken along the axis of the Concat."""
    operands = [value if value is None else value.const for value in node.operands[1:]]
    if any(
        array is None and value is not None
        for array, value in zip(operands, node.operands[1:], strict=True)
    ):
        return Skip("an operand is not constant")
    if node.op_type == "Gather":
        indices = operands[0]
        assert indices is not None
        if int(node.attr("axis")) % rank != axis:
            return Skip("the Gather takes along another axis")
        if indices.size and not -whole <= indices.min() <= indices.max() < whole:
            return Skip("an index is out of range")
        return np.asarray(np.where(indices < 0, indices + whole, indices), np.int64)
    starts, ends, axes, steps = [*operands, None, None][:4]
    assert starts is not None
    assert ends is not None
    if starts.size != 1 or (steps is not None and steps.item() != 1):
        return Skip("it cuts several axes, or its step is not 1")
    if (0 if axes is None else int(axes.item())) % rank != axis:
        return Skip("the Slice cuts another axis")
    return np.arange(whole, dtype=np.int64)[int(starts.item()) : int(ends.item())]


def _operands(
    graph: Graph, node: Node, places: np.ndarray[tuple[int, ...], np.dtype[np.int64]], axis: int
) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Return the constant operands of the selection that takes these places of a part."""
    if node.op_type == "Gather":
        return [places]
    numbers = (int(places[0]), int(places[-1]) + 1, axis)
    return [np.asarray([number], np.int64) for number in numbers]
