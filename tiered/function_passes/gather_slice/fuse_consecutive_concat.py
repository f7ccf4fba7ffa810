"""Concat(a, Concat(b, c), d)  =>  Concat(a, b, c, d), along one axis"""

from collections.abc import Sequence
from typing import Final

from tiered import Graph, Node, Skip, Value, op, rest, rewrite, same_axes, var

_MOST: Final = 1024
"""Forty Concats of a value with itself, flattened, would be one of a million million inputs."""


@rewrite(op.Concat(rest.inputs, axis=var.axis), opt_level=1)
def fuse_consecutive_concat(
    graph: Graph, inputs: Sequence[Value], axis: int, node: Node
) -> Value | Skip:
    """Join all at once what only this Concat would join; other inner Concats stay."""
    parts: list[Value | None] = []
    reason = Skip("no input is a Concat of several")
    for value in inputs:
        inner = _joined(node, value, axis)
        if isinstance(inner, Node) and len(inner.inputs) > 1:
            parts += inner.inputs
            continue
        parts.append(value)
        if isinstance(inner, Skip):
            reason = inner
    if len(parts) == len(inputs):
        return reason
    if len(parts) > _MOST:
        return Skip("it would have more than {} inputs", _MOST)
    return graph.op.Concat(*parts, axis=axis)


def _joined(node: Node, value: Value, axis: int) -> Node | Skip | None:
    """Return the Concat of an input that can be joined, or the reason; None for other producers."""
    inner = value.producer
    if inner is None or not inner.is_op("Concat"):
        return None
    other = inner.attr("axis")
    if not value.is_only_read_by(node):
        return Skip("the inner result has other consumers")
    if not isinstance(other, int) or not same_axes([axis], [other], value.rank):
        return Skip("the axes may differ")
    return inner
