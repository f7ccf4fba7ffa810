"""Identity(x)  =>  x"""

from tiered import Graph, Value, op, rewrite, var


@rewrite(op.Identity(var.x), opt_level=0)
def eliminate_identity(graph: Graph, x: Value) -> Value:
    """Read the operand itself; only a graph output that needs a node of its own keeps one."""
    return x
