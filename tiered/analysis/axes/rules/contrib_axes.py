"""onnxruntime's own operators, which its optimisations write."""

from __future__ import annotations

from typing import Final

from tiered.analysis.axes.axis_map import (
    AXES,
    AxisMap,
    IteratorKind,
    NoMap,
    all_of,
    broadcast,
    dims_of,
    first_alone,
    own_labels,
)
from tiered.analysis.axes.rules.product_axes import gemm, product
from tiered.analysis.axes.rules.window_axes import convolution
from tiered.graph import Node

_DOMAIN: Final = "com.microsoft"


@AXES.rule("BiasGelu", "FastGelu", "Gelu", "QuickGelu", domain=_DOMAIN)
def _activation(node: Node) -> AxisMap:
    """An activation; a bias has a number for each element of the last axis."""
    found = first_alone(node)
    biases = (own_labels(node)[-1:],) * (len(node.operands) - 1)
    return found._replace(inputs=(found.inputs[0], *biases))


@AXES.rule("FusedGemm", domain=_DOMAIN)
def _fused_gemm(node: Node) -> AxisMap:
    return gemm(node)


@AXES.rule("FusedMatMul", domain=_DOMAIN)
def _fused_matmul(node: Node) -> AxisMap:
    """FusedMatMul: a product of matrices that are read transposed."""
    if node.attr("transBatchA", 0) or node.attr("transBatchB", 0):
        raise NoMap("it transposes its batch")
    if min(len(dims_of(value)) for value in node.operands) < 2:
        raise NoMap("an operand is a vector")
    found = product(node, 0, 1)
    flips = (node.attr("transA", 0), node.attr("transB", 0))
    inputs = tuple(
        (*own[:-2], own[-1], own[-2]) if flip and own is not None else own
        for own, flip in zip(found.inputs, flips, strict=True)
    )
    return found._replace(inputs=inputs)


@AXES.rule("FusedConv", domain=_DOMAIN)
def _fused_convolution(node: Node) -> AxisMap:
    """FusedConv: what is added has the axes of the result."""
    return convolution(node, 0, 1, addend=3)


@AXES.rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=_DOMAIN)
def _skip_normalization(node: Node) -> AxisMap:
    """The norm of a sum along the last axis; the second operand may broadcast."""
    labels = own_labels(node)
    vectors = (labels[-1:],) * (len(node.operands) - 2)
    inputs = (labels, broadcast(node.operands[1], labels), *vectors)
    # The mean, the deviation, the sum; the first two have one element along the last axis.
    kinds = all_of(IteratorKind.REDUCTION, labels[-1:])
    return AxisMap(inputs, (labels,) * len(node.outputs), kinds, broadcasts=(1,))
