"""Conv(Pad(x, pads, 0), weight)  =>  Conv(x, weight, pads=pads'), also for integers"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, op, opt, rest, rewrite, spatial_pads, var

_padded = op.Pad(var.x, var.pads, opt.value, opt.axes).bind("pad")


@rewrite(
    op.Conv(_padded, rest.others, attrs=...) | op.ConvInteger(_padded, rest.others, attrs=...),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_pad_into_conv(
    graph: Graph,
    node: Node,
    pad: Node,
    x: Value,
    pads: Value,
    value: Value | None,
    axes: Value | None,
    others: Sequence[Value | None] | None,
) -> Value | Skip:
    """Let the convolution pad by itself: with zeros, and one of integers with the zero point of x.

    By definition the two are the same, but runtimes choose how to sum by what there is to pad:
    onnxruntime has an order of its own where the kernel is as wide as the rows.
    """
    if node.has_references:
        return Skip("the call of the function decides an attribute")
    if node.attr("auto_pad") not in ("NOTSET", "VALID"):
        return Skip("auto_pad depends on the size of x")
    added = spatial_pads(x, pads, axes)
    if added is None:
        return Skip("the pads are not constant, crop, or are not of spatial axes alone")
    zero_point = node.input(2) if node.op_type == "ConvInteger" else None
    nothing, zero = (0 if each is None else each.number for each in (value, zero_point))
    if nothing is None or nothing != zero:
        return Skip("it pads with something else than zeros")
    settings = {name: setting for name, setting in node.attributes.items() if name != "auto_pad"}
    own = settings.get("pads", [0] * len(added))
    settings["pads"] = [a + b for a, b in zip(own, added, strict=True)]
    result: Value = getattr(graph.op, node.op_type)(x, *(others or ()), **settings)
    return result
