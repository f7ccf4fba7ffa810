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

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import onnx
import onnx.checker
import onnx.shape_inference

from tiered.errors import UsageError
from tiered.graph.core.dtypes import DataType
from tiered.graph.core.schema import Schema, attributes_of, schema_of
from tiered.graph.core.types import (
    OpaqueType,
    TensorType,
    ValueType,
    read_type,
    tensor_type,
    write_type,
)
from tiered.graph.shape_inference.rules.standard import broadcast

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

TypeRule = Callable[["Node"], "ValueType | Sequence[ValueType | None] | None"]

_RULES: Final[dict[tuple[str, str], TypeRule]] = {}

_Output = int | DataType
"""The dtype of an output: that of an input, by its place, or one that is always the same."""


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
    types = [found] if isinstance(found, TensorType | OpaqueType) else found
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


def _as_standard(
    op_type: str, node: Node, types: Mapping[str, ValueType | None] | None = None
) -> ValueType | None:
    """Return what onnx says of a standard operator with the same attributes.

    Args:
        op_type: the operator.
        node: whose attributes, and first output.
        types: the operands by name, if they are not the node's own.
    """
    schema = schema_of(op_type, "", node.owner.opset())
    if schema is None or node.has_references:
        return None
    reads = {value.name: value.type for value in node.inputs if value is not None}
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    proto.op_type, proto.domain = op_type, ""
    if types is not None:
        reads = dict(types)
        proto.input[:] = [name for name in node.proto.input if name in types]
    del proto.attribute[:]
    proto.attribute.extend(one for one in node.proto.attribute if one.name in attributes_of(schema))
    written = {name: write_type(kind) for name, kind in reads.items()}
    try:
        found = onnx.shape_inference.infer_node_outputs(schema, proto, written)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError):
        return None
    name = node.proto.output[0]
    return read_type(found[name]) if name in found else None


def _product(node: Node) -> ValueType | None:
    data = node.input(0)
    return None if data is None else _matrix(node, list(node.inputs[:2]), data.dtype)


def _matrix(node: Node, values: Sequence[Value | None], dtype: int | None) -> ValueType | None:
    """Return the type of a product of matrices, whose last dims the node may change round."""
    factors = []
    for value, name in zip(values, ("transA", "transB"), strict=True):
        shape = None if value is None else value.shape
        if value is None or shape is None or len(shape) < 2:
            return None
        if node.attributes.get(name.replace("trans", "transBatch"), 0) and len(shape) > 2:
            shape = (*shape[1:-1], shape[0], shape[-1])
        is_swapped = bool(node.attributes.get(name, 0))
        factors.append((*shape[:-2], shape[-1], shape[-2]) if is_swapped else shape)
    first, second = factors
    outer = max(first[:-2], second[:-2], key=len)
    if first[:-2] != second[:-2] and first[:-2] and second[:-2]:
        outer = (None,) * len(outer)
    return None if dtype is None else tensor_type(dtype, (*outer, first[-2], second[-1]))


def _quantised_pair(node: Node) -> ValueType | None:
    """QLinearAdd and QLinearMul: A, its scale and zero point, B and its own, those of C."""
    return _broadcast(node, 0, 3)


def _quantised_where(node: Node) -> ValueType | None:
    """QLinearWhere: the condition, X, its scale and zero point, Y and its own, those of Z."""
    return _broadcast(node, 1, 4, 0)


def _broadcast(node: Node, *slots: int) -> ValueType | None:
    values = [node.input(slot) for slot in slots]
    shapes = [None if value is None else value.shape for value in values]
    dtype = None if values[0] is None else values[0].dtype
    dims = node.owner.model.dims
    return None if dtype is None else tensor_type(dtype, broadcast(dims, shapes))


def _quantised_global_pool(node: Node) -> ValueType | None:
    data = node.input(0)
    if data is None or data.dtype is None or data.shape is None or node.attributes["channels_last"]:
        return None
    return tensor_type(data.dtype, (*data.shape[:2], *[1] * (len(data.shape) - 2)))


def _quantised_pool(node: Node) -> ValueType | None:
    """QLinearAveragePool: as a pool of numbers, in integers."""
    data = node.input(0)
    if data is None or data.dtype is None or node.attributes.get("channels_last"):
        return None
    if node.attributes.get("ceil_mode"):
        # onnx counts windows that start in the padding on the right, which are ignored.
        unknown = None if data.shape is None else (*data.shape[:2], *[None] * (len(data.shape) - 2))
        return tensor_type(data.dtype, unknown)
    numbers = tensor_type(DataType.FLOAT, data.shape)
    pooled = _as_standard("AveragePool", node, {data.name: numbers})
    return tensor_type(data.dtype, pooled.shape) if isinstance(pooled, TensorType) else None


def _quantised_concat(node: Node) -> ValueType | None:
    """QLinearConcat: scale and zero point of Y, then the same of each part, after it."""
    parts, zero = node.inputs[2::3], node.input(1)
    types = {value.name: value.type for value in parts if value is not None}
    joined = _as_standard("Concat", node, types)
    if zero is None or zero.dtype is None or not isinstance(joined, TensorType):
        return None
    return tensor_type(zero.dtype, joined.shape)


def _quantised_gemm(node: Node) -> ValueType | None:
    """QGemm: of numbers if no zero point is given for them."""
    zero = node.input(8)
    factors = [node.input(0), node.input(3)]
    return _matrix(node, factors, DataType.FLOAT if zero is None else zero.dtype)


def _heads(node: Node) -> ValueType | None:
    """MultiHeadAttention of queries, keys and values, the latter two in heads or not."""
    q, v = node.input(0), node.input(2)
    if q is None or v is None or q.dtype is None or q.rank != 3 or v.rank not in (3, 4):
        return None
    width, heads = v.dim(-1), node.attributes["num_heads"]
    if v.rank == 4:
        width = width * heads if isinstance(width, int) else None
    return tensor_type(q.dtype, (q.dim(0), q.dim(1), width))


def _embedded(node: Node) -> Sequence[ValueType | None]:
    """EmbedLayerNormalization: a vector for each id, one number a sequence, and the sum."""
    ids, table = node.input(0), node.input(2)
    if ids is None or table is None or table.dtype is None or ids.shape is None:
        return ()
    vectors = tensor_type(table.dtype, (*ids.shape, table.dim(1)))
    return (vectors, tensor_type(DataType.INT32, ids.shape[:1]), vectors)


def _heads_with_past(node: Node) -> Sequence[ValueType | None]:
    """GroupQueryAttention: as q, and keys and values of which it is not said how many there are."""
    q, past = node.input(0), node.input(3)
    if q is None or past is None or past.dtype is None or past.rank != 4:
        return ()
    cache = tensor_type(past.dtype, (past.dim(0), past.dim(1), None, past.dim(3)))
    return (q.type, cache, cache)


def _packed_heads(node: Node) -> Sequence[ValueType | None]:
    """Attention: of x and the matrices of queries, keys and values side by side, and its cache."""
    x, weight, past = node.input(0), node.input(1), node.input(4)
    if x is None or weight is None or x.dtype is None or x.rank != 3:
        return ()
    width, sizes = weight.dim(-1), node.attributes.get("qkv_hidden_sizes")
    if sizes or not isinstance(width, int):
        width = sizes[2] if sizes else None
    else:
        width //= 3
    made = tensor_type(x.dtype, (x.dim(0), x.dim(1), width))
    if past is None or past.shape is None or len(past.shape) != 5:
        return (made,)
    return (made, tensor_type(x.dtype, (*past.shape[:3], None, past.shape[4])))


def _product_of_blocks(node: Node) -> ValueType | None:
    """MatMulNBits: of a matrix with N columns, packed."""
    x = node.input(0)
    if x is None or x.dtype is None or not x.shape:
        return None
    return tensor_type(x.dtype, (*x.shape[:-1], node.attributes["N"]))


def _dynamic_product(node: Node) -> ValueType | None:
    """DynamicQuantizeMatMul and MatMulIntegerToFloat."""
    return _matrix(node, list(node.inputs[:2]), DataType.FLOAT)


def _dtypes_alone(*outputs: _Output) -> TypeRule:
    """Return the rule for outputs of which only the dtype is told."""

    def rule(node: Node) -> Sequence[ValueType | None]:
        return [_dtype_alone(node, output) for output in outputs]

    return rule


def _dtype_alone(node: Node, output: _Output) -> ValueType | None:
    if isinstance(output, DataType):
        return tensor_type(output, None)
    value = node.input(output)
    return None if value is None or value.dtype is None else tensor_type(value.dtype, None)


def _hashes(node: Node) -> ValueType | None:
    """MurmurHash3: a number for each element."""
    data, dtype = node.input(0), DataType.UINT32
    if not node.attributes.get("positive", 1):
        dtype = DataType.INT32
    return None if data is None else tensor_type(dtype, data.shape)


def _tokens(node: Node) -> ValueType | None:
    """Tokenizer: as many words for each text as the longest has, in a dim of their own."""
    data = node.input(0)
    shape = None if data is None or data.shape is None else (*data.shape, None)
    return tensor_type(DataType.STRING, shape)


for _name in (
    "BiasGelu", "FastGelu", "Gelu", "Inverse", "QLinearLeakyRelu", "QLinearSigmoid",
    "QLinearSoftmax", "QuickGelu", "RotaryEmbedding", "SampleOp", "ScaledSiLU", "Trilu",
):  # fmt: skip
    _RULES["com.microsoft", _name] = _as_first
for _name in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
    _RULES["com.microsoft", _name] = _with_sum
_RULES["com.microsoft", "FusedConv"] = partial(_as_standard, "Conv")
_RULES["com.microsoft", "FusedGemm"] = partial(_as_standard, "Gemm")
for _name in ("FusedMatMul", "TransposeMatMul"):
    _RULES["com.microsoft", _name] = _product
for _name in ("QLinearAdd", "QLinearMul"):
    _RULES["com.microsoft", _name] = _quantised_pair
_RULES["com.microsoft", "QLinearWhere"] = _quantised_where
_RULES["com.microsoft", "QLinearGlobalAveragePool"] = _quantised_global_pool
_RULES["com.microsoft", "QLinearAveragePool"] = _quantised_pool
_RULES["com.microsoft", "QLinearConcat"] = _quantised_concat
_RULES["com.microsoft", "QGemm"] = _quantised_gemm
_RULES["com.microsoft", "Attention"] = _packed_heads
_RULES["com.microsoft", "EmbedLayerNormalization"] = _embedded
_RULES["com.microsoft", "GroupQueryAttention"] = _heads_with_past
_RULES["com.microsoft", "MatMulNBits"] = _product_of_blocks
_RULES["com.microsoft", "MultiHeadAttention"] = _heads
for _name in ("DynamicQuantizeMatMul", "MatMulIntegerToFloat"):
    _RULES["com.microsoft", _name] = _dynamic_product
_RULES["com.microsoft", "QuantizeLinear"] = _quantized
_RULES["com.microsoft", "DequantizeLinear"] = _dequantized
_RULES["com.microsoft", "MurmurHash3"] = _hashes
_RULES["com.microsoft", "Tokenizer"] = _tokens
_DTYPES_ALONE: Final[Mapping[str, tuple[_Output, ...]]] = {
    **dict.fromkeys(("CDist", "ConvTransposeWithDynamicPads", "CropAndResize", "ExpandDims"), (0,)),
    **dict.fromkeys(("GatherND", "GridSample", "MatMulBnb4", "MaxpoolWithMask", "MoE"), (0,)),
    **dict.fromkeys(("NhwcMaxPool", "Pad", "Range", "UnfoldTensor"), (0,)),
    "DecoderMaskedMultiHeadAttention": (0, 0, 0),
    "DynamicQuantizeLSTM": (0, 0, 0),
    "DynamicTimeWarping": (DataType.INT32,),
    "GatherBlockQuantized": (2,),
    "MatMulInteger16": (DataType.INT32,),
    "NGramRepeatBlock": (1,),
    "QAttention": (3, 3),
    "QEmbedLayerNormalization": (8, DataType.INT32),
    "QLinearConv": (7,),
    "Unique": (0, DataType.INT64, DataType.INT64),
    "WordConvEmbedding": (1,),
}
for _name, _outputs in _DTYPES_ALONE.items():
    _RULES["com.microsoft", _name] = _dtypes_alone(*_outputs)


# --- operators of onnx that onnx infers nothing of ------------------------------------------------

_CLASSIFIERS: Final = ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier")


def types_by_signature(node: Node, schema: Schema) -> dict[str, ValueType | None]:
    """Return the outputs of an operator of which its signature alone tells the dtype.

    It is what the schema allows if that is one, or that of an input of the same type parameter;
    that of labels follows from the attribute that has them.
    """
    dtypes: dict[str, int | None] = {
        constraint.type_param_str: _only_dtype(constraint.allowed_type_strs)
        for constraint in schema.type_constraints
    }
    for formal, value in zip(schema.inputs, node.inputs, strict=False):
        if value is not None and value.dtype is not None:
            dtypes[formal.type_str] = value.dtype
    if node.op_type in _CLASSIFIERS:
        has_texts = bool(node.attributes.get("classlabels_strings"))
        dtypes["T2"] = DataType.STRING if has_texts else DataType.INT64
    found: dict[str, ValueType | None] = {}
    for formal, value in zip(schema.outputs, node.outputs, strict=False):
        dtype = dtypes.get(formal.type_str) or _only_dtype([formal.type_str])
        if value is not None and dtype is not None:
            found[value.name] = tensor_type(dtype, None)
    return found


def _only_dtype(types: Sequence[str]) -> int | None:
    """Return the dtype of the only type that is allowed, if it is a tensor."""
    match = re.fullmatch(r"tensor\((\w+)\)", next(iter(types))) if len(types) == 1 else None
    return None if match is None else onnx.TensorProto.DataType.Value(match[1].upper())
