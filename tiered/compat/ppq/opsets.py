"""Opset and OpSocket: the version of an operator, and which of its operands can be quantised."""

from __future__ import annotations

from typing import Final, NamedTuple

from tiered.graph import ELEMENTWISE, Node
from tiered.graph.core.dtypes import is_float
from tiered.graph.queries.op_traits import REARRANGES


class Opset(NamedTuple):
    """A domain and the version that the model imports."""

    domain: str
    version: int

    def onnx_opset_version(self) -> int:
        """Return the version; -1 of another domain than ONNX's."""
        return self.version if self.domain == "ai.onnx" else -1


_NEVER: Final = {
    "BatchNormalization": (1, 2, 3, 4),
    "Clip": (1, 2),
    "Pad": (2,),
    "Resize": (1, 2),
}
"""Float operands that are parameters of the operator, not data."""
_MOVING: Final = REARRANGES | {"MaxPool"}
"""Operators whose first output holds elements of the first input."""
_NOT_QUANTIZED: Final = frozenset({"Cast", "DequantizeLinear", "QuantizeLinear", "Shape", "Size"})


class OpSocket(NamedTuple):
    """The operands of an operation that can be quantised.

    Attributes:
        inputs, outputs: for each, whether it is a float tensor of data.
        links: pairs (input, output) that hold the same elements or map them one by one, so that
            their scales belong together.
    """

    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]
    links: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, node: Node) -> OpSocket:
        """Return the socket of a node."""
        never = _NEVER.get(node.op_type, ()) if not node.domain else ()
        is_open = node.op_type not in _NOT_QUANTIZED
        inputs = tuple(
            is_open and at not in never and value is not None and _is_float(value.dtype)
            for at, value in enumerate(node.inputs)
        )
        outputs = tuple(
            is_open and value is not None and _is_float(value.dtype) for value in node.outputs
        )
        is_linked = not node.domain and (node.op_type in _MOVING or node.op_type in ELEMENTWISE)
        pairs = [(at, 0) for at in range(1 if node.op_type in _MOVING else len(inputs))]
        links = tuple(pair for pair in pairs if is_linked and inputs[pair[0]] and outputs[0])
        return cls(inputs, outputs, links)


def _is_float(dtype: int | None) -> bool:
    from onnx import helper

    return dtype is not None and is_float(helper.tensor_dtype_to_np_dtype(dtype))


OpSocker = OpSocket  # PPQ's documents misspell it
