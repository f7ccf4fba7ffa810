"""Types of QONNX's operators: float32, of the dims that the data and its scales broadcast to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.types import TensorType, tensor_type
from tiered.graph.shape_inference.rules.shape_rule import shape_rule
from tiered.graph.shape_inference.rules.standard_types import broadcast

if TYPE_CHECKING:
    from tiered.graph.core.node import Node

_ELEMENTWISE: Final[Mapping[tuple[str, int], tuple[int, ...]]] = {
    ("BipolarQuant", 2): (0, 1),
    ("MultiThreshold", 2): (0,),
    ("Quant", 4): (0, 1, 2),
    ("Trunc", 5): (0, 1, 2),
    ("Trunc", 7): (0, 1, 2, 4),
}
"""The operands that broadcast to the result, by the operator and its number of operands."""

_OPERATORS: Final = ("BipolarQuant", "MultiThreshold", "Quant", "Trunc")


@shape_rule(*_OPERATORS, domain="qonnx.custom_op.general")
@shape_rule(*_OPERATORS, domain="onnx.brevitas")
def _quantized(node: Node, operands: list[TensorType]) -> TensorType | None:
    if any(kind.dtype != DataType.FLOAT for kind in operands):
        return None
    slots = _ELEMENTWISE[node.op_type, len(operands)]
    shapes = [operands[slot].shape for slot in slots]
    return tensor_type(DataType.FLOAT, broadcast(node.owner.model.dims, shapes))
