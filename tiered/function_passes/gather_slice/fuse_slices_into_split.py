"""Slice(x, 0, a), Slice(x, a, b), ... to the end of an axis  =>  the parts of Split(x)"""

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Value, function_pass

Cut = tuple[int, int]
"""Where a Slice begins and ends."""

Cuts = dict[Cut, list[Node]]


@function_pass(opt_level=3, required=("infer_shapes",), matches=("Slice",))
def fuse_slices_into_split(graph: Graph, ctx: PassContext) -> None:
    """Cut an axis once where slices side by side are all of it.

    Late: fusions and layouts know more of Slices.
    """
    found: dict[tuple[Value, int], Cuts] = {}
    for node in graph.nodes_of("Slice"):
        cut = _cut(node)
        if isinstance(cut, Skip):
            ctx.skip(node, cut)
            continue
        x, axis, start, end = cut
        found.setdefault((x, axis), {}).setdefault((start, end), []).append(node)
    for (_, axis), cuts in found.items():
        # What is cut again here may be a part of a new Split by now.
        source = next(iter(cuts.values()))[0].given(0)
        size = source.dim(axis)
        assert isinstance(size, int)
        tiles = _tiles(cuts, size)
        if len(tiles) < 2:
            for node in (node for nodes in cuts.values() for node in nodes):
                ctx.skip(node, Skip("no other slices cover the axis"))
            continue
        with graph.rewrite("Slices side by side => Split", cuts[tiles[0]][0]):
            first_new = graph.model.peek_serial()
            sizes = np.array([end - start for start, end in tiles], np.int64)
            parts = graph.op.Split(source, sizes, axis=axis, outputs=len(tiles))
            for tile, part in zip(tiles, parts, strict=True):
                for node in cuts[tile]:
                    graph.replace(node, [part], first_new)


def _cut(node: Node) -> tuple[Value, int, int, int] | Skip:
    """Return what a Slice cuts, along which axis, from where to where."""
    x, *operands = node.operands if not node.has_references else (None,)
    if x is None or any(value is not None and value.const is None for value in operands):
        return Skip("an operand is not a constant")
    lists = [_numbers(value) for value in operands]
    start, end, axis, step = (*lists, None, None)[:4]
    # All have one length, unless the model is invalid.
    is_one = all(each is None or len(each) == 1 for each in lists)
    if start is None or end is None or not is_one or step not in (None, [1]):
        return Skip("it cuts several axes, or in steps")
    (place,) = [0] if axis is None else axis
    size = x.dim(place)
    if x.rank is None or not isinstance(size, int):
        return Skip("the size of the axis is not known")
    taken = range(size)[start[0] : end[0]]
    if not taken:
        return Skip("it selects no elements")
    return x, place % x.rank, taken.start, taken.stop


def _numbers(value: Value | None) -> list[int] | None:
    return None if value is None or value.const is None else value.const.ravel().tolist()


def _tiles(cuts: Cuts, size: int) -> tuple[Cut, ...]:
    """Return cuts that follow each other from the front of an axis to its end, or nothing."""
    rest: dict[int, tuple[Cut, ...]] = {size: ()}
    for start, end in sorted(cuts, reverse=True):
        if end in rest and start not in rest:
            rest[start] = ((start, end), *rest[end])
    return rest.get(0, ())
