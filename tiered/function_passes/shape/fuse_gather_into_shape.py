"""Gather(Shape(x), [i, i+1, ...])  =>  Shape<start, end>(x), and so for Slice and Unsqueeze"""

from tiered import Graph, Node, Skip, Value, const, op, rest, rewrite, var

_shape = op.Shape(var.x, attrs=...).shared().bind("shape")
_scalar = const(lambda indices: indices.ndim == 0)
_list = const(lambda indices: indices.ndim == 1)
_one = const(lambda axes: axes.size == 1)


@rewrite(
    op.Gather(_shape, _list, axis=...).bind("part")
    | op.Slice(_shape, rest.cut).bind("part")
    | op.Unsqueeze(op.Gather(_shape, _scalar, axis=...).bind("part"), _one),
    opt_level=1,
    required=("infer_shapes",),
)
def fuse_gather_into_shape(
    graph: Graph, x: Value, shape: Node, part: Node, node: Node
) -> Value | Skip:
    """Compute only the consecutive dims, if no other node needs the whole shape.

    Shape clips `start` and `end` where Gather fails, so the rank must be known.
    """
    if x.rank is None:
        return Skip("the rank of x is not known")
    dims = range(x.rank)[slice(shape.attr("start", 0), shape.attr("end", None))]
    taken = _taken(part, len(dims))
    if not taken:
        return Skip("the dims are not consecutive")
    if part is node and not _is_only_for_lists(shape.output, len(dims)):
        return Skip("the shape has other consumers")
    start, end = dims[taken.start], dims[taken.stop - 1] + 1
    return graph.op.Shape(x, start=start, end=None if end == x.rank else end)


def _is_only_for_lists(shape: Value, size: int) -> bool:
    """Return whether all consumers of a shape select consecutive dims of it, as a list."""
    return not shape.is_graph_output and all(
        reader.op_type in ("Gather", "Slice") and reader.output.rank == 1 and _taken(reader, size)
        for reader, _ in shape.users
    )


def _taken(part: Node, size: int) -> range | None:
    """Return the indices that a Gather or Slice selects from a list; None if unknown."""
    operands = [None if value is None else value.const for value in part.operands[1:]]
    if any(array is None for array in operands) or part.parameter_reason is not None:
        return None
    numbers = [array.ravel().tolist() for array in operands if array is not None]
    if part.op_type == "Slice":
        (start, *others), (end, *_), *_ = numbers
        is_plain = not others and (len(numbers) < 4 or numbers[3] == [1])
        return range(size)[start:end] if is_plain else None
    places = [place + size if place < 0 else place for place in numbers[0]]
    first = places[0] if places else -1
    taken = range(first, first + len(places))
    return taken if first >= 0 and taken.stop <= size and places == [*taken] else None
