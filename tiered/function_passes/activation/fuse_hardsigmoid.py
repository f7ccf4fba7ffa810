"""Clip(x * alpha + beta, 0, 1)  =>  HardSigmoid(x, alpha, beta), and Clip(x + 3, 0, 6) / 6"""

from typing import Any

from tiered import DataType, Graph, Node, Skip, Value, const, op, rewrite, var

_SIXTH = 1 / 6


def _sixth(product: Any) -> Any:
    return op.Div(product, 6.0) | op.Mul(product, const(_SIXTH, rtol=1e-6))


@rewrite(
    _sixth(op.Clip(op.Add(var.x, 3.0), 0.0, 6.0))
    | op.Clip(op.Add(op.Mul(var.x, const(name="alpha")), const(name="beta")), 0.0, 1.0),
    opt_level=3,
    numerics="reassociating",
)
def fuse_hardsigmoid(
    graph: Graph, x: Value, alpha: Value | None, beta: Value | None, node: Node
) -> Value | Skip:
    """Compute the hard sigmoid at once."""
    if not x.has_rank_of(node.output):
        return Skip("a constant may give x more dims")
    if x.dtype not in (DataType.FLOAT, DataType.FLOAT16):
        return Skip("HardSigmoid has no kernel for the dtype")
    numbers = [_SIXTH if alpha is None else alpha.number, 0.5 if beta is None else beta.number]
    slope, offset = numbers
    if slope is None or offset is None:
        return Skip("a factor or addend is not a scalar")
    return graph.op.HardSigmoid(x, alpha=float(slope), beta=float(offset))
