"""Whether a node always computes the same from the same inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx.defs import OpSchema

from tiered.graph.opset.aspect import Aspect
from tiered.graph.queries.op_traits import BODIES, RANDOM

if TYPE_CHECKING:
    from tiered.graph.core.node import Node

# The schemas call these non-deterministic only because they contain, or are defined by, bodies.
_AS_THEIR_BODIES: Final = BODIES | {"AffineGrid"}


DETERMINISTIC: Final[Aspect[str]] = Aspect("deterministic")
"""Operators without a schema that compute the same from the same inputs, and why that is so."""


def is_deterministic(node: Node) -> bool:
    """Return whether a node always computes equal outputs from equal inputs.

    A fixed seed makes no difference: two draws differ. Unknown operators and calls of local
    functions count as random, but those that `DETERMINISTIC` has. A Dropout is random only in
    training.
    """
    schema = node.schema
    if schema is None:
        return DETERMINISTIC.of(node) is not None
    if node.domain == "" and node.op_type == "Dropout":
        training = node.operand("training_mode")
        return training is None or (training.const is not None and not training.const.any())
    if node.domain == "" and node.op_type in RANDOM:
        return False
    if node.domain == "" and node.op_type in _AS_THEIR_BODIES:
        return all(is_deterministic(inner) for body in node.bodies for inner in body.nodes)
    determinism = getattr(schema, "node_determinism", None)
    return determinism != OpSchema.NodeDeterminism.NonDeterministic
