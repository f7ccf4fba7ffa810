"""Conv(Pad(x, pads, 0), weight)  =>  Conv(x, weight, pads=pads'), also for integers and pools"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from tiered import Graph, Node, Skip, Value, non_negative_axes, op, opt, rest, rewrite, var

_padded = op.Pad(var.x, var.pads, opt.value, opt.axes).bind("pad")
_NEVER_NEGATIVE: Final = frozenset({"Abs", "Relu", "Sigmoid", "Softmax", "Softplus"})


@rewrite(
    op.Conv(_padded, rest.others, attrs=...)
    | op.ConvInteger(_padded, rest.others, attrs=...)
    | op.AveragePool(_padded, attrs=...)
    | op.MaxPool(_padded, attrs=...),
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
    """Let the operator pad by itself.

    Convolutions and averages pad with zeros, a convolution of integers with the zero point of x,
    and a maximum with what is never the largest: -Inf, or 0 where x is never below it.
    """
    if node.has_references:
        return Skip("the call of the function decides an attribute")
    if node.attr("auto_pad") not in ("NOTSET", "VALID"):
        return Skip("auto_pad depends on the size of x")
    added = _spatial_pads(x, pads, axes)
    if added is None:
        return Skip("the pads are not constant, crop, or are not of spatial axes alone")
    settings = {name: setting for name, setting in node.attributes.items() if name != "auto_pad"}
    own = list(settings.get("pads", [0] * len(added)))
    nothing = 0.0 if value is None else _number(value)
    if node.op_type == "MaxPool":
        if nothing is None or not (nothing == -np.inf or (nothing == 0 and _is_positive(x))):
            return Skip("the largest may be what it pads with")
    elif nothing is None or nothing != _zero(node):
        return Skip("it pads with something else than zeros")
    if node.op_type.endswith("Pool"):
        if settings.get("ceil_mode", 0):
            return Skip("a window may reach beyond the padding")
        if any(size != 1 for size in settings.get("dilations", ())):
            return Skip("a window with holes may see nothing but padding")
        sizes = [*settings["kernel_shape"]] * 2
        if any(a + b >= size for a, b, size in zip(own, added, sizes, strict=True)):
            return Skip("a window may see nothing but padding")
    if node.op_type == "AveragePool":
        if any(own) and not settings.get("count_include_pad", 0):
            return Skip("it counts what was padded, but not its own padding")
        settings["count_include_pad"] = 1
    if len(node.outputs) > 1 and node.outputs[1] is not None:
        return Skip("the places of the largest would count from elsewhere")
    settings["pads"] = [a + b for a, b in zip(own, added, strict=True)]
    result: Value = getattr(graph.op, node.op_type)(x, *(others or ()), **settings)
    return result


def _spatial_pads(x: Value, pads: Value, axes: Value | None) -> list[int] | None:
    """Return what is added to the spatial axes: before each of them, then behind each of them."""
    if x.rank is None or x.rank < 3 or pads.const is None:
        return None
    rank, amounts = x.rank, pads.const.ravel().tolist()
    places: Sequence[int] | None = range(rank)
    if axes is not None:
        places = None if axes.const is None else non_negative_axes(axes.const.ravel(), rank)
    if places is None or len(amounts) != 2 * len(places) or any(size < 0 for size in amounts):
        return None
    whole = np.zeros((2, rank), np.int64)
    whole[:, list(places)] = np.reshape(amounts, (2, len(places)))
    return None if whole[:, :2].any() else [int(size) for size in whole[:, 2:].ravel()]


def _zero(node: Node) -> float | None:
    """Return what a convolution takes for 0."""
    zero_point = node.input(2) if node.op_type == "ConvInteger" else None
    return 0.0 if zero_point is None else _number(zero_point)


def _number(value: Value) -> float | None:
    """Return the one number that a constant holds, None for anything else."""
    array = value.const
    return float(array.item()) if array is not None and np.size(array) == 1 else None


def _is_positive(x: Value) -> bool:
    """Tell whether no element is below 0."""
    node = x.producer
    if node is None or node.domain:
        return False
    low = node.operand("min") if node.op_type == "Clip" else None
    least = None if low is None else _number(low)
    return node.op_type in _NEVER_NEGATIVE or (least is not None and least >= 0)
