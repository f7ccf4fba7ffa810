"""MatMul(Transpose(x), v)  =>  MatMul(v, x), where v is a vector and the last two dims swap"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, op, rewrite, var


def _swaps(perm: Sequence[int] | None) -> bool:
    """Return whether a permutation swaps the last two dims alone."""
    count = len(perm or ())
    return list(perm or ()) == [*range(count - 2), count - 1, count - 2]


_swapped = op.Transpose(var.x, perm=_swaps).shared()


@rewrite(
    op.MatMul(_swapped | op.Cast(_swapped, attrs=...).shared().bind("cast"), var.v),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_transpose_into_matmul(graph: Graph, x: Value, v: Value, cast: Node | None) -> Value | Skip:
    """Multiply a vector from the left instead of matrices that are transposed.

    The result of onnxruntime (1.29 to 1.32) is wrong for such a Transpose, also behind a Cast: its
    MatmulTransposeFusion, which is on by default, takes the vector for a matrix. So the Transpose
    is bypassed although others read it.
    """
    if v.rank is None:
        return Skip("the rank of the second factor is not known")
    if v.rank != 1:
        return Skip("the second factor is not a vector")
    if cast is not None:
        x = graph.op.Cast(x, **cast.attributes)
    result: Value = graph.op.MatMul(v, x)
    return result
