"""The trip count of a Loop whose condition follows from constants and the loop's own numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import onnx

from tiered.graph.core.types import TensorType, tensor_type, write_type
from tiered.graph.io.export import export_node
from tiered.graph.queries.op_traits import CLAMPS, COMPARISONS, LOGIC, RING
from tiered.graph.shape_inference.rules.control_flow_types import BODY_DECIDES, loop_turns
from tiered.support.amounts import counted
from tiered.support.errors import RuntimeFailure

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

_EXACT: Final = frozenset(
    {*COMPARISONS, *LOGIC, *CLAMPS, "Abs", "Ceil", "Floor", "Sign"}
    | (RING - {"Sum"})  # sums in any order
    | {"Cast", "Identity", "Not", "Where"}
)
"""Operators that compute the same bits on every runtime, and one element from single elements.

Integer division is left out: by zero, it ends the process.
"""

_ROWS: Final = "iterations"

_IR: Final = 8
"""Every onnxruntime that tiered takes reads it."""


class _ConditionPart(NamedTuple):
    """The part of a Loop that its condition depends on.

    Attributes:
        nodes: of the body, producers first.
        constants: what they read, from the body or around it.
        carried: the places of the carried values among those of the Loop.
    """

    nodes: list[Node]
    constants: list[Value]
    carried: list[int]


def trip_count_of(node: Node, most: int) -> int | str:
    """Return the trip count of a Loop, or the reason why it is unknown.

    If the condition depends only on the counter, on constants of one element and on carried values
    that start as such constants, onnxruntime runs this part of the loop, up to `most` times.

    Args:
        node: a Loop; its body has the inputs and outputs that the standard requires.
        most: larger counts are not computed.
    """
    found = loop_turns(node)
    if found != BODY_DECIDES or most < 1:
        return found
    part = _part(node)
    if part is None:
        return BODY_DECIDES
    from tiered.runtime.session import run

    try:
        count = len(run(_model_of(node, part, most + 1), {})[_ROWS])
    except RuntimeFailure:
        return BODY_DECIDES
    return count if count <= most else f"it runs more than {counted(most, 'time')}"


def _part(node: Node) -> _ConditionPart | None:
    """Return the part that decides; None if something else than constants does."""
    (body,) = node.bodies
    own = set(body.inputs[:2])
    states = {value: at for at, value in enumerate(body.inputs[2:])}
    nodes: set[Node] = set()
    constants: dict[Value, None] = {}
    carried: dict[int, None] = {}
    pending = [body.outputs[0]]
    seen: set[Value] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        producer = value.producer
        if value in states:
            at = states[value]
            if not _is_number(node.inputs[2 + at]):
                return None
            carried[at] = None
            pending.append(body.outputs[1 + at])
        elif _is_number(value):
            constants[value] = None
        elif producer is not None and producer.graph is body and _is_exact(producer):
            nodes.add(producer)
            pending += [read for read in producer.inputs if read is not None]
        elif value not in own:
            return None
    order = [each for each in body.topological_order() if each in nodes]
    return _ConditionPart(order, list(constants), sorted(carried))


def _is_number(value: Value | None) -> bool:
    tensor = None if value is None else value.tensor
    return tensor is not None and tensor.size == 1 and not tensor.is_sparse


def _is_exact(node: Node) -> bool:
    if node.op_type not in _EXACT or node.domain or node.has_references:
        return False
    if node.op_type != "Cast":
        return True
    # What an integer is for a float that it cannot hold depends on the processor.
    source = node.input(0)
    to_float, from_float = (
        dtype is None or onnx.helper.tensor_dtype_to_np_dtype(dtype).kind not in "iub"
        for dtype in (node.attr("to"), None if source is None else source.dtype)
    )
    return to_float or not from_float


def _model_of(node: Node, part: _ConditionPart, most: int) -> onnx.ModelProto:
    """Return a model whose output has one row for each iteration of the part."""
    (body,) = node.bodies
    limit, condition = node.inputs[:2]
    proto = onnx.ModelProto(ir_version=_IR)
    proto.opset_import.add(domain="", version=node.owner.opset())
    graph = proto.graph
    graph.name = "iterations"
    for value in part.constants:
        _add_constant(graph, value, value.name)
    at_most = most if limit is None else min(most, _number(limit))
    graph.initializer.add(name="most", data_type=7, int64_data=[at_most])
    graph.initializer.add(name="first", data_type=9, int32_data=[_number(condition, default=1)])
    for at in part.carried:
        _add_constant(graph, node.inputs[2 + at], f"initial_{at}")
    loop = graph.node.add(op_type="Loop", input=["most", "first"], output=[])
    loop.input.extend(f"initial_{at}" for at in part.carried)
    loop.output.extend(f"last_{at}" for at in part.carried)
    loop.output.append(_ROWS)
    inner = loop.attribute.add(name="body", type=onnx.AttributeProto.GRAPH).g
    inner.name = "iteration"
    for value, kind in _inputs(node, part):
        inner.input.add(name=value.name, type=write_type(kind))
    inner.node.extend(export_node(each) for each in part.nodes)
    returned = [body.outputs[0], *(body.outputs[1 + at] for at in part.carried), body.inputs[0]]
    for place, value in enumerate(returned):
        inner.node.add(op_type="Identity", input=[value.name], output=[f"returned {place}"])
        inner.output.add(name=f"returned {place}")
    graph.output.add(name=_ROWS, type=write_type(tensor_type(7, (None,))))
    return proto


def _inputs(node: Node, part: _ConditionPart) -> Iterator[tuple[Value, TensorType]]:
    """Yield the inputs of the reduced body with their types; the rank of carried ones may grow."""
    counter, condition, *carried = node.bodies[0].inputs
    yield counter, tensor_type(onnx.TensorProto.INT64, counter.shape or ())
    yield condition, tensor_type(onnx.TensorProto.BOOL, condition.shape or ())
    for at in part.carried:
        initial = node.given(2 + at)
        assert initial.tensor is not None
        yield carried[at], tensor_type(initial.tensor.dtype, None)


def _add_constant(graph: onnx.GraphProto, value: Value | None, name: str) -> None:
    assert value is not None
    assert value.tensor is not None
    graph.initializer.add().CopyFrom(onnx.numpy_helper.from_array(value.tensor.numpy(), name))


def _number(value: Value | None, *, default: int = 0) -> int:
    """Return the element of a constant; the default where the operand is absent."""
    if value is None:
        return default
    assert value.tensor is not None
    return int(value.tensor.numpy().item())
