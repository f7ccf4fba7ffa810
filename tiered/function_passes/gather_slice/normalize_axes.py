"""An axis that counts from the end  =>  the same axis counted from the front"""

from typing import Final

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Value, function_pass
from tiered.graph.queries.op_traits import REDUCTIONS

_BY_ATTRIBUTE: Final = (
    "ArgMax", "ArgMin", "Concat", "Gather", "GatherElements", "Hardmax", "LayerNormalization",
    "LogSoftmax", "RMSNormalization", "ScatterElements", "Softmax", "Split", "TopK",
)  # fmt: skip
"""Operators whose attribute `axis` counts in their first input."""

_BY_OPERAND: Final = (*REDUCTIONS, "Squeeze", "Unsqueeze")
"""Operators with an operand `axes`; Unsqueeze counts in its result."""

_LAW: Final = "an axis that counts from the end => the same axis counted from the front"


@function_pass(opt_level=1, matches=(*_BY_ATTRIBUTE, *_BY_OPERAND))
def normalize_axes(graph: Graph, ctx: PassContext) -> None:
    """Write axes in one form, so that equal operators look equal; defaults stay unwritten."""
    for op_type in _BY_ATTRIBUTE:
        for node in graph.nodes_of(op_type):
            axis = node.attr("axis") if node.has_attr("axis") else 0
            if isinstance(axis, int) and axis < 0:
                _normalize(graph, ctx, node, [axis], {})
    # Constants that the pass makes are shared: most axes are the same.
    made: dict[tuple[int, ...], Value] = {}
    for op_type in _BY_OPERAND:
        for node in graph.nodes_of(op_type):
            axes = node.operand("axes")
            if axes is not None and axes.const is not None and (axes.const < 0).any():
                _normalize(graph, ctx, node, axes.const.ravel().tolist(), made)


def _normalize(
    graph: Graph,
    ctx: PassContext,
    node: Node,
    axes: list[int],
    made: dict[tuple[int, ...], Value],
) -> None:
    x = node.given(0)
    if x.rank is None:
        ctx.skip(node, Skip("the rank is not known"))
        return
    rank = x.rank + (len(axes) if node.op_type == "Unsqueeze" else 0)
    if min(axes) < -rank:
        return
    front = tuple(axis + rank if axis < 0 else axis for axis in axes)
    with graph.rewrite(_LAW, node):
        if node.op_type in _BY_ATTRIBUTE:
            graph.set_attribute(node, "axis", front[0])
        elif node.has_attr("axes"):
            graph.set_attribute(node, "axes", front)
        else:
            _set_axes(graph, node, front, made)


def _set_axes(
    graph: Graph, node: Node, front: tuple[int, ...], made: dict[tuple[int, ...], Value]
) -> None:
    before = node.inputs[1]
    if front not in made or made[front].graph is None:
        made[front] = graph.constant(np.array(front, np.int64), "axes")
    graph.set_input(node, 1, made[front])
    graph.discard(before)
