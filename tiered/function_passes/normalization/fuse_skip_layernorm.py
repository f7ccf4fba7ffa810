"""LayerNormalization(x + skip, scale, bias)  =>  SkipLayerNormalization(x, skip, scale, bias)"""

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.normalization import split_bias


@rewrite(
    op.LayerNormalization(
        op.Add(var.x, var.skip).shared().bind("added"), var.scale, opt.bias, attrs=...
    ),
    opt_level=None,
    required=("infer_shapes",),
    makes=["com.microsoft::SkipLayerNormalization"],
    numerics="reassociating",
)
def fuse_skip_layernorm(
    graph: Graph, node: Node, added: Node, x: Value, skip: Value, scale: Value, bias: Value | None
) -> Value | Skip:
    """Add and normalise by one operator; other users of the sum read the fourth output.

    Opt-in: onnxruntime's kernel is slower than separate Add and LayerNormalization.
    Epsilon is always written: its default is 1e-12 here, and 1e-5 in the standard operator.
    """
    if node.used_outputs.keys() - {0}:
        return Skip("the mean or deviation has other consumers")
    shape = added.output.shape
    if shape is None or None in shape or len(shape) not in (2, 3):
        return Skip("the sum is not known to have 2 or 3 dims")
    if x.shape != shape or skip.shape != shape:
        return Skip("an addend is broadcast")
    if int(node.attr("axis")) % len(shape) != len(shape) - 1:
        return Skip("it is not over the last dim alone")
    if any(value is not None and value.shape != shape[-1:] for value in (scale, bias)):
        return Skip("scale or bias is not per element")
    epsilon = float(node.attr("epsilon"))
    x, third = split_bias(x)
    if third is None:
        skip, third = split_bias(skip)
    contrib, operands = graph.op("com.microsoft"), (x, skip, scale, bias, third)
    if added.output.has_one_user:
        result: Value = contrib.SkipLayerNormalization(*operands, epsilon=epsilon)
        return result
    if any(value is not None and value.producer is not None for value in (scale, bias)):
        return Skip("scale or bias is computed, perhaps from the sum")
    result, _, _, total = contrib.SkipLayerNormalization(*operands, outputs=4, epsilon=epsilon)
    graph.replace(added, [total])
    return result
