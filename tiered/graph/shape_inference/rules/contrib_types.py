"""Types of operators that onnx does not infer: onnxruntime's, and by signature those of ai.onnx.ml.

The rules read what they need of the operands (`value.type`, `value.dtype`, `value.shape`), so that
an unknown type of another operand does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import onnx
import onnx.checker
import onnx.shape_inference

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.schema import Schema, attributes_of, schema_of
from tiered.graph.core.types import (
    Shape,
    TensorType,
    ValueType,
    read_type,
    tensor_type,
    write_type,
)
from tiered.graph.shape_inference.rules.data import operand
from tiered.graph.shape_inference.rules.shape_rule import TypeRule, shape_rule
from tiered.graph.shape_inference.rules.standard_types import broadcast

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

_rule = partial(shape_rule, domain="com.microsoft")

_Output = int | DataType
"""The dtype of an output: that of the input of this index, or a fixed one."""


# --- the same type as an operand ------------------------------------------------------------------


@_rule(
    "BiasGelu", "FastGelu", "Gelu", "Inverse", "QLinearLeakyRelu", "QLinearSigmoid",
    "QLinearSoftmax", "QuickGelu", "RotaryEmbedding", "SampleOp", "ScaledSiLU", "Trilu",
)  # fmt: skip
def _as_first(node: Node) -> ValueType | None:
    return operand(node, 0).type


def _tensor(dtype: int | None, shape: Shape | None) -> TensorType | None:
    return None if dtype is None else tensor_type(dtype, shape)


@_rule("QuantizeLinear")
def _quantized(node: Node) -> ValueType | None:
    zero = node.input(2)
    return _tensor(DataType.UINT8 if zero is None else zero.dtype, operand(node, 0).shape)


@_rule("DequantizeLinear")
def _dequantized(node: Node) -> ValueType | None:
    return _tensor(operand(node, 1).dtype, operand(node, 0).shape)


@_rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def _with_sum(node: Node) -> Sequence[ValueType | None]:
    data = _as_first(node)
    return (data, None, None, data)


# --- as an operator of onnx -----------------------------------------------------------------------


def _as_standard(
    op_type: str, node: Node, types: Mapping[str, ValueType | None] | None = None
) -> ValueType | None:
    """Return the first output's type as onnx infers it for an operator with the same attributes.

    Args:
        op_type: the operator of onnx.
        node: the node that provides attributes and operands.
        types: types of other operands by name, in place of the node's own.
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


@_rule("FusedConv")
def _fused_conv(node: Node) -> ValueType | None:
    return _as_standard("Conv", node)


@_rule("FusedGemm")
def _fused_gemm(node: Node) -> ValueType | None:
    return _as_standard("Gemm", node)


# --- products of matrices -------------------------------------------------------------------------


@_rule("FusedMatMul", "TransposeMatMul")
def _product(node: Node) -> ValueType | None:
    return _matrix(node, list(node.inputs[:2]), operand(node, 0).dtype)


def _matrix(node: Node, values: Sequence[Value | None], dtype: int | None) -> ValueType | None:
    """Return the type of a matrix product; attributes of the node may transpose the factors."""
    factors = matrix_factors(node, values)
    if factors is None:
        return None
    first, second = factors
    outer = max(first[:-2], second[:-2], key=len)
    if first[:-2] != second[:-2] and first[:-2] and second[:-2]:
        outer = (None,) * len(outer)
    return _tensor(dtype, (*outer, first[-2], second[-1]))


def matrix_factors(node: Node, values: Sequence[Value | None]) -> tuple[Shape, Shape] | None:
    """Return the shapes of two factors as they are multiplied, after transposes by attributes."""
    factors = list[Shape]()
    for value, name in zip(values, ("transA", "transB"), strict=True):
        shape = None if value is None else value.shape
        if shape is None or len(shape) < 2:
            return None
        if node.attributes.get(name.replace("trans", "transBatch"), 0):
            shape = (*shape[1:-1], shape[0], shape[-1])
        is_swapped = bool(node.attributes.get(name, 0))
        factors.append((*shape[:-2], shape[-1], shape[-2]) if is_swapped else shape)
    first, second = factors
    return first, second


@_rule("QLinearAdd", "QLinearMul")
def _quantized_pair(node: Node) -> ValueType | None:
    """The inputs are A, its scale and zero point, B with the same two, and those of the output."""
    return _broadcast(node, 0, 3)


@_rule("QLinearWhere")
def _quantized_where(node: Node) -> ValueType | None:
    """The inputs are the condition, X, its scale and zero point, and the same three of Y."""
    return _broadcast(node, 1, 4, 0)


def _broadcast(node: Node, *slots: int) -> ValueType | None:
    shapes = [operand(node, slot).shape for slot in slots]
    return _tensor(operand(node, slots[0]).dtype, broadcast(node.owner.model.dims, shapes))


@_rule("QLinearGlobalAveragePool")
def _quantized_global_pool(node: Node) -> ValueType | None:
    data = operand(node, 0)
    if data.shape is None or node.attributes["channels_last"]:
        return None
    return _tensor(data.dtype, (*data.shape[:2], *[1] * (len(data.shape) - 2)))


@_rule("QLinearAveragePool")
def _quantized_pool(node: Node) -> ValueType | None:
    """The output has the shape of a float AveragePool, and the dtype of the input."""
    data = operand(node, 0)
    if node.attributes.get("channels_last"):
        return None
    if node.attributes.get("ceil_mode"):
        # onnx counts windows that start in the padding on the right; the kernel ignores them.
        unknown = None if data.shape is None else (*data.shape[:2], *[None] * (len(data.shape) - 2))
        return _tensor(data.dtype, unknown)
    pooled = _as_standard("AveragePool", node, {data.name: tensor_type(DataType.FLOAT, data.shape)})
    return _tensor(data.dtype, pooled.shape) if isinstance(pooled, TensorType) else None


@_rule("QLinearConcat")
def _quantized_concat(node: Node) -> ValueType | None:
    """The inputs are scale and zero point of the output, then each part with its own two."""
    types = {value.name: value.type for value in node.inputs[2::3] if value is not None}
    joined = _as_standard("Concat", node, types)
    if not isinstance(joined, TensorType):
        return None
    return _tensor(operand(node, 1).dtype, joined.shape)


@_rule("QGemm")
def _quantized_gemm(node: Node) -> ValueType | None:
    """The output is float if it has no zero point."""
    zero = node.input(8)
    factors = [node.input(0), node.input(3)]
    return _matrix(node, factors, DataType.FLOAT if zero is None else zero.dtype)


@_rule("MultiHeadAttention")
def _heads(node: Node) -> ValueType | None:
    """The values have rank 3, or 4 if they are split into heads."""
    q, v = operand(node, 0), operand(node, 2)
    if q.rank != 3 or v.rank not in (3, 4):
        return None
    width, heads = v.dim(-1), node.attributes["num_heads"]
    if v.rank == 4:
        width = width * heads if isinstance(width, int) else None
    return _tensor(q.dtype, (q.dim(0), q.dim(1), width))


@_rule("EmbedLayerNormalization")
def _embedded(node: Node) -> Sequence[ValueType | None]:
    """The outputs are a vector for each id, a mask index for each sequence, and the sum."""
    ids, table = operand(node, 0).shape, operand(node, 2)
    if ids is None:
        return ()
    vectors = _tensor(table.dtype, (*ids, table.dim(1)))
    return (vectors, tensor_type(DataType.INT32, ids[:1]), vectors)


@_rule("GroupQueryAttention")
def _heads_with_past(node: Node) -> Sequence[ValueType | None]:
    """The outputs have the type of q, and caches of unknown length."""
    past = operand(node, 3)
    if past.rank != 4:
        return ()
    cache = _tensor(past.dtype, (past.dim(0), past.dim(1), None, past.dim(3)))
    return (operand(node, 0).type, cache, cache)


@_rule("Attention")
def _packed_heads(node: Node) -> Sequence[ValueType | None]:
    """The weight has the matrices of queries, keys and values side by side."""
    x, weight, past = operand(node, 0), operand(node, 1), node.input(4)
    if x.rank != 3:
        return ()
    width, sizes = weight.dim(-1), node.attributes.get("qkv_hidden_sizes")
    if sizes or not isinstance(width, int):
        width = sizes[2] if sizes else None
    else:
        width //= 3
    output = _tensor(x.dtype, (x.dim(0), x.dim(1), width))
    if past is None or past.shape is None or len(past.shape) != 5:
        return (output,)
    return (output, _tensor(x.dtype, (*past.shape[:3], None, past.shape[4])))


@_rule("MatMulNBits")
def _product_of_blocks(node: Node) -> ValueType | None:
    """The packed matrix has N columns."""
    x = operand(node, 0)
    return _tensor(x.dtype, (*x.shape[:-1], node.attributes["N"])) if x.shape else None


@_rule("DynamicQuantizeMatMul", "MatMulIntegerToFloat")
def _dynamic_product(node: Node) -> ValueType | None:
    return _matrix(node, list(node.inputs[:2]), DataType.FLOAT)


# --- the dtype alone ------------------------------------------------------------------------------


def _dtypes_alone(*outputs: _Output) -> TypeRule:
    """Return the rule for outputs with known dtypes and unknown shapes."""

    def rule(node: Node) -> Sequence[ValueType | None]:
        return [_dtype_alone(node, output) for output in outputs]

    return rule


def _dtype_alone(node: Node, output: _Output) -> ValueType | None:
    if isinstance(output, DataType):
        return tensor_type(output, None)
    return _tensor(operand(node, output).dtype, None)


@_rule("MurmurHash3")
def _hashes(node: Node) -> ValueType | None:
    """Each element has one hash."""
    is_signed = not node.attributes.get("positive", True)
    return tensor_type(DataType.INT32 if is_signed else DataType.UINT32, operand(node, 0).shape)


@_rule("Tokenizer")
def _tokens(node: Node) -> ValueType | None:
    """The last dim is the number of tokens in the longest string."""
    shape = operand(node, 0).shape
    return tensor_type(DataType.STRING, None if shape is None else (*shape, None))


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
    _rule(_name)(_dtypes_alone(*_outputs))


# --- by signature ---------------------------------------------------------------------------------

_CLASSIFIERS: Final = ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier")


def types_by_signature(node: Node, schema: Schema) -> dict[str, ValueType | None]:
    """Return the types of outputs by name, with the dtypes that follow from the schema.

    A dtype is the only one that the schema allows, or that of an input of the same type parameter.
    The dtype of class labels follows from the attribute that lists them.
    """
    dtypes: dict[str, int | None] = {
        constraint.type_param_str: _only_dtype(constraint.allowed_type_strs)
        for constraint in schema.type_constraints
    }
    for formal, value in zip(schema.inputs, node.inputs, strict=False):
        if value is not None and value.dtype is not None:
            dtypes[formal.type_str] = value.dtype
    if node.op_type in _CLASSIFIERS:
        has_strings = bool(node.attributes.get("classlabels_strings"))
        dtypes["T2"] = DataType.STRING if has_strings else DataType.INT64
    found: dict[str, ValueType | None] = {}
    for formal, value in zip(schema.outputs, node.outputs, strict=False):
        dtype = dtypes.get(formal.type_str) or _only_dtype([formal.type_str])
        if value is not None and dtype is not None:
            found[value.name] = tensor_type(dtype, None)
    return found


def _only_dtype(types: Sequence[str]) -> int | None:
    """Return the dtype of the only allowed type if it is a tensor."""
    match = re.fullmatch(r"tensor\((\w+)\)", next(iter(types))) if len(types) == 1 else None
    return None if match is None else onnx.TensorProto.DataType.Value(match[1].upper())
