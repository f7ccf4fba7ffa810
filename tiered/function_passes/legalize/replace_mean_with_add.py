"""Mean(a, b, c)  =>  Div(Add(Add(a, b), c), 3)"""

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    op.Mean(var.x, ..., attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def replace_mean_with_add(graph: Graph, node: Node, x: Value) -> Value | Skip:
    """Add the operands one after the other, and divide by their number."""
    operands = node.reads
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    for other in operands[1:]:
        x = graph.op.Add(x, other)
    assert x.dtype is not None
    count = np.full((), len(operands), DataType(x.dtype).numpy)
    result: Value = graph.op.Div(x, graph.constant(count, "count"))
    return result
