"""Sum(a, b, c)  =>  Add(Add(a, b), c)"""

from typing import Literal

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(op.Sum(var.x, ..., attrs=...), opt_level=None, legalizes=True, numerics_option="numerics")
def replace_sum_with_add(
    graph: Graph, node: Node, x: Value, *, numerics: Literal["exact", "reassociating"] = "exact"
) -> Value | Skip:
    """Add the operands one after the other.

    Args:
        numerics: `reassociating` adds more than two operands, for which the order of the sums is
            not defined.
    """
    operands = node.reads
    if len(operands) == 1:
        return Skip("it has one operand")
    if numerics == "exact" and len(operands) > 2:
        return Skip("the order of more than one sum is not defined")
    for other in operands[1:]:
        x = graph.op.Add(x, other)
    return x
