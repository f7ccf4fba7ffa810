"""(x + a) + b  =>  x + (a + b), also of products, where a and b are constants"""

from tiered import DataType, Graph, Node, Skip, Value, const, op, rewrite, var


@rewrite(
    op.Add(op.Add(var.x, const(name="a")), const(name="b"))
    | op.Mul(op.Mul(var.x, const(name="a")), const(name="b")),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("fold_constant", "eliminate_unused_initializer"),
    numerics="reassociating",
)
def group_constants(graph: Graph, node: Node, x: Value, a: Value, b: Value) -> Value | Skip:
    """Bring constants together, which are one afterwards.

    Opt-in: sums of floats in another order lose what is small beside a constant.
    """
    if x.dtype is None or x.dtype not in (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16):
        return Skip("it is not of floats")
    make = getattr(graph.op, node.op_type)
    together: Value = make(x, make(a, b))
    return together
