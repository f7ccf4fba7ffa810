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
from typing import TYPE_CHECKING, Final

from tiered.errors import UsageError
from tiered.graph.schema import schema_of
from tiered.graph.types import DataType, ValueType, tensor_type

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


for _name in (
    "BiasGelu", "FastGelu", "Gelu", "QuickGelu", "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization", "RotaryEmbedding",
):  # fmt: skip
    _RULES["com.microsoft", _name] = _as_first
_RULES["com.microsoft", "QuantizeLinear"] = _quantized
_RULES["com.microsoft", "DequantizeLinear"] = _dequantized
