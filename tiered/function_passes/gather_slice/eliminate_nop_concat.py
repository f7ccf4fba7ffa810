"""Concat(x)  =>  x, and Concat(x, empty, y)  =>  Concat(x, y)"""

from collections.abc import Sequence

from tiered import Graph, Skip, Value, op, rest, rewrite, var


@rewrite(op.Concat(rest.inputs, axis=var.axis), opt_level=1)
def eliminate_nop_concat(graph: Graph, inputs: Sequence[Value], axis: int) -> Value | Skip:
    """Leave out what has no elements along the axis, and a Concat of what is one tensor then."""
    present = [value for value in inputs if value.dim(axis) != 0] or [*inputs[:1]]
    if len(present) == 1:
        return present[0]
    if len(present) == len(inputs):
        return Skip("it has several inputs, and none is surely empty")
    return graph.op.Concat(*present, axis=axis)
