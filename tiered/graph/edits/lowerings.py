"""Exact lowerings: nodes of the same opset that take the place of one that an opset has no form of.

`LOWERINGS` is the table. Opset conversion uses it; a legalisation for a target may use it, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.types import write_type
from tiered.graph.opset.earliest import WITH_BROADCAST
from tiered.graph.queries.function_body import EXACT_BODIES, function_body
from tiered.support.errors import ModelError
from tiered.support.numerics import Numerics

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

_FEW: Final = 1024
"""Elements of a constant that is there for its type."""

Lowering = Callable[["Graph", "Node"], "list[Node] | None"]
"""Puts nodes in the place of one, and returns them; None, and nothing is edited, if it cannot."""


def expand(graph: Graph, node: Node) -> list[Node] | None:
    """Put the function body that ONNX defines an operator by in the place of a node.

    The body is converted to the opset of the graph first.
    """
    model: Any = graph.model  # `add` is a method of its only subclass
    mark = model.mark()
    try:
        function = model.add(function_body(node))
        model.set_opset("", graph.opset(), function)
    except ModelError:
        model.undo_to(mark)
        return None
    created: list[Node] = graph.inline_call(node, function, {})
    model.remove(function)
    return created


def _softmax_of_one_axis(graph: Graph, node: Node) -> list[Node] | None:
    """Softmax and its like over the dims that the other form means.

    Before 13 all dims from the axis on are one: Flatten, Softmax, Reshape. Since 13 it is one axis,
    which has to be the last one before: Transpose, Softmax, Transpose.
    """
    x = node.input(0)
    if x is None or node.parameter_reason is not None:
        return None
    before = graph.opset() < _SOFTMAX
    return _flatten_softmax(graph, node, x) if before else _transpose_softmax(graph, node, x)


def _flatten_softmax(graph: Graph, node: Node, x: Value) -> list[Node] | None:
    axis, rank = node.attr("axis"), x.rank
    if rank is not None:
        axis = axis + rank if axis < 0 else axis
        if not 0 <= axis < rank - 1:
            return None  # it flattens nothing
    elif x.producer is not None and x.producer.is_op("Flatten"):
        return None
    sizes, is_computed = _sizes(x), graph.opset() >= _COMPUTED_SHAPES
    if sizes is None and not is_computed:
        return None
    name, since = node.name, graph.model.peek_serial()
    shape = graph.op.Shape(x) if is_computed else None
    rows = graph.add_node("Flatten", (x,), attributes={"axis": axis}, name=name)
    made = graph.add_node(node.op_type, (rows.output,), attributes={"axis": 1}, name=name)
    if shape is None:
        back = graph.add_node("Reshape", (made.output,), attributes={"shape": sizes})
        graph.replace(node, [back.output], since)
        return [rows, made, back]
    result = graph.op.Reshape(made.output, shape)
    graph.replace(node, [result], since)
    return _producers(shape, rows.output, made.output, result)


def _sizes(x: Value) -> list[int] | None:
    """Return the target of a Reshape to the shape of a value; None if no constant is one."""
    dims = [dim if isinstance(dim, int) else -1 for dim in x.shape or ()]
    return dims if dims and dims.count(-1) <= 1 and 0 not in dims else None


def _transpose_softmax(graph: Graph, node: Node, x: Value) -> list[Node] | None:
    axis, rank = node.attr("axis"), x.rank
    if not rank or axis % rank == rank - 1:
        return None
    perm = [*range(rank)]
    perm[axis % rank], perm[-1] = perm[-1], perm[axis % rank]
    name, since = node.name, graph.model.peek_serial()
    first = graph.op.Transpose(x, perm=perm)
    made = graph.add_node(node.op_type, (first,), attributes={"axis": -1}, name=name)
    result = graph.op.Transpose(made.output, perm=perm)
    graph.replace(node, [result], since)
    return _producers(first, made.output, result)


def _align_operand(graph: Graph, node: Node) -> list[Node] | None:
    """Operators before 7 with `broadcast` and `axis`: dims of 1 behind those of the second one."""
    first, second, axis = node.input(0), node.input(1), node.attribute_protos().get("axis")
    if first is None or second is None or axis is None or node.parameter_reason is not None:
        return None
    if first.rank is None or second.rank is None or not node.attr("broadcast"):
        return None
    behind = first.rank - axis.i - second.rank
    if axis.i < 0 or behind <= 0:
        return None
    return _with_dims_behind(graph, node, second, behind, {"broadcast": 1})


def _align_slope(graph: Graph, node: Node) -> list[Node] | None:
    """PRelu before 7 has a slope for each channel: dims of 1 behind it."""
    x, slope = node.input(0), node.input(1)
    if x is None or slope is None or graph.opset() >= _BROADCASTING:
        return None
    if x.rank is None or x.rank <= 2 or slope.rank != 1:
        return None
    return _with_dims_behind(graph, node, slope, x.rank - 2, {})


def _with_dims_behind(
    graph: Graph, node: Node, second: Value, count: int, attributes: Mapping[str, Any]
) -> list[Node]:
    rank, since = second.rank, graph.model.peek_serial()
    assert rank is not None
    axes = {"axes": [*range(rank, rank + count)]}
    wide = graph.add_node("Unsqueeze", (second,), attributes=axes)
    operands = (node.input(0), wide.output)
    made = graph.add_node(node.op_type, operands, attributes=attributes, name=node.name)
    graph.replace(node, [made.output], since)
    return _producers(wide.output, made.output)


def _reduce_bools(graph: Graph, node: Node) -> list[Node] | None:
    """ReduceMax and ReduceMin of bool: of uint8, where false is least and true is largest."""
    x = node.input(0)
    if x is None or x.dtype != DataType.BOOL or node.parameter_reason is not None:
        return None
    since = graph.model.peek_serial()
    numbers = graph.op.Cast(x, to=DataType.UINT8)
    operands = (numbers, *node.inputs[1:])
    made = graph.add_node(node.op_type, operands, attributes=dict(node.attributes), name=node.name)
    result = graph.op.Cast(made.output, to=DataType.BOOL)
    graph.replace(node, [result], since)
    return _producers(numbers, made.output, result)


def _drop_identity(graph: Graph, node: Node) -> list[Node] | None:
    """Identity of a type that an opset does not take: the operand itself, where it has a name."""
    x = node.input(0)
    if x is None:
        return None
    if node.output.is_graph_output and (not x.can_become_output or x.graph is not graph):
        return _sequence_as_it_is(graph, node, x)
    graph.replace(node, [x])
    return []


def _sequence_as_it_is(graph: Graph, node: Node, x: Value) -> list[Node] | None:
    """Identity of a sequence with a name of its own: a tensor is inserted, and erased again."""
    known = write_type(x.type).sequence_type.elem_type.tensor_type
    if not known.elem_type:
        return None
    # Of the declared size, if it is small: then the shape of the elements stays known.
    sizes = [dim.dim_value for dim in known.shape.dim]
    is_small = math.prod(sizes) <= _FEW
    array = np.zeros(sizes if is_small else (), DataType(known.elem_type).numpy)
    if array.dtype.kind in "OSU":
        return None
    since = graph.model.peek_serial()
    first = np.array(0, np.int64)
    longer = graph.op.SequenceInsert(x, array, first)
    result = graph.op.SequenceErase(longer, first, name=node.name)
    graph.replace(node, [result], since)
    return _producers(longer, result)


def _slice_shape(graph: Graph, node: Node) -> list[Node] | None:
    """Shape of some dims: a Slice of all dims."""
    x, start, end = node.input(0), node.attr("start"), node.attr("end")
    if x is None or node.parameter_reason is not None or not (start or end is not None):
        return None
    since = graph.model.peek_serial()
    shape = graph.op.Shape(x, name=node.name)
    last = np.iinfo(np.int64).max if end is None else end
    dims = graph.op.Slice(shape, _ints(start), _ints(last), _ints(0))
    graph.replace(node, [dims], since)
    return _producers(shape, dims)


def _spread_pads(graph: Graph, node: Node) -> list[Node] | None:
    """Pad of some axes: zeros for the others, with the given pads scattered into them."""
    x, pads, value, axes = (node.input(at) for at in range(4))
    rank = None if x is None else x.rank
    if pads is None or axes is None or rank is None or node.parameter_reason is not None:
        return None
    since = graph.model.peek_serial()
    places = axes if axes.dtype == DataType.INT64 else graph.op.Cast(axes, to=DataType.INT64)
    first = graph.op.Mod(places, _ints(rank))
    second = graph.op.Add(first, _ints(rank))
    both = graph.op.Concat(first, second, axis=0)
    zeros = graph.constant(np.zeros(2 * rank, np.int64), "pads")
    whole = graph.op.ScatterElements(zeros, both, pads, axis=0)
    padded = graph.op.Pad(x, whole, value, mode=node.attr("mode"), name=node.name)
    graph.replace(node, [padded], since)
    return _producers(places if places is not axes else None, first, second, both, whole, padded)


def _ints(number: int) -> np.ndarray[Any, Any]:
    return np.array([number], np.int64)


def _producers(*values: Value | None) -> list[Node]:
    found = (None if value is None else value.producer for value in values)
    return [node for node in found if node is not None]


_SOFTMAX: Final = 13
_BROADCASTING: Final = 7
_COMPUTED_SHAPES: Final = 5
"""The opset since which the target of a Reshape is an operand."""

LOWERINGS: Final[Mapping[str, Lowering]] = {
    **dict.fromkeys(EXACT_BODIES, expand),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _softmax_of_one_axis),
    **dict.fromkeys(WITH_BROADCAST, _align_operand),
    "Identity": _drop_identity,
    "PRelu": _align_slope,
    "Pad": _spread_pads,
    "ReduceMax": _reduce_bools,
    "ReduceMin": _reduce_bools,
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
