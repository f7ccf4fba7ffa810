"""Gemm(a, b, c, alpha, beta)  =>  alpha * MatMul(a, b) + beta * c"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiered import DataType, Graph, Node, Skip, Value, op, opt, rewrite, var


@rewrite(
    op.Gemm(var.a, var.b, opt.c, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    conflicts=("fuse_gemm",),
    legalizes=True,
    numerics="reassociating",
)
def decompose_gemm(graph: Graph, node: Node, a: Value, b: Value, c: Value | None) -> Value | Skip:
    """Multiply, scale and add one after the other.

    Opt-in: for targets that have no Gemm, or that fuse the parts in their own way.
    """
    if a.dtype is None or not a.is_float:
        return Skip("the factors are not floats")
    factors = [
        graph.op.Transpose(value, perm=[1, 0]) if node.attr(name) else value
        for value, name in ((a, "transA"), (b, "transB"))
    ]
    numpy = DataType(a.dtype).numpy
    product = _scaled(graph, graph.op.MatMul(*factors), np.array(node.attr("alpha"), numpy))
    if c is None or node.attr("beta") == 0:
        return product
    return graph.op.Add(product, _scaled(graph, c, np.array(node.attr("beta"), numpy)))


def _scaled(graph: Graph, x: Value, factor: NDArray[Any]) -> Value:
    return x if factor == 1 else graph.op.Mul(x, factor)
