"""x * Clip(x + 3, 0, 6) / 6  =>  HardSwish(x), and x * HardSigmoid(x)  =>  HardSwish(x)"""

from typing import Any

from tiered import DataType, Graph, Node, Skip, Value, const, op, rewrite, var

_SIXTH = const(1 / 6, rtol=1e-6)
_gate = op.Clip(op.Add(var.x, 3.0), 0.0, 6.0)


def _sixth(product: Any) -> Any:
    return op.Div(product, 6.0) | op.Mul(product, _SIXTH)


@rewrite(
    _sixth(op.Mul(var.x, _gate))
    | op.Mul(var.x, _sixth(_gate))
    | op.Mul(_sixth(var.x), _gate)
    | op.Mul(var.x, op.HardSigmoid(var.x, alpha=lambda alpha: abs(alpha * 6 - 1) < 1e-6, beta=0.5)),
    opt_level=3,
    numerics="reassociating",
)
def fuse_hardswish(graph: Graph, x: Value, node: Node) -> Value | Skip:
    """Compute the hard swish at once."""
    if not x.has_rank_of(node.output):
        return Skip("a constant may give x more dims")
    if x.dtype not in (DataType.FLOAT, DataType.FLOAT16):
        return Skip("HardSwish has no kernel for the dtype")
    return graph.op.HardSwish(x)
