"""zeros + g  =>  g, and ones * g  =>  g, where a ConstantOfShape makes the zeros or ones"""

from tiered import Graph, Node, Skip, Value, broadcasts_into, op, rewrite, var


@rewrite(
    op.Add(var.a, var.b) | op.Mul(var.a, var.b),
    opt_level=None,
    required=("infer_shapes",),
    numerics="reassociating",
)
def lazy_gradient_init(graph: Graph, a: Value, b: Value, node: Node) -> Value | Skip:
    """Drop the zeros and ones with which gradients start: TVM's LazyGradientInit.

    Zeros may make 0.0 of -0.0, so the pass is opt-in. `eliminate_zero_addend` and
    `eliminate_nop_arithmetic` drop zeros and ones that the file holds.
    """
    neutral = 0 if node.op_type == "Add" else 1
    for filled, grad in ((a, b), (b, a)):
        if _filling(filled) != neutral:
            continue
        if not broadcasts_into(filled.shape, grad.shape):
            return Skip("the neutral operand may make the result larger")
        return grad
    return Skip("no operand is a filled {}", neutral)


def _filling(value: Value) -> float | None:
    """Return the number that a ConstantOfShape fills a value with; None for other values."""
    node = value.producer
    if node is None or not node.is_op("ConstantOfShape") or node.has_references:
        return None
    filling = node.attr("value", None)
    if filling is None:
        return 0.0
    return filling.numpy().item() if filling.size == 1 else None
