"""Identity(x)  =>  x"""

from tiered import Graph, Node, Value, op, rewrite, var


@rewrite(op.Identity(var.x), opt_level=0)
def eliminate_identity(graph: Graph, x: Value, node: Node) -> Value:
    """Read the operand itself; only a graph output that needs a node of its own keeps one.

    What the file declares of the result is true of the operand, which may be of an operator that
    nobody knows.
    """
    if x.type is None and x.graph is graph:
        graph.set_type(x, node.output.type)
    return x
