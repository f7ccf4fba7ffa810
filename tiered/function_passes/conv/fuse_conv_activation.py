"""Relu(Conv(x, weight, bias))  =>  FusedConv(x, weight, bias), and other activations"""

from tiered import Constant, Graph, Node, Skip, Value, const, op, opt, rewrite, var

_conv = op.Conv(var.x, var.weight, opt.bias, attrs=...).bind("conv")


@rewrite(
    (op.Relu | op.Sigmoid | op.Tanh)(_conv)
    | (op.LeakyRelu | op.HardSigmoid)(_conv, attrs=...)
    | op.Clip(_conv, const(name="low"), const(name="high")),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::FusedConv"],
    numerics="reassociating",
)
def fuse_conv_activation(
    graph: Graph,
    node: Node,
    conv: Node,
    x: Value,
    weight: Value,
    bias: Value | None,
    low: Constant | None,
    high: Constant | None,
) -> Value | Skip:
    """Apply the activation inside the kernel of the convolution."""
    if weight.rank not in (3, 4, 5):
        return Skip("the number of spatial dims is unsupported")
    params: list[float] = []
    for limit in (low, high):
        if limit is not None:
            if limit.const.size != 1:
                return Skip("a limit is not one number")
            params.append(float(limit.const.item()))
    params += [float(node.attr(name)) for name in _PARAMS.get(node.op_type, ())]
    settings = {**conv.attributes, "activation": node.op_type}
    if params:
        settings["activation_params"] = params
    result: Value = graph.op("com.microsoft").FusedConv(x, weight, bias, **settings)
    return result


_PARAMS = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}
