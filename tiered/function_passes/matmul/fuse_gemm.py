"""Add(MatMul(a, b), c)  =>  Gemm(a, b, c), where a and b are matrices"""

from typing import Final

from tiered import DataType, Graph, Node, Skip, Value, broadcasts_into, op, rewrite, var

_DTYPES: Final = (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16)


@rewrite(
    op.Add((op.MatMul(var.a, var.b) | op.Gemm(var.a, var.b, attrs=...)).bind("product"), var.c),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_gemm(graph: Graph, product: Node, a: Value, b: Value, c: Value) -> Value | Skip:
    """Multiply and add at once.

    Only matrices: for more dims it would take a Reshape before and behind, which makes networks
    of 3 dims slower, and hides the bias from the fusions of runtimes.
    """
    if a.rank is None or b.rank is None:
        return Skip("the rank of a factor is not known")
    if a.rank != 2 or b.rank != 2:
        return Skip("Reshapes around a Gemm cost too much")
    if a.dtype not in _DTYPES:
        return Skip("Gemm has no kernel for the dtype")
    if not broadcasts_into(c.shape, product.output.shape):
        return Skip("the addend may be larger than the product")
    settings = {name: value for name, value in product.attributes.items() if name != "beta"}
    result: Value = graph.op.Gemm(a, b, c, **settings)
    return result
