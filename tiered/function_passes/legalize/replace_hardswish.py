"""HardSwish(x)  =>  x * HardSigmoid(x, alpha=1/6, beta=0.5)"""

from tiered import Graph, Value, op, rewrite, var


@rewrite(op.HardSwish(var.x), opt_level=None, conflicts=("fuse_hardswish",), legalizes=True)
def replace_hardswish(graph: Graph, x: Value) -> Value:
    """Multiply by the hard sigmoid: this is how ONNX defines the operator, and runtimes run it."""
    return graph.op.Mul(x, graph.op.HardSigmoid(x, alpha=1 / 6, beta=0.5))
