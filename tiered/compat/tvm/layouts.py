"""`ConvertLayout` with the operators and layouts of TVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tiered
from tiered.passes import Pass
from tiered.support.errors import UsageError

_OPERATORS = {
    **dict.fromkeys(("nn.conv1d", "nn.conv2d", "nn.conv3d"), "Conv"),
    **dict.fromkeys(
        ("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"), "ConvTranspose"
    ),
    "image.resize2d": "Resize",
    "nn.avg_pool2d": "AveragePool",
    "nn.batch_norm": "BatchNormalization",
    "nn.global_avg_pool2d": "GlobalAveragePool",
    "nn.global_max_pool2d": "GlobalMaxPool",
    "nn.instance_norm": "InstanceNormalization",
    "nn.max_pool2d": "MaxPool",
    "qnn.conv2d": "QLinearConv",
}
_LAYOUTS = {
    **dict.fromkeys(("NCW", "NCHW", "NCDHW"), "NCHW"),
    **dict.fromkeys(("NWC", "NHWC", "NDHWC"), "NHWC"),
}


def ConvertLayout(desired_layouts: Any = None, **options: Any) -> Pass:
    """Return `convert_layout` for operators that TVM or ONNX names.

    Args:
        desired_layouts: a layout for each operator, or a list [images, kernels]; the layout of
            kernels is ignored, it follows that of the images. One layout alone is that of Conv.
        options: other options of `convert_layout`.

    Raises:
        UsageError: there is no such operator or layout.
    """
    if isinstance(desired_layouts, str):
        desired_layouts = {"Conv": desired_layouts}
    if desired_layouts is not None and not isinstance(desired_layouts, Mapping):
        raise UsageError(
            f"ConvertLayout takes a layout for each operator, as {{'nn.conv2d': 'NHWC'}}, "
            f"not {desired_layouts!r}"
        )
    if desired_layouts is None:
        return tiered.get_pass("convert_layout", **options)
    wanted = {}
    for name, given in desired_layouts.items():
        op_type = _OPERATORS.get(name.removeprefix("relax."))
        if op_type is None and "." in name:
            raise UsageError(f"ConvertLayout: {name!r} has no layout option")
        layout = given if isinstance(given, str) else given[0]
        if layout not in _LAYOUTS:
            raise UsageError(
                f"ConvertLayout: {layout!r} is no layout of images; expected {', '.join(_LAYOUTS)}"
            )
        wanted[op_type or name] = _LAYOUTS[layout]
    return tiered.get_pass("convert_layout", desired_layouts=wanted, **options)
