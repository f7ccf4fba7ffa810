"""Types of what a Loop gives, told from those of its initial values and of its body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tiered.graph.symbols import INVENTED
from tiered.graph.types import Dim, Shape, TensorType, tensor_type

if TYPE_CHECKING:
    from tiered.graph.node import Node
    from tiered.graph.operator_types import Rule, Types
    from tiered.graph.value import Value


def _loop(node: Node, kinds: list[TensorType]) -> Types:
    """Return the types of the states, then of what is collected.

    A state is its initial value, or what the body gives: what the two have in common is sure. onnx
    says nothing of its shape, as each turn may change it.
    """
    (body,) = node.bodies
    states = node.inputs[2:]
    results = [_tensor(value) for value in body.outputs[1:]]
    carried = [
        tensor_type(result.dtype, _common(_tensor(state).shape, result.shape))
        for state, result in zip(states, results, strict=False)
    ]
    collected = [
        tensor_type(row.dtype, None if row.shape is None else (None, *_outside(row.shape)))
        for row in results[len(states) :]
    ]
    return [*carried, *collected]


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
    return tuple(
        [None if isinstance(dim, str) and dim.startswith(INVENTED) else dim for dim in shape]
    )


RULES: Final[dict[str, Rule]] = {"Loop": _loop}
