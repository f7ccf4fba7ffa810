"""Types of operators that onnx does not know: rules that whoever brings the operator registers.

    def gelu(node: Node) -> ValueType | None:
        x = node.input(0)
        return None if x is None else x.type

    register_type_rule("Gelu", "com.microsoft", gelu)

A rule reads the types of the operands (`value.type`, `value.shape`, `value.elements`) and returns
the type of the first output, or a sequence with the types of several. None means: not known, and
what the file declares stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import onnx
import onnx.checker
import onnx.shape_inference

from tiered.errors import UsageError
from tiered.graph.schema import attributes_of, schema_of
from tiered.graph.types import DataType, ValueType, read_type, tensor_type, write_type

if TYPE_CHECKING:
    from tiered.graph.node import Node

TypeRule = Callable[["Node"], "ValueType | Sequence[ValueType | None] | None"]

_RULES: Final[dict[tuple[str, str], TypeRule]] = {}


def register_type_rule(op_type: str, domain: str, rule: TypeRule) -> None:
    """Add the rule for the outputs of an operator of a domain that is not onnx's own.

    Raises:
        UsageError: onnx infers the operator itself, or there is another rule for it.
    """
    if not domain or schema_of(op_type, domain) is not None:
        raise UsageError(f"onnx knows the types of {domain}.{op_type}: it takes no rule")
    if _RULES.setdefault((domain, op_type), rule) is not rule:
        raise UsageError(f"there is a type rule for {domain}.{op_type} already")


def unregister_type_rule(op_type: str, domain: str) -> None:
    """Take a rule away, as tests do."""
    _RULES.pop((domain, op_type), None)


def has_type_rule(node: Node) -> bool:
    """Tell whether the types of a node come from a registered rule."""
    return (node.domain, node.op_type) in _RULES


def ruled_types(node: Node) -> Mapping[str, ValueType | None]:
    """Return the types of the outputs by name, as far as the registered rule tells."""
    rule = _RULES.get((node.domain, node.op_type))
    try:
        found = None if rule is None else rule(node)
    except (IndexError, ValueError, TypeError, AttributeError):
        # The operands are not as the rule expects them: nothing is known.
        return {}
    if found is None:
        return {}
    types = found if isinstance(found, Sequence) else [found]
    outputs = zip(node.outputs, types, strict=False)
    return {output.name: kind for output, kind in outputs if output is not None}


# --- onnxruntime's operators that are met often ---------------------------------------------------


def _as_first(node: Node) -> ValueType | None:
    data = node.input(0)
    return None if data is None else data.type


def _quantized(node: Node) -> ValueType | None:
    data, zero = node.input(0), node.input(2)
    dtype = DataType.UINT8 if zero is None else zero.dtype
    return None if data is None or dtype is None else tensor_type(dtype, data.shape)


def _dequantized(node: Node) -> ValueType | None:
    data, scale = node.input(0), node.input(1)
    if data is None or scale is None or scale.dtype is None:
        return None
    return tensor_type(scale.dtype, data.shape)


def _with_sum(node: Node) -> Sequence[ValueType | None]:
    data = _as_first(node)
    return (data, None, None, data)


def _as_standard(op_type: str, node: Node) -> ValueType | None:
    """Return what onnx says of a standard operator with the same operands, and its attributes."""
    schema = schema_of(op_type, "", node.owner.opset())
    reads = [value for value in node.inputs if value is not None]
    if schema is None or node.has_references:
        return None
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    proto.op_type, proto.domain = op_type, ""
    del proto.attribute[:]
    proto.attribute.extend(one for one in node.proto.attribute if one.name in attributes_of(schema))
    types = {value.name: write_type(value.type) for value in reads}
    try:
        found = onnx.shape_inference.infer_node_outputs(schema, proto, types)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError):
        return None
    name = node.proto.output[0]
    return read_type(found[name]) if name in found else None


def _product(node: Node) -> ValueType | None:
    factors = []
    for value, name in zip(node.inputs[:2], ("transA", "transB"), strict=True):
        shape = None if value is None else value.shape
        if value is None or shape is None or len(shape) < 2:
            return None
        is_swapped = bool(node.attributes.get(name, 0))
        factors.append((*shape[:-2], shape[-1], shape[-2]) if is_swapped else shape)
    first, second = factors
    if node.attributes.get("transBatchA") or node.attributes.get("transBatchB"):
        return None
    outer = max(first[:-2], second[:-2], key=len)
    if first[:-2] != second[:-2] and first[:-2] and second[:-2]:
        outer = (None,) * len(outer)
    data = node.input(0)
    if data is None or data.dtype is None:
        return None
    return tensor_type(data.dtype, (*outer, first[-2], second[-1]))


for _name in (
    "BiasGelu", "FastGelu", "Gelu", "QuickGelu", "RotaryEmbedding",
):  # fmt: skip
    _RULES["com.microsoft", _name] = _as_first
for _name in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
    _RULES["com.microsoft", _name] = _with_sum
_RULES["com.microsoft", "FusedConv"] = partial(_as_standard, "Conv")
_RULES["com.microsoft", "FusedGemm"] = partial(_as_standard, "Gemm")
_RULES["com.microsoft", "FusedMatMul"] = _product
_RULES["com.microsoft", "QuantizeLinear"] = _quantized
_RULES["com.microsoft", "DequantizeLinear"] = _dequantized
