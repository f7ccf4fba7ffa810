"""MaxPool(x), AveragePool(x), LpPool(x)  =>  a reduction of the windows of x"""

import math

import numpy as np
from numpy.typing import NDArray

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.comparison import is_integer
from tiered.rewriter.idioms.windows import Windows, windows_of


@rewrite(
    (op.MaxPool | op.AveragePool | op.LpPool)(var.x, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("fold_constant", "eliminate_unused_initializer"),
    legalizes=True,
    numerics="reassociating",
)
def lower_pooling(graph: Graph, node: Node, x: Value) -> Value | Skip:
    """Gather the windows, for targets with Gather and reductions but without pools.

    A window that is the whole image is reduced as it is. The largest of NaN and numbers is not
    defined.
    """
    if any(value is not None for value in node.outputs[1:]):
        return Skip("the indices are an output")
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    if node.op_type == "LpPool" and node.attr("p") not in (1, 2):
        return Skip("no reduction has p = {}", node.attr("p"))
    windows = windows_of(node, x, node.attr("kernel_shape"))
    if isinstance(windows, Skip):
        return windows
    reduction = {"MaxPool": "ReduceMax", "AveragePool": "ReduceMean"}.get(
        node.op_type, f"ReduceL{node.attr('p', 2)}"
    )
    if windows.is_whole:
        spatial = np.arange(2, 2 + len(windows.axes))
        return graph.op.named(reduction)(x, spatial, keepdims=1)
    counts = _counts(node, windows)
    if isinstance(counts, Skip):
        return counts
    places = math.prod(windows.counts)
    channels = x.dim(1)
    assert isinstance(channels, int)
    lowest = _lowest(x) if node.op_type == "MaxPool" else 0.0
    columns = graph.op.Reshape(
        windows.gather(graph, x, lowest),
        np.array([0, channels, windows.kernel, places], np.int64),
    )
    is_mean = node.op_type == "AveragePool" and counts.min() < windows.kernel
    made = graph.op.named("ReduceSum" if is_mean else reduction)(
        columns, np.array([2], np.int64), keepdims=0
    )
    if is_mean:
        made = graph.op.Div(made, graph.constant(counts.astype(DataType(x.dtype).numpy), "counts"))
    return graph.op.Reshape(made, np.array([0, channels, *windows.counts], np.int64))


def _lowest(x: Value) -> float:
    assert x.dtype is not None
    numpy = DataType(x.dtype).numpy
    return float(np.iinfo(numpy).min) if is_integer(x.dtype) else -np.inf


def _counts(node: Node, windows: Windows) -> NDArray[np.int64] | Skip:
    """Return how many elements of each window are averaged."""
    is_padding_inside = bool(node.attr("count_include_pad", 0))
    if is_padding_inside and any(axis.beyond > axis.after for axis in windows.axes):
        return Skip("runtimes count windows beyond the padding differently")
    inside = windows.inside(is_padding_inside=is_padding_inside)
    counts: NDArray[np.int64] = inside.astype(np.int64).sum(axis=0)
    return counts
