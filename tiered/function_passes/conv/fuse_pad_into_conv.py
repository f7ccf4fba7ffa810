"""Conv(Pad(x, pads, 0), weight)  =>  Conv(x, weight, pads=pads'), also for integers"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, op, opt, rest, rewrite, var
from tiered.graph.queries.spatial_pads import spatial_pads

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
    others: Sequence[Value | None],
) -> Value | Skip:
    """Move the padding into the convolution: zeros, or for integers the zero point of x.

    By definition the two are the same, but the padding may change the summation order of a runtime:
    onnxruntime uses another order if the kernel is as wide as the rows.
    """
    added = spatial_pads(x, pads, axes)
    if added is None:
        return Skip("the pads are not constant, spatial and non-negative")
    own = _own_pads(node, x, added)
    if isinstance(own, Skip):
        return own
    zero_point = node.input(2) if node.op_type == "ConvInteger" else None
    if not _is_nothing(value, zero_point):
        return Skip("it does not pad with zeros")
    both = [a + b for a, b in zip(own, added, strict=True)]
    return graph.op.like(node, x, *others, auto_pad=None, pads=both)


def _is_nothing(value: Value | None, zero_point: Value | None) -> bool:
    """Return whether a Pad has the same pad value as the convolution."""
    if value is not None and value is zero_point:
        return True
    nothing, zero = (0 if each is None else each.number for each in (value, zero_point))
    return nothing is not None and nothing == zero


def _own_pads(node: Node, x: Value, added: Sequence[int]) -> Sequence[int] | Skip:
    """Return the pads of the convolution itself, for a padded x.

    SAME pads until the number of windows is the (padded) size divided by the stride, rounded up.
    With a stride of 1 the size need not be known.
    """
    rank = len(added) // 2
    how = node.attr("auto_pad")
    if how == "VALID":
        return [0] * (2 * rank)
    if how == "NOTSET":
        pads: Sequence[int] = node.attr("pads", None) or [0] * (2 * rank)
        return pads
    shape = (node.given(1).shape or ())[2:]
    kernel = [size for size in node.attr("kernel_shape", None) or shape if isinstance(size, int)]
    strides = node.attr("strides", None) or [1] * rank
    if any(step != 1 for step in node.attr("dilations", None) or ()):
        return Skip("runtimes differ on auto_pad with dilations")
    if len(kernel) != rank:
        return Skip("the size of the kernel is not known")
    before, behind = [], []
    for axis, (size, step) in enumerate(zip(kernel, strides, strict=True)):
        dim = x.dim(axis + 2)
        if not (step == 1 or isinstance(dim, int)):
            return Skip("auto_pad depends on an unknown size")
        whole = dim + added[axis] + added[axis + rank] if isinstance(dim, int) else 1
        total = (-(-whole // step) - 1) * step + size - whole
        if total < 0:
            return Skip("runtimes differ on this auto_pad")
        half = total // 2
        before.append(half if how == "SAME_UPPER" else total - half)
        behind.append(total - half if how == "SAME_UPPER" else half)
    return [*before, *behind]
