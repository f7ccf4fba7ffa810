"""IsInf(x)  =>  IsInfV2(x), a call of a local function that holds the IsInf"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, op, rewrite, substitute, var


@rewrite(op.IsInf(var.x, attrs=...), opt_level=None)
def replace_isinf(
    graph: Graph, node: Node, *, domain: str = "ai.graphcore"
) -> Sequence[Value | None] | Skip:
    """Find infinities by an operator of the target that knows their signs.

    Args:
        domain: the domain of IsInfV2.
    """
    return substitute(node, domain, "IsInfV2")
