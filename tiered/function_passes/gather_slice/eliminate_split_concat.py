"""Concat(Split(x))  =>  x, of all parts in order"""

from collections.abc import Sequence

from tiered import Graph, Skip, Value, op, rest, rewrite, same_axes, var


@rewrite(op.Concat(rest.inputs, axis=var.axis), opt_level=1)
def eliminate_split_concat(graph: Graph, inputs: Sequence[Value], axis: int) -> Value | Skip:
    """Read what was split, wherever all its parts stand side by side again."""
    joined: list[Value] = []
    at = 0
    while at < len(inputs):
        x, length = _whole(inputs, at, axis) or (inputs[at], 1)
        joined.append(x)
        at += length
    if len(joined) == len(inputs):
        return Skip("no inputs are all outputs of one Split")
    return joined[0] if len(joined) == 1 else graph.op.Concat(*joined, axis=axis)


def _whole(inputs: Sequence[Value], at: int, axis: int) -> tuple[Value, int] | None:
    """Return what was split into the inputs from here on, and how many they are."""
    split = inputs[at].producer
    if split is None or not split.is_op("Split"):
        return None
    x, other, parts = split.given(0), split.attr("axis"), split.outputs
    if tuple(inputs[at : at + len(parts)]) != parts:
        return None
    is_same = isinstance(other, int) and same_axes([axis], [other], x.rank)
    return (x, len(parts)) if is_same else None
