"""QuantizeLinear(AveragePool(DequantizeLinear(x)))  =>  QLinearAveragePool(x), global ones too"""

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from tiered import QUANTIZED, Graph, Node, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.quantized_tensors import quantized_unit

_RANK = 4
_LARGE: Final = 1 << 24
"""The least number of pixels for which the kernels do not average an image."""

_RATIOS: Final = (2.0**-8, 2.0**8)
"""The kernels support this range of x_scale / y_scale, also divided by the number of pixels."""
_TAKEN = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")


@rewrite(
    op.QuantizeLinear(
        (op.AveragePool | op.GlobalAveragePool)(var.x, attrs=...).bind("pool"), ..., attrs=...
    ),
    opt_level=3,
    required=("infer_shapes",),
    makes=[
        "com.microsoft::QLinearAveragePool",
        "com.microsoft::QLinearGlobalAveragePool",
    ],
    quantization="operators",
    numerics=QUANTIZED,
)
def fuse_qdq_into_pool(graph: Graph, node: Node, pool: Node, x: Value) -> Value | Skip:
    """Add integers, divide and round once."""
    units = quantized_unit(node, x)
    if isinstance(units, Skip):
        return units
    if x.rank != _RANK:
        return Skip("x is not known to have 4 dims")
    data, result = units
    ratio = float(data.scales.item() / result.scales.item())
    if not _RATIOS[0] <= ratio < _RATIOS[1]:
        return Skip("the scales are too far apart for the kernel")
    assert x.shape is not None
    if prod(dim for dim in x.shape[2:] if isinstance(dim, int)) >= _LARGE:
        return Skip("the image has too many pixels for the kernel")
    contrib = graph.op("com.microsoft")
    operands = (*data.operands(graph), *result.parameters(graph))
    if pool.op_type == "GlobalAveragePool":
        return contrib.QLinearGlobalAveragePool(*operands, channels_last=0)
    settings = pool.settings
    if set(settings) - set(_TAKEN):
        return Skip("the windows are dilated")
    counted = _without_miscount(x.shape, settings)
    if isinstance(counted, Skip):
        return counted
    pooled: Value = contrib.QLinearAveragePool(*operands, **counted)
    return pooled


def _without_miscount(
    shape: Sequence[int | str | None], settings: dict[str, Any]
) -> dict[str, Any] | Skip:
    """Return settings of the same averages that QLinearAveragePool computes correctly.

    With both ceil_mode and count_include_pad the kernel divides by the size of the whole window,
    including the part beyond the padding.

    Args:
        shape: the shape of the image, of rank 4.
        settings: the attributes of the AveragePool.
    """
    if not (settings.get("ceil_mode") and settings.get("count_include_pad")):
        return settings
    if settings.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return Skip("auto_pad depends on the size of x")
    kernel = settings["kernel_shape"]
    pads = settings.get("pads", [0] * 2 * len(kernel))
    if settings.get("auto_pad") == "VALID" or not any(pads):
        return {**settings, "count_include_pad": 0}  # there is no padding to count
    strides = settings.get("strides", [1] * len(kernel))
    before, after = pads[: len(kernel)], pads[len(kernel) :]
    axes = zip(shape[2:], before, after, kernel, strides, strict=True)
    for dim, low, high, size, stride in axes:
        is_whole = stride == 1 or (isinstance(dim, int) and (dim + low + high - size) % stride == 0)
        if not is_whole:
            return Skip("onnxruntime miscounts windows beyond the padding")
    return {**settings, "ceil_mode": 0}
