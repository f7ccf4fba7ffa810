"""Split(x) into one part  =>  x"""

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(op.Split(var.x, ..., attrs="ignored"), opt_level=1)
def eliminate_nop_split(graph: Graph, x: Value, node: Node) -> Value | Skip:
    """Drop a Split whose one part must be all of x."""
    if len(node.outputs) != 1:
        return Skip("it has several parts")
    return x
