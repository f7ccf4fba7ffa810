"""Whether a node always computes the same from the same inputs, and at each place of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx.defs import OpSchema

from tiered.graph.core.dtypes import DataType
from tiered.graph.opset.aspect import Aspect
from tiered.graph.queries.op_traits import BODIES, CASTS, RANDOM, SAME_AT_ALL_PLACES

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
    training. onnxruntime's Cast leaves the memory of its result as it was if `saturate` is neither
    0 nor 1 (measured with 1.32).
    """
    schema = node.schema
    if schema is None:
        return DETERMINISTIC.of(node) is not None
    if node.domain == "" and node.op_type == "Dropout":
        training = node.operand("training_mode")
        return training is None or (training.const is not None and not training.const.any())
    if node.domain == "" and node.op_type in RANDOM:
        return False
    if node.domain == "" and node.op_type in CASTS:
        return node.attr("saturate", True) in (0, 1)
    if node.domain == "" and node.op_type in _AS_THEIR_BODIES:
        return all(is_deterministic(inner) for body in node.bodies for inner in body.nodes)
    determinism = getattr(schema, "node_determinism", None)
    return determinism != OpSchema.NodeDeterminism.NonDeterministic


def is_same_at_all_places(node: Node) -> bool:
    """Return whether onnxruntime gives an element the same bits at each place of a tensor.

    Its Cast to uint32 makes 0 or 2**31 of a number that fits no integer, depending on the place
    (measured with 1.32; the other integers are the same at all places).
    """
    if node.domain or node.op_type not in SAME_AT_ALL_PLACES:
        return False
    if node.op_type not in CASTS or node.output.dtype not in (None, DataType.UINT32):
        return True
    x = node.input(0)
    return x is not None and x.dtype is not None and not DataType(x.dtype).is_float
