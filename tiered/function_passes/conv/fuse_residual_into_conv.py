"""Add(Conv(x, weight, bias), z)  =>  FusedConv(x, weight, bias, z), also with a Relu after it"""

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var

_conv = op.Conv(var.x, var.weight, opt.bias, attrs=...).bind("conv")
_fused = op("com.microsoft").FusedConv(var.x, var.weight, opt.bias, opt.z, attrs=...).bind("conv")


@rewrite(
    op.Add(_conv, var.z) | op.Relu(_fused),
    opt_level=None,
    required=("infer_shapes",),
    makes=["com.microsoft::FusedConv"],
    numerics="reassociating",
)
def fuse_residual_into_conv(
    graph: Graph,
    node: Node,
    conv: Node,
    x: Value,
    weight: Value,
    bias: Value | None,
    z: Value | None,
) -> Value | Skip:
    """Add the residual and apply the activation inside the kernel of the convolution.

    Opt-in: onnxruntime's own optimiser does not convert such a convolution to its blocked layout,
    which costs more than the sum.
    """
    settings = conv.attributes
    if node.op_type == "Relu":
        if settings.get("activation"):
            return Skip("the convolution already has an activation")
        settings["activation"] = "Relu"
    elif weight.rank not in (3, 4, 5):
        return Skip("the number of spatial dims is unsupported")
    elif z is None or z.shape is None or None in z.shape or z.shape != conv.output.shape:
        return Skip("the addend may be broadcast")
    result: Value = graph.op("com.microsoft").FusedConv(x, weight, bias, z, **settings)
    return result
