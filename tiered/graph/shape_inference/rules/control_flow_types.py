"""Types of If, Loop and Scan, which follow from their bodies; the trip count of a Loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.types import Dim, Shape, TensorType, tensor_type
from tiered.graph.shape_inference.rules.shape_rule import shape_rule
from tiered.graph.shape_inference.symbolic_dims import is_invented

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value
    from tiered.graph.shape_inference.rules.standard_types import Types

_SCAN_WITHOUT_BATCH: Final = 9
"""The opset version from which a Scan has no batch axis."""

BODY_DECIDES: Final = "the body decides when it ends"
"""Why the trip count of a Loop is unknown, if its condition is computed."""

_UNLIMITED: Final = 1 << 63
"""More than any trip count."""


@shape_rule("Loop")
def _loop(node: Node, _: list[TensorType]) -> Types:
    """Return the types of the loop-carried values, then those of the scan outputs.

    A loop-carried value is its initial value or an output of the body, so only the dims that both
    have are known. onnx infers no shape for it, as each iteration may change it. A scan output has
    one row per iteration.
    """
    (body,) = node.bodies
    count = loop_turns(node)
    length = count if isinstance(count, int) else None
    initial = node.inputs[2:]
    results = [_tensor(value) for value in body.outputs[1:]]
    carried = [
        tensor_type(result.dtype, _common(_tensor(state).shape, result.shape))
        for state, result in zip(initial, results, strict=False)
    ]
    collected = [
        tensor_type(row.dtype, None if row.shape is None else (length, *_outside(row.shape)))
        for row in results[len(initial) :]
    ]
    return [*carried, *collected]


@shape_rule("Scan")
def _scan(node: Node, _: list[TensorType]) -> Types:
    """Return the types of the states (with fixed shapes) then those of the scan outputs."""
    (body,) = node.bodies
    if node.owner.opset() < _SCAN_WITHOUT_BATCH:
        raise ValueError("this version of Scan has a batch axis")
    scanned = node.attr("num_scan_inputs", 0)
    states = len(node.inputs) - scanned
    results = [_tensor(value) for value in body.outputs]
    carried = [_tensor(state) for state in node.inputs[:states]]
    first = _tensor(node.inputs[states]).shape
    axes = node.attr("scan_input_axes", None) or [0] * scanned
    length = None if first is None else first[axes[0]]
    rows = results[states:]
    places = node.attr("scan_output_axes", None) or [0] * len(rows)
    collected = []
    for row, place in zip(rows, places, strict=True):
        shape = None
        if row.shape is not None:
            at = place + len(row.shape) + 1 if place < 0 else place
            dims = _outside(row.shape)
            shape = (*dims[:at], length, *dims[at:])
        collected.append(tensor_type(row.dtype, shape))
    return [*carried, *collected]


@shape_rule("If")
def _if(node: Node, _: list[TensorType]) -> Types:
    """Return the types of the outputs, with the dims that both branches agree on."""
    one, other = [[_tensor(value) for value in body.outputs] for body in node.bodies]
    return [
        tensor_type(a.dtype, None if a.shape is None else _common(_outside(a.shape), b.shape))
        for a, b in zip(one, other, strict=True)
    ]


def body_inputs(node: Node) -> list[tuple[Value, TensorType]]:
    """Return the inputs of the body of a Loop or Scan with the types that follow from the operands.

    Files need not declare these inputs.
    """
    if node.domain:
        return []
    return {"Loop": _loop_inputs, "Scan": _scan_inputs}.get(node.op_type, _no_inputs)(node)


def _no_inputs(node: Node) -> list[tuple[Value, TensorType]]:
    return []


def _loop_inputs(node: Node) -> list[tuple[Value, TensorType]]:
    """Return the inputs of the body of a Loop: the counter, the condition, the carried values.

    A carried value keeps its dtype; each iteration may change its shape.
    """
    if len(node.inputs) != len(node.bodies[0].inputs):
        return []
    counter, condition, *carried = node.bodies[0].inputs
    kinds = [(counter, DataType.INT64), (condition, DataType.BOOL)]
    for value, initial in zip(carried, node.inputs[2:], strict=True):
        if initial is not None and initial.dtype is not None:
            kinds.append((value, DataType(initial.dtype)))
    return [(value, tensor_type(dtype, None)) for value, dtype in kinds]


def _scan_inputs(node: Node) -> list[tuple[Value, TensorType]]:
    """Return the inputs of the body of a Scan with the types that follow from the operands.

    States keep the shapes of their initial values, as the standard requires; a scanned operand
    loses the scan axis.
    """
    (body,), operands = node.bodies, node.inputs
    if node.has_references or len(operands) != len(body.inputs):
        return []
    if node.owner.opset() < _SCAN_WITHOUT_BATCH:
        return []
    scanned = node.attr("num_scan_inputs", 0)
    states = len(operands) - scanned
    if not 0 <= states <= len(operands):
        return []
    axes = [None] * states + list(node.attr("scan_input_axes", None) or [0] * scanned)
    found = []
    for value, operand, axis in zip(body.inputs, operands, axes, strict=False):
        kind = None if operand is None else operand.type
        if not isinstance(kind, TensorType) or value.dtype not in (None, kind.dtype):
            continue
        if kind.shape is None:
            found.append((value, kind))
            continue
        shape = list(kind.shape)
        if axis is not None:
            if not -len(shape) <= axis < len(shape):
                continue
            del shape[axis]
        found.append((value, tensor_type(kind.dtype, tuple(shape))))
    return found


def _tensor(value: Value | None) -> TensorType:
    kind = None if value is None else value.type
    if not isinstance(kind, TensorType):
        raise ValueError("not a tensor, or its type is unknown")
    return kind


def _common(one: Shape | None, other: Shape | None) -> Shape | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple([a if a == b else None for a, b in zip(one, _outside(other), strict=True)])


def _outside(shape: Shape) -> tuple[Dim, ...]:
    """Return the dims as known outside of a body; a name invented in it may be any size there."""
    return tuple([None if is_invented(dim) else dim for dim in shape])


def loop_turns(node: Node) -> int | str:
    """Return the trip count of a Loop, or the reason why it is unknown.

    Args:
        node: a Loop; its body has the inputs and outputs that the standard requires.
    """
    (body,) = node.bodies
    limit, condition = (_scalar(value, _UNLIMITED) for value in node.inputs[:2])
    if (limit is not None and limit <= 0) or condition == 0:
        return 0
    if limit is None:
        return "the number of iterations is not a constant"
    if condition is None:
        return "the condition is not a constant"
    if limit == 1:
        return 1
    again = body.outputs[0]
    while again.producer is not None and again.producer.op_type == "Identity":
        again = again.producer.given(0)
    repeats = 1 if again is body.inputs[1] else _scalar(again, None)
    if repeats is None:
        return BODY_DECIDES
    if not repeats:
        return 1
    return limit if limit < _UNLIMITED else "nothing ends it"


def _scalar(value: Value | None, absent: int | None) -> int | None:
    """Return the element of a constant with one element; None for anything else."""
    if value is None:
        return absent
    tensor = value.tensor
    if tensor is None or tensor.size != 1 or tensor.is_sparse:
        return None
    return int(tensor.numpy().item())
