"""Relu(Gemm(a, b, c))  =>  FusedGemm(a, b, c), and other activations"""

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var

_gemm = op.Gemm(var.a, var.b, opt.c, attrs=...).bind("gemm")


@rewrite(
    (op.Relu | op.Sigmoid | op.Tanh)(_gemm) | op.LeakyRelu(_gemm, attrs=...),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::FusedGemm"],
    numerics="reassociating",
)
def fuse_gemm_activation(
    graph: Graph, node: Node, gemm: Node, a: Value, b: Value, c: Value | None
) -> Value | Skip:
    """Apply the activation where the product is written."""
    settings = {**gemm.attributes, "activation": node.op_type}
    if node.op_type == "LeakyRelu":
        settings["activation_alpha"] = float(node.attr("alpha"))
    result: Value = graph.op("com.microsoft").FusedGemm(a, b, c, **settings)
    return result
