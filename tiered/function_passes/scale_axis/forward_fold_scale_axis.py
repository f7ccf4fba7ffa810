"""Conv(f(Mul(x, s)), w)  =>  Conv(f(x), s * w), for f that commute with s"""

from typing import Final

from tiered import Graph, Node, PassContext, Skip, Value, function_pass
from tiered.rewriter.idioms.scale import push_scale_forward, scaling_of, write_rescaled

# What activations and normalizations are known by, and what stands between it and their end.
_HEARTS: Final = frozenset({"Erf", "Sqrt", "Tanh"})
_TISSUE: Final = frozenset({"Add", "Cast", "Div", "Mul", "Reciprocal"})
_DEPTH: Final = 4


@function_pass(
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
    matches=("Div", "Mul"),
    touches=("Conv", "ConvTranspose", "Gemm", "MatMul"),
)
def forward_fold_scale_axis(graph: Graph, ctx: PassContext) -> None:
    """Push factors on into the weights that a tensor meets, through what commutes with them."""
    for node in reversed(graph.topological_order()):
        scaling = scaling_of(node) if node.graph is graph else None
        if scaling is None:
            continue
        if isinstance(scaling, Skip):
            ctx.skip(node, scaling)
            continue
        x, scale = scaling
        if _is_fusible(x):
            ctx.skip(node, Skip("runtimes fuse it with an activation or normalization"))
            continue
        rescaled = push_scale_forward(node.output, scale)
        if isinstance(rescaled, Skip):
            ctx.skip(node, rescaled)
            continue
        with graph.rewrite("Conv(f(s * x), w) => Conv(f(x), s * w)", node):
            write_rescaled(graph, node, x, rescaled)


def _is_fusible(x: Value) -> bool:
    """Return whether x looks like an activation or a normalization before its last factor."""
    seen, above = set[Node](), [x]
    for _ in range(_DEPTH):
        makers = [value.producer for value in above if value.producer is not None]
        if any(node.op_type in _HEARTS for node in makers):
            return True
        inner = [node for node in makers if node.op_type in _TISSUE and node not in seen]
        seen.update(inner)
        above = [value for node in inner for value in node.inputs if value is not None]
    return False
