"""Where(c, x, y)  =>  WhereV2(c, x, y), a call of a local function that holds the Where"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, op, rewrite, substitute, var


@rewrite(op.Where(var.c, var.x, var.y), opt_level=None)
def replace_where_with_wherev2(
    graph: Graph, node: Node, *, domain: str = "ai.graphcore"
) -> Sequence[Value | None] | Skip:
    """Select by an operator of the target that computes the same.

    Args:
        domain: the domain of WhereV2.
    """
    return substitute(node, domain, "WhereV2")
