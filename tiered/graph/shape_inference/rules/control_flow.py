"""Types that go through a body: what an If, Loop or Scan gives, and what a Scan gives its body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tiered.graph.core.types import Dim, Shape, TensorType, tensor_type
from tiered.graph.shape_inference.symbolic_dims import is_invented
from tiered.graph.shape_inference.trip_count import loop_turns

# The version from which a Scan has no axis of batches.
_FLAT_SCAN: Final = 9

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value
    from tiered.graph.shape_inference.rules.standard import Rule, Types


def _loop(node: Node, kinds: list[TensorType]) -> Types:
    """Return the types of the states, then of what is collected.

    A state is its initial value, or what the body gives: what the two have in common is sure. onnx
    says nothing of its shape, as each turn may change it. Rows are as many as there are turns.
    """
    (body,) = node.bodies
    turns = loop_turns(node)
    rows = turns if isinstance(turns, int) else None
    states = node.inputs[2:]
    results = [_tensor(value) for value in body.outputs[1:]]
    carried = [
        tensor_type(result.dtype, _common(_tensor(state).shape, result.shape))
        for state, result in zip(states, results, strict=False)
    ]
    collected = [
        tensor_type(row.dtype, None if row.shape is None else (rows, *_outside(row.shape)))
        for row in results[len(states) :]
    ]
    return [*carried, *collected]


def _scan(node: Node, kinds: list[TensorType]) -> Types:
    """Return the types of the states, which keep their shapes, then of what is collected."""
    (body,) = node.bodies
    if node.owner.opset() < _FLAT_SCAN:
        raise ValueError("there is an axis of batches")
    scanned = node.attr("num_scan_inputs", 0)
    states = len(node.inputs) - scanned
    results = [_tensor(value) for value in body.outputs]
    carried = [_tensor(state) for state in node.inputs[:states]]
    first = _tensor(node.inputs[states]).shape
    axes = node.attr("scan_input_axes", None) or [0] * scanned
    turns = None if first is None else first[axes[0]]
    rows = results[states:]
    places = node.attr("scan_output_axes", None) or [0] * len(rows)
    collected = []
    for row, place in zip(rows, places, strict=True):
        shape = None
        if row.shape is not None:
            at = place + len(row.shape) + 1 if place < 0 else place
            dims = _outside(row.shape)
            shape = (*dims[:at], turns, *dims[at:])
        collected.append(tensor_type(row.dtype, shape))
    return [*carried, *collected]


def _if(node: Node, kinds: list[TensorType]) -> Types:
    """Return the types that both branches give, with the dims that they agree on."""
    one, other = [[_tensor(value) for value in body.outputs] for body in node.bodies]
    return [
        tensor_type(a.dtype, None if a.shape is None else _common(_outside(a.shape), b.shape))
        for a, b in zip(one, other, strict=True)
    ]


def scan_inputs(node: Node) -> list[tuple[Value, TensorType]]:
    """Return the inputs of the body of a Scan with the types of what they are given.

    States keep the shapes of their initial values, as the standard has it; of what is scanned, one
    axis is gone. What nothing is known of is left out.
    """
    bodies, operands = node.bodies, node.inputs
    if node.has_references:
        return []
    scanned = node.attr("num_scan_inputs", 0)
    if not bodies or node.owner.opset() < _FLAT_SCAN or len(operands) != len(bodies[0].inputs):
        return []
    states = len(operands) - scanned
    axes = [None] * states + list(node.attr("scan_input_axes", None) or [0] * scanned)
    found = []
    for value, operand, axis in zip(bodies[0].inputs, operands, axes, strict=False):
        kind = None if operand is None else operand.type
        if not isinstance(kind, TensorType) or kind.shape is None:
            continue
        if value.dtype not in (None, kind.dtype):
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
        raise ValueError("no tensor, or nothing is known of it")
    return kind


def _common(one: Shape | None, other: Shape | None) -> Shape | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple([a if a == b else None for a, b in zip(one, _outside(other), strict=True)])


def _outside(shape: Shape) -> tuple[Dim, ...]:
    """Return dims as they are known outside of a body: a name invented in it is any size."""
    return tuple([None if is_invented(dim) else dim for dim in shape])


RULES: Final[dict[str, Rule]] = {"If": _if, "Loop": _loop, "Scan": _scan}
