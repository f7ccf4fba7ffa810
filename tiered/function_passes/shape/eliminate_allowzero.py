"""Reshape(x, shape, allowzero=1)  =>  Reshape(x, shape), where the standard forbids a 0 in shape"""

from tiered import Graph, PassContext, function_pass
from tiered.function_passes.shape._target_shape import dims_beside_minus_one, may_have_zero


@function_pass(opt_level=None, required=("infer_shapes",), matches=("Reshape",))
def eliminate_allowzero(graph: Graph, ctx: PassContext) -> None:
    """Drop `allowzero`, which opsets below 14 lack, where no size can be 0.

    ONNX forbids a 0 beside a -1 in the shape of a Reshape with `allowzero`. So the other sizes
    there are at least 1 whenever the model runs, and with them the dims that they name, in all
    Reshapes. onnxruntime runs such a model with empty dims too, and may fail for them afterwards:
    the pass is opt-in.

    Source: ONNX Reshape-14, attribute allowzero.
    """
    if graph.parent_node is not None:
        return
    strict = [node for node in graph.nodes_of("Reshape") if node.attr("allowzero", 0)]
    positive = frozenset(name for node in strict for name in dims_beside_minus_one(node))
    for node in strict:
        if may_have_zero(node, positive):
            ctx.skip(node, "a size may be 0")
            continue
        with graph.rewrite("allowzero where no size is 0 => the default", node):
            graph.set_attribute(node, "allowzero", None)
