"""(x + a) + b  =>  x + (a + b), also of products, where a and b are constants"""

import numpy as np

from tiered import Constant, DataType, Graph, Node, Skip, Value, const, op, rewrite, var


@rewrite(
    op.Add(op.Add(var.x, const(name="a")), const(name="b"))
    | op.Mul(op.Mul(var.x, const(name="a")), const(name="b")),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("fold_constant", "eliminate_unused_initializer"),
    numerics="reassociating",
)
def group_constants(graph: Graph, node: Node, x: Value, a: Constant, b: Constant) -> Value | Skip:
    """Combine constants, so that they fold into one.

    Opt-in: float sums in another order may lose small addends beside a large constant.
    """
    if x.dtype not in (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16):
        return Skip("the dtype is not a float")
    if not _stays_in_range(node.op_type, a, b):
        return Skip("together the constants overflow or become 0")
    return graph.op.like(node, x, graph.op.like(node, a, b))


def _stays_in_range(op_type: str, a: Constant, b: Constant) -> bool:
    """Return whether finite numbers stay finite and nonzero ones nonzero: x may be 0."""
    first, second = a.const, b.const
    is_product = op_type == "Mul"
    with np.errstate(all="ignore"):
        together = first * second if is_product else first + second
    is_lost = np.isfinite(first) & np.isfinite(second) & ~np.isfinite(together)
    if is_product:
        is_lost = is_lost | ((first != 0) & (second != 0) & (together == 0))
    return not is_lost.any()
