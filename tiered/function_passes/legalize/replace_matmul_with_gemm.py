"""MatMul(a, b) of two matrices  =>  Gemm(a, b)"""

from typing import Final

from tiered import Graph, Skip, Value, op, rewrite, var

_NO_BIAS_SINCE: Final = 11
"""The first opset at which Gemm needs no bias."""


@rewrite(
    op.MatMul(var.a, var.b),
    opt_level=None,
    required=("infer_shapes",),
    conflicts=("decompose_gemm",),
    legalizes=True,
    numerics="reassociating",
)
def replace_matmul_with_gemm(graph: Graph, a: Value, b: Value) -> Value | Skip:
    """Multiply by a Gemm without a bias.

    Opt-in: for targets that have no MatMul; `legalize` uses it for them.
    """
    if (a.rank, b.rank) != (2, 2):
        return Skip("an operand is not known to be a matrix")
    if not a.is_float:
        return Skip("the factors are not floats")
    if graph.opset() < _NO_BIAS_SINCE:
        return Skip("before opset {} a Gemm has a bias", _NO_BIAS_SINCE)
    product: Value = graph.op.Gemm(a, b)
    return product
