"""The multiply-adds of a node: what matrix products and convolutions cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from tiered.graph.core.node import Node
from tiered.graph.core.value import Value

Dims = Callable[[Value], "tuple[int, ...] | None"]
"""Returns the sizes of the axes of a value; None while they are unknown."""

_PRODUCTS: Final = frozenset({"MatMul", "MatMulInteger", "QLinearMatMul"})
_CONVOLUTIONS: Final = frozenset({"Conv", "ConvInteger", "QLinearConv"})


def multiply_adds(node: Node, dims: Dims) -> int:
    """Return the multiply-adds of a node; 0 for other operators than products and convolutions.

    A body counts once: the trip count of a loop is not known in general. A node with an operand of
    unknown dims counts as 0.

    Args:
        node: the node.
        dims: the sizes of the axes of its operands and outputs.
    """
    inner = sum(multiply_adds(each, dims) for body in node.bodies for each in body.nodes)
    output = node.outputs[0] if node.outputs else None
    if node.domain or output is None:
        return inner
    x, made = node.input(0), dims(output)
    read = None if x is None else dims(x)
    if not read or made is None:
        return inner
    if node.op_type in _PRODUCTS:
        return inner + math.prod(made) * read[-1]
    if node.op_type == "Gemm":
        return inner + math.prod(made) * read[0 if node.attr("transA") else 1]
    if node.op_type in _CONVOLUTIONS:
        return inner + math.prod(made) * _kernel(node, dims)
    if node.op_type == "ConvTranspose":
        return inner + math.prod(read) * _kernel(node, dims)
    return inner


def _kernel(node: Node, dims: Dims) -> int:
    """Return the multiply-adds for one element of a convolution."""
    weight = node.input(3 if node.op_type == "QLinearConv" else 1)
    shape = None if weight is None else dims(weight)
    return 0 if shape is None else math.prod(shape[1:])
