"""Mul(f(Conv(x, w, b)), s)  =>  f(Conv(x, s * w, s * b)), for f that commute with s"""

from tiered import Graph, PassContext, Skip, function_pass
from tiered.rewriter.idioms.scale import push_scale_backward, scaling_of, write_rescaled
from tiered.rewriter.idioms.signs import zero_sign_matters


@function_pass(
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
    looks_for=("Div", "Mul"),
    acts_on=("Conv", "ConvTranspose", "Gemm", "MatMul"),
)
def backward_fold_scale_axis(graph: Graph, ctx: PassContext) -> None:
    """Push factors back into the weights that made a tensor, through what commutes with them."""
    for node in graph.topological_order():
        scaling = scaling_of(node) if node.graph is graph else None
        if scaling is None:
            continue
        if isinstance(scaling, Skip):
            ctx.skip(node, scaling)
            continue
        x, scale = scaling
        if (scale.factors < 0).any() and zero_sign_matters(node.output):
            ctx.skip(node, Skip("a consumer reads the sign of a zero"))
            continue
        rescaled = push_scale_backward(x, node, scale)
        if isinstance(rescaled, Skip):
            ctx.skip(node, rescaled)
            continue
        with graph.rewrite("s * f(Conv(x, w, b)) => f(Conv(x, s * w, s * b))", node):
            write_rescaled(graph, node, x, rescaled)
