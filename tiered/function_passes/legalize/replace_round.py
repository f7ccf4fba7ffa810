"""Round(x)  =>  RoundV2(x), a call of a local function that holds the Round"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, op, rewrite, substitute, var


@rewrite(op.Round(var.x), opt_level=None)
def replace_round(
    graph: Graph, node: Node, *, domain: str = "ai.graphcore"
) -> Sequence[Value | None] | Skip:
    """Round by an operator of the target that rounds halves to even numbers, as ONNX does.

    Args:
        domain: the domain of RoundV2.
    """
    return substitute(node, domain, "RoundV2")
