"""QLinearConv(..., bias=0)  =>  QLinearConv(...)"""

from tiered import Graph, PassContext, Skip, function_pass

_BIAS = 8


@function_pass(opt_level=1, matches=("QLinearConv",))
def eliminate_zero_bias(graph: Graph, ctx: PassContext) -> None:
    """Drop a bias of zeros from an integer convolution.

    Not from Conv, ConvTranspose and Gemm: adding +0.0 to a product that underflows to -0.0 is +0.0,
    and without it onnxruntime returns -0.0.
    """
    for node in graph.nodes_of("QLinearConv"):
        bias = node.input(_BIAS)
        if bias is None:
            continue
        if bias.const is None:
            ctx.skip(node, Skip("the bias is not a constant"))
        elif bias.const.any():
            ctx.skip(node, Skip("the bias is not zero"))
        else:
            with graph.rewrite("QLinearConv(..., bias=0) => QLinearConv(...)", node):
                graph.set_inputs(node, node.inputs[:_BIAS])
                graph.discard(bias)
