"""MaxPool(Pad(x, pads, -Inf))  =>  MaxPool(x, pads=pads'), also for averages of zeros"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.graph.queries.spatial_pads import spatial_pads
from tiered.rewriter.idioms.signs import is_never_negative, zero_sign_matters

_padded = op.Pad(var.x, var.pads, opt.value, opt.axes).bind("pad")


@rewrite(
    op.AveragePool(_padded, attrs=...) | op.MaxPool(_padded, attrs=...),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_pad_into_pool(
    graph: Graph,
    node: Node,
    pad: Node,
    x: Value,
    pads: Value,
    value: Value | None,
    axes: Value | None,
) -> Value | Skip:
    """Let the operator pad by itself.

    Averages pad with zeros, and a maximum with what is never the largest: -Inf, or 0 where x is
    never below it. A window of -0.0 alone gives a zero of another sign.
    """
    if node.attr("auto_pad") not in ("NOTSET", "VALID"):
        return Skip("auto_pad depends on the size of x")
    if x.shape is not None and 0 in x.shape[1:]:
        return Skip("onnxruntime rejects pooling of empty images")
    added = spatial_pads(x, pads, axes)
    if added is None:
        return Skip("the pads are not constant, spatial and non-negative")
    settings = node.attributes
    own = list(settings.get("pads", [0] * len(added)))
    nothing = 0.0 if value is None else value.number
    if node.op_type == "MaxPool":
        if nothing is None or not (nothing == -np.inf or (nothing == 0 and is_never_negative(x))):
            return Skip("the maximum may be a padding value")
    elif nothing != 0:
        return Skip("it does not pad with zeros")
    if nothing == 0 and zero_sign_matters(node.output):
        return Skip("a consumer reads the sign of a zero")
    if settings.get("ceil_mode", 0):
        return Skip("a window may exceed the padding")
    if any(size != 1 for size in settings.get("dilations", ())):
        return Skip("a dilated window may contain only padding")
    sizes = [*settings["kernel_shape"]] * 2
    if any(a + b >= size for a, b, size in zip(own, added, sizes, strict=True)):
        return Skip("a window may contain only padding")
    is_average = node.op_type == "AveragePool"
    if is_average and any(own) and not settings.get("count_include_pad", 0):
        return Skip("count_include_pad differs from the padding")
    if len(node.outputs) > 1 and node.outputs[1] is not None:
        return Skip("indices of the maxima would change")
    both = [a + b for a, b in zip(own, added, strict=True)]
    counted = 1 if is_average else None
    return graph.op.like(node, x, auto_pad=None, pads=both, count_include_pad=counted)
