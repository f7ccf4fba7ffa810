"""The multiply-adds of a node: what matrix products, convolutions and layers of them cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from tiered.graph.core.node import Node
from tiered.graph.core.value import Value

Dims = Callable[[Value], "tuple[int, ...] | None"]
"""Returns the sizes of the axes of a value; None while they are unknown."""

_PRODUCTS: Final = frozenset({"Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"})
_CONVOLUTIONS: Final = frozenset({"Conv", "ConvInteger", "QLinearConv"})

_MICROSOFT: Final = "com.microsoft"
_FUSED: Final = {
    ("com.microsoft.nchwc", "Conv"): "Conv",
    ("com.ms.internal.nhwc", "Conv"): "Conv",
    ("com.ms.internal.nhwc", "QLinearConv"): "QLinearConv",
    (_MICROSOFT, "FusedConv"): "Conv",
    (_MICROSOFT, "NhwcFusedConv"): "Conv",
    (_MICROSOFT, "QLinearConv"): "QLinearConv",
    (_MICROSOFT, "QGemm"): "Gemm",
    (_MICROSOFT, "MatMulNBits"): "MatMulNBits",
    (_MICROSOFT, "FusedGemm"): "Gemm",
    (_MICROSOFT, "FusedMatMul"): "MatMul",
    (_MICROSOFT, "FusedMatMulActivation"): "MatMul",
    (_MICROSOFT, "MatMulIntegerToFloat"): "MatMulInteger",
    (_MICROSOFT, "DynamicQuantizeMatMul"): "MatMulInteger",
    (_MICROSOFT, "Attention"): "Attention",
    (_MICROSOFT, "MultiHeadAttention"): "Attention",
}
"""Operators of onnxruntime whose products are those of a standard one."""

RECURRENT: Final = frozenset({"GRU", "LSTM", "RNN"})

LAYERS: Final = RECURRENT | {"Attention", "Einsum"}
"""Other operators that are made of matrix products; an Einsum of one operand is none."""


def is_product(node: Node) -> bool:
    """Return whether a node is a matrix product or a convolution, fused or not."""
    kind = _FUSED.get((node.domain, node.op_type), "" if node.domain else node.op_type)
    return kind in _PRODUCTS or kind in _CONVOLUTIONS or kind == "ConvTranspose"


def multiply_adds(node: Node, dims: Dims) -> int:
    """Return the multiply-adds of a node; 0 for operators without sums of products.

    A body counts once: the trip count of a loop is not known in general. A node with an operand of
    unknown dims counts as 0.

    Args:
        node: the node.
        dims: the sizes of the axes of its operands and outputs.
    """
    inner = sum(multiply_adds(each, dims) for body in node.bodies for each in body.nodes)
    output = node.outputs[0] if node.outputs else None
    kind = _FUSED.get((node.domain, node.op_type), "" if node.domain else node.op_type)
    if kind in LAYERS:
        return inner + _of_layer(node, dims)
    if output is None:
        return inner
    x, made = node.input(0), dims(output)
    read = None if x is None else dims(x)
    if not read or made is None:
        return inner
    if kind in _PRODUCTS:
        return inner + math.prod(made) * _inner_dim(node, dims)
    if kind in _CONVOLUTIONS:
        return inner + math.prod(made) * _kernel(node, dims)
    if kind == "ConvTranspose":
        return inner + math.prod(read) * _kernel(node, dims)
    if kind == "MatMulNBits":  # the weight is packed: attributes have its sizes
        return inner + math.prod(made) * int(node.attr("K", 0))
    return inner


def _of_layer(node: Node, dims: Dims) -> int:
    """Return the multiply-adds of an operator that is made of matrix products."""
    sizes = [None if value is None else dims(value) for value in node.inputs]
    if node.op_type == "Einsum":
        return _of_einsum(node, sizes)
    x, second, third = (*sizes, None, None)[:3]
    if x and second and node.is_op("Attention", _MICROSOFT):
        return _of_packed(x, second)
    if not x or not second or not third:
        return 0
    if node.op_type in RECURRENT:  # each step of a sequence times both weights
        return x[0] * x[1] * (math.prod(second) + math.prod(third))
    made = dims(node.output)
    past = sizes[4] if len(sizes) > 4 and not node.domain else None
    keys = second[-2] + (past[-2] if past else 0)
    return 0 if made is None else (math.prod(x) + math.prod(made)) * keys


def _of_packed(x: tuple[int, ...], weight: tuple[int, ...]) -> int:
    """Return the multiply-adds of an attention with the weights of Q, K and V in one matrix."""
    if len(x) != 3 or len(weight) != 2:
        return 0
    rows = x[0] * x[1]
    return rows * math.prod(weight) + 2 * rows * x[1] * weight[1] // 3


def _of_einsum(node: Node, sizes: Sequence[tuple[int, ...] | None]) -> int:
    """Return the product of all sizes, as if the operands were multiplied in one loop."""
    terms = str(node.attr("equation")).replace(" ", "").partition("->")[0].split(",")
    if len(sizes) < 2 or len(terms) != len(sizes):
        return 0
    largest: dict[str | int, int] = {}
    for term, found in zip(terms, sizes, strict=True):
        if found is None:
            return 0
        before, dots, after = term.partition("...")
        middle = len(found) - len(before) - len(after)
        # Dims of an ellipsis count from its end, as they broadcast.
        labels = (*before, *(range(-middle, 0) if dots else ()), *after)
        if len(labels) != len(found):
            return 0
        for label, size in zip(labels, found, strict=True):
            largest[label] = max(size, largest.get(label, size))
    return math.prod(largest.values())


def _inner_dim(node: Node, dims: Dims) -> int:
    """Return the number of products in each sum: of the factor in which it is static, if it is."""
    is_quantized = node.op_type in ("QLinearMatMul", "QGemm")
    left, right = node.input(0), node.input(3 if is_quantized else 1)
    last = -2 if node.attr("transA", 0) else -1
    first = -1 if node.attr("transB", 0) else -2
    sizes = []
    for value, axis in ((left, last), (right, first)):
        if value is None or not (found := dims(value)):
            continue
        place = max(axis, -len(found))  # a vector has one axis
        if value.shape is not None and isinstance(value.shape[place], int):
            return found[place]
        sizes.append(found[place])
    return sizes[0]


def _kernel(node: Node, dims: Dims) -> int:
    """Return the multiply-adds for one element of a convolution."""
    weight = node.input(3 if node.op_type == "QLinearConv" else 1)
    shape = None if weight is None else dims(weight)
    return 0 if shape is None else math.prod(shape[1:])
