"""Softmax(x) of an odd last dim  =>  SoftmaxV2(x), a call of a local function"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, op, rewrite, substitute, var


@rewrite(op.Softmax(var.x, axis=var.axis), opt_level=None, required=("infer_shapes",))
def replace_softmax(
    graph: Graph, node: Node, x: Value, axis: int, *, domain: str = "ai.graphcore"
) -> Sequence[Value | None] | Skip:
    """Normalise by an operator of the target that takes odd sizes as well as even ones.

    Args:
        domain: the domain of SoftmaxV2.
    """
    if x.rank is None or axis not in (-1, x.rank - 1):
        return Skip("the axis is not the last")
    size = x.dim(-1)
    if not isinstance(size, int) or size % 2 == 0:
        return Skip("the last dim is not known odd")
    return substitute(node, domain, "SoftmaxV2")
