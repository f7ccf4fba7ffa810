"""onnxruntime's own operators, which its optimisations write."""

from __future__ import annotations

from typing import Final

from tiered.analysis.axes.axis_map import (
    AXES,
    AxisMap,
    Kind,
    all_of,
    broadcast,
    dims_of,
    first_alone,
    whole,
)
from tiered.analysis.axes.rules.products import gemm, product
from tiered.analysis.axes.rules.windows import convolution
from tiered.graph import Node

_DOMAIN: Final = "com.microsoft"


@AXES.rule("BiasGelu", "FastGelu", "Gelu", "QuickGelu", domain=_DOMAIN)
def _activation(node: Node) -> AxisMap:
    """An activation; a bias has a number for each element of the last axis."""
    found = first_alone(node)
    last = whole(len(dims_of(node.operands[0])))[-1:]
    biases = tuple(None if value is None else last for value in node.operands[1:])
    return found._replace(inputs=(found.inputs[0], *biases))


@AXES.rule("FusedGemm", domain=_DOMAIN)
def _fused_gemm(node: Node) -> AxisMap:
    return gemm(node)


@AXES.rule("FusedMatMul", domain=_DOMAIN)
def _fused_matmul(node: Node) -> AxisMap | None:
    """FusedMatMul: a product of matrices that are read transposed."""
    ranks = [len(dims_of(value)) for value in node.operands]
    if min(ranks) < 2 or node.attr("transBatchA", 0) or node.attr("transBatchB", 0):
        return None
    found = product(node, 0, 1)
    if found is None:
        return None
    flips = (node.attr("transA", 0), node.attr("transB", 0))
    inputs = tuple(
        (*own[:-2], own[-1], own[-2]) if flip and own is not None else own
        for own, flip in zip(found.inputs, flips, strict=True)
    )
    return found._replace(inputs=inputs)


@AXES.rule("FusedConv", domain=_DOMAIN)
def _fused_convolution(node: Node) -> AxisMap | None:
    """FusedConv: what is added has the axes of the result."""
    return convolution(node, 0, 1, addend=3)


@AXES.rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=_DOMAIN)
def _skip_normalization(node: Node) -> AxisMap:
    """The norm of a sum along the last axis; the second operand may broadcast."""
    labels = whole(len(dims_of(node.operands[0])))
    vectors = tuple(None if value is None else labels[-1:] for value in node.operands[2:])
    inputs = (labels, broadcast(node.operands[1], labels), *vectors)
    # The mean and the deviation, then the sum.
    outputs = (labels, (*labels[:-1], None), (*labels[:-1], None), labels)[: len(node.outputs)]
    kinds = all_of(Kind.REDUCTION, labels[-1:])
    return AxisMap(inputs, outputs, kinds, broadcasts=(1,))
