"""GlobalAveragePool(x)  =>  ReduceMean(x) over the image, also of maxima and norms"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    (op.GlobalAveragePool | op.GlobalMaxPool | op.GlobalLpPool)(var.x, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def lower_global_pool(graph: Graph, node: Node, x: Value) -> Value | Skip:
    """Reduce the spatial axes; their sizes need not be known."""
    if x.rank is None or x.rank < 3:
        return Skip("the rank of x is not known")
    kind = node.op_type.removeprefix("Global").removesuffix("Pool")
    if kind == "Lp" and node.attr("p") not in (1, 2):
        return Skip("no reduction has p = {}", node.attr("p"))
    of_kind = {"Average": "ReduceMean", "Max": "ReduceMax"}
    reduction = of_kind.get(kind, f"ReduceL{node.attr('p', 2)}")
    return graph.op.named(reduction)(x, np.arange(2, x.rank), keepdims=1)
