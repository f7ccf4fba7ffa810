"""Split(x)  =>  Slice(x, ...), if only one of its results is read"""

import numpy as np

from tiered import DataType, Graph, Node, PassContext, Skip, Value, function_pass


@function_pass(opt_level=1, required=("infer_shapes",), matches=("Split",))
def replace_lone_split_with_slice(graph: Graph, ctx: PassContext) -> None:
    """Cut out the one part that is read, by the operator that other passes hoist and fuse."""
    for node in graph.nodes_of("Split"):
        read = list(node.used_outputs.values())
        if len(read) != 1 or len(node.outputs) < 2:
            continue
        found = _cut(node, read[0])
        if isinstance(found, Skip):
            ctx.skip(node, found)
            continue
        with graph.rewrite("Split(x) => Slice(x)", node):
            x, (start, end, axis) = node.inputs[0], found
            bounds = (np.array([number], np.int64) for number in (start, end, axis))
            made = graph.op.Slice(x, *bounds)
            graph.replace(node, [made if value is read[0] else None for value in node.outputs])


def _cut(node: Node, part: Value) -> tuple[int, int, int] | Skip:
    """Return the start, the end and the axis of a part."""
    rank = part.rank
    if node.has_references or not rank:
        return Skip("the rank is not known, or an attribute is a parameter")
    if part.dtype is None or DataType(part.dtype).numpy.isbuiltin != 1:
        return Skip("runtimes may have no Slice of the dtype")
    axis = int(node.attr("axis")) % rank
    start = 0
    for value in node.outputs:
        size = None if value is None else value.dim(axis)
        if not isinstance(size, int):
            return Skip("the size of a part is not known")
        if value is part:
            return start, start + size, axis
        start += size
    raise AssertionError("the part is none of the results")
