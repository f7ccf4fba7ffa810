"""Exact lowerings: nodes of the same opset that take the place of one that an opset has no form of.

`LOWERINGS` is the table. Opset conversion uses it; a legalisation for a target may use it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tiered.errors import ModelError
from tiered.graph.queries.function_body import (
    EXACT_BODIES,
    function_body,
    has_function_body,
)
from tiered.support.numerics import Numerics

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

Lowering = Callable[["Graph", "Node"], "list[Node] | None"]
"""Puts nodes in the place of one, and returns them; None, and nothing is edited, if it cannot."""


def expand(graph: Graph, node: Node) -> list[Node] | None:
    """Put the function body that ONNX defines an operator by in the place of a node.

    The body is converted to the opset of the graph first.
    """
    model: Any = graph.model  # `add` is a method of its only subclass
    mark = model.mark()
    if not has_function_body(node):
        return None
    try:
        function = model.add(function_body(node))
        model.set_opset("", graph.opset(), function)
    except ModelError:
        model.undo_to(mark)
        return None
    created: list[Node] = graph.inline_call(node, function, {})
    model.remove(function)
    return created


def _flatten_softmax(graph: Graph, node: Node) -> list[Node] | None:
    """Softmax and its like before 13: all dims from the axis on are one."""
    x, axis = node.input(0), node.attr("axis")
    rank = None if x is None else x.rank
    if x is None or rank is None or graph.opset() >= _SOFTMAX or node.parameter_reason is not None:
        return None
    first = axis + rank if axis < 0 else axis
    if not 0 <= first < rank - 1:
        return None  # it flattens nothing
    name, since = node.name or None, graph.model.peek_serial()
    shape = graph.op.Shape(x)
    rows = graph.add_node("Flatten", (x,), attributes={"axis": first}, name=name)
    made = graph.add_node(node.op_type, (rows.output,), attributes={"axis": 1}, name=name)
    result = graph.op.Reshape(made.output, shape)
    graph.replace(node, [result], since)
    return _producers(shape, rows.output, made.output, result)


def _slice_shape(graph: Graph, node: Node) -> list[Node] | None:
    """Shape of some dims: a Slice of all dims."""
    x, start, end = node.input(0), node.attr("start"), node.attr("end")
    if x is None or node.parameter_reason is not None or not (start or end is not None):
        return None
    since = graph.model.peek_serial()
    shape = graph.op.Shape(x, name=node.name or None)
    last = np.iinfo(np.int64).max if end is None else end
    dims = graph.op.Slice(shape, _ints(start or 0), _ints(last), _ints(0))
    graph.replace(node, [dims], since)
    return _producers(shape, dims)


def _spread_pads(graph: Graph, node: Node) -> list[Node] | None:
    """Pad of some axes: zeros for the others, with the given pads scattered into them."""
    x, pads, value, axes = (node.input(at) for at in range(4))
    rank = None if x is None else x.rank
    if pads is None or axes is None or rank is None or node.parameter_reason is not None:
        return None
    since = graph.model.peek_serial()
    places = axes if axes.dtype == _INT64 else graph.op.Cast(axes, to=_INT64)
    first = graph.op.Mod(places, _ints(rank))
    second = graph.op.Add(first, _ints(rank))
    both = graph.op.Concat(first, second, axis=0)
    zeros = graph.constant(np.zeros(2 * rank, np.int64), "pads")
    whole = graph.op.ScatterElements(zeros, both, pads, axis=0)
    padded = graph.op.Pad(x, whole, value, mode=node.attr("mode"), name=node.name or None)
    graph.replace(node, [padded], since)
    return _producers(places if places is not axes else None, first, second, both, whole, padded)


def _ints(number: int) -> np.ndarray[Any, Any]:
    return np.array([number], np.int64)


def _producers(*values: Value | None) -> list[Node]:
    found = (None if value is None else value.producer for value in values)
    return [node for node in found if node is not None and node.graph is not None]


_INT64: Final = 7
_SOFTMAX: Final = 13

LOWERINGS: Final[Mapping[str, Lowering]] = {
    **dict.fromkeys(EXACT_BODIES, expand),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _flatten_softmax),
    "Pad": _spread_pads,
    "Shape": _slice_shape,
}
"""By operator of the default domain; each gives the same bits."""


def lowered(node: Node, *, numerics: Numerics = Numerics.EXACT) -> list[Node] | None:
    """Put other nodes in the place of one, and return them; None if there is no lowering.

    Args:
        node: a node of the default domain.
        numerics: EXACT allows the table; beyond it, the function body of every operator that ONNX
            defines by one.
    """
    lowering = LOWERINGS.get(node.op_type)
    if lowering is None and numerics is not Numerics.EXACT:
        lowering = expand
    return None if lowering is None else lowering(node.owner, node)
