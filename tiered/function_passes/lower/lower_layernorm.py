"""LayerNormalization(x, scale, bias)  =>  (x - mean) / sqrt(variance + epsilon) * scale + bias"""

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.elementary_norm import standardized


@rewrite(
    op.LayerNormalization(var.x, var.scale, opt.bias, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    conflicts=("fuse_layernorm",),
    legalizes=True,
    numerics="reassociating",
)
def lower_layernorm(
    graph: Graph, node: Node, x: Value, scale: Value, bias: Value | None
) -> Value | Skip:
    """Normalise by elementary operators, with the variance of the differences."""
    if any(value is not None for value in node.outputs[1:]):
        return Skip("mean or deviation is an output")
    if x.rank is None:
        return Skip("the dtype or the rank of x is not known")
    first = node.attr("axis") % max(x.rank, 1)
    normed = standardized(graph, x, range(first, x.rank), node.attr("epsilon"))
    scaled = graph.op.Mul(normed, scale)
    return scaled if bias is None else graph.op.Add(scaled, bias)
