"""Neg(a - b)  =>  b - a,  Neg(x + c)  =>  -c - x, where no sign of a zero matters"""

import numpy as np

from tiered import Constant, Graph, Node, Skip, Value, const, op, rewrite, var
from tiered.rewriter.idioms.constant_pairs import MOST_COMBINED
from tiered.rewriter.idioms.signs import zero_sign_matters

_difference = op.Sub(var.x, var.b)
_sum = op.Add(var.x, const(name="c"))


@rewrite(
    op.Neg(_difference | _sum)
    | op.Mul(_difference | _sum, const(-1, name="minus"))
    | op.Div(_difference | _sum, const(-1, name="minus")),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_neg_into_sub(
    graph: Graph,
    node: Node,
    x: Value,
    b: Value | None,
    c: Constant | None,
    minus: Value | None,
) -> Value | Skip:
    """Subtract in the other order: rounding is the same for both signs.

    x - x is 0.0 in both orders, so minus it would be -0.0. `fuse_neg` has the rules without sums.
    """
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    if minus is not None and minus.rank != 0 and not x.has_rank_of(node.output):
        return Skip("the factor may add dims")
    if zero_sign_matters(node.output):
        return Skip("a consumer reads the sign of a zero")
    if b is not None:
        return graph.op.Sub(b, x)
    assert c is not None
    if c.const.size > MOST_COMBINED:
        return Skip("the constant is large")
    return graph.op.Sub(np.asarray(np.negative(c.const)), x)
