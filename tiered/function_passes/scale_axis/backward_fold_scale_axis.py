"""Mul(f(Conv(x, w, b)), s)  =>  f(Conv(x, s * w, s * b)), for f that commute with s"""

from __future__ import annotations

from tiered import Graph, Node, PassContext, Skip, Value, function_pass
from tiered.function_passes.scale_axis._scale_backward import ScaleBackward
from tiered.rewriter.idioms.scale import Rescaled, Scale, scaling_of, write_rescaled
from tiered.rewriter.idioms.signs import zero_sign_matters


@function_pass(
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
    matches=("Div", "Mul"),
    touches=("Conv", "ConvTranspose", "Gemm", "MatMul"),
)
def backward_fold_scale_axis(graph: Graph, ctx: PassContext) -> None:
    """Push factors back into the weights that made a tensor, through what commutes with them.

    One of a factor of a product of two tensors may go into the weights of the other.
    """
    search = ScaleBackward(graph)
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
        rescaled = _rescaled(search, node, x, scale)
        if isinstance(rescaled, Skip):
            ctx.skip(node, rescaled)
            continue
        with graph.rewrite("s * f(Conv(x, w, b)) => f(Conv(x, s * w, s * b))", node):
            write_rescaled(graph, node, x, rescaled)


def _rescaled(search: ScaleBackward, node: Node, x: Value, scale: Scale) -> Rescaled | Skip:
    """Return the new constants that take the scale of x, or of the other factor of a product."""
    slot = node.inputs.index(x)
    rescaled = search.into_producers(x, node, slot, scale)
    if not isinstance(rescaled, Skip) or scale.axis is not None or not node.output.has_one_user:
        return rescaled
    (product, read) = next(iter(node.output.users))
    other = product.input(1 - read) if product.is_op("MatMul") else None
    if other is None or other.is_constant:
        return rescaled
    beside = search.into_producers(other, product, 1 - read, scale)
    return rescaled if isinstance(beside, Skip) else beside
