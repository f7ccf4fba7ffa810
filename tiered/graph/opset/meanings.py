"""What a conversion must know beyond the table of forms: rows for nodes that no pass builds.

A node of a file may mean what one that a pass builds never means: an index from the end, a window
in the padding. `MEANINGS` has the conditions under which it means the same on both sides of a
change. `INSTEAD` has rows that take the place of those of `adapters.CHANGES` at their opset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx

from tiered.graph.core.dtypes import bits_of
from tiered.graph.opset.adapter import (
    OperatorForm,
    OpsetChange,
    contents,
    detached,
    drop_empty,
    negative_axes,
)

_UNSIGNED: Final = frozenset(
    onnx.TensorProto.DataType.Value(f"UINT{bits}") for bits in (8, 16, 32, 64)
)
_INTEGERS: Final = _UNSIGNED | {
    onnx.TensorProto.DataType.Value(f"INT{bits}") for bits in (8, 16, 32, 64)
}


def _both(since: int, check: Any) -> OpsetChange:
    return OpsetChange(since, check, check)


# --- indices from the end -------------------------------------------------------------------------


def _no_negative(place: int, name: str) -> Any:
    """Return a check that an operand holds no number below 0."""

    def check(form: OperatorForm) -> None:
        value = form.operand(place)
        if value is None or value.dtype in _UNSIGNED:
            return
        array = contents(value)
        if array is None or (array < 0).any():
            raise form.declines(f"counts negative {name} from the end since opset 11")

    return check


def _write_slice_axes(form: OperatorForm) -> None:
    """Slice before 11 counts its axes from the front."""
    if form.operand(3) is None:
        return
    axes = form.numbers(3)
    if axes is None:
        raise form.declines("counts negative axes from the end since opset 11")
    if (axes >= 0).all():
        return
    if form.rank is None:
        raise form.declines("needs a known rank to count its axes from the front")
    form.set_operand(3, detached(np.where(axes < 0, axes + form.rank, axes), "axes"))


# --- padding and windows --------------------------------------------------------------------------


def _check_sides(form: OperatorForm) -> None:
    """ConvTranspose-11 exchanged the sides on which an odd padding has one more."""
    padding = form.attributes.get("auto_pad", "NOTSET")
    if form.attributes.get("output_shape") or padding in ("SAME_UPPER", "SAME_LOWER"):
        raise form.declines("puts odd padding on the other side since opset 11")


def _check_windows(form: OperatorForm) -> None:
    """Pools ignore windows that would start in the padding at the end since 22."""
    sizes = form.attributes
    if not sizes.get("ceil_mode", 0) or sizes.get("auto_pad", "NOTSET") != "NOTSET":
        return
    kernel = sizes["kernel_shape"]
    rank = len(kernel)
    strides = sizes.get("strides") or [1] * rank
    dilations = sizes.get("dilations") or [1] * rank
    pads = sizes.get("pads") or [0] * (2 * rank)
    spatial = (None,) * rank if form.shape is None else form.shape[2:]
    for axis, size in enumerate(spatial):
        step, end = strides[axis], pads[rank + axis]
        window = (kernel[axis] - 1) * dilations[axis] + 1
        if end + step <= window:
            continue  # no window can start there, whatever the size
        if not isinstance(size, int):
            raise form.declines("may have a window that starts in the padding")
        start = pads[axis]
        last = -(-(size + start + end - window) // step)
        if last * step >= size + start:
            raise form.declines("has a window that starts in the padding, ignored since opset 22")


def _undilated(since: int) -> OpsetChange:
    """Return the row of the dilations of pools, which could not be written down before."""

    def write(form: OperatorForm) -> None:
        if all(dilation == 1 for dilation in form.attributes.get("dilations", ())):
            form.attributes.pop("dilations", None)

    return OpsetChange(since, write=write)


def _check_counted_padding(form: OperatorForm) -> None:
    """AveragePool: whether windows beyond the padding count what they lack is clear since 19."""
    if form.attributes.get("ceil_mode", 0) and form.attributes.get("count_include_pad", 0):
        raise form.declines("divides by other counts at the end before opset 19")


# --- dtypes ---------------------------------------------------------------------------------------

_SCALES: Final = frozenset({onnx.TensorProto.FLOAT8E8M0})
_FLOAT8: Final = _SCALES | {
    onnx.TensorProto.DataType.Value(f"FLOAT8{name}")
    for name in ("E4M3FN", "E4M3FNUZ", "E5M2", "E5M2FNUZ")
}
_FNUZ: Final = (onnx.TensorProto.FLOAT8E4M3FNUZ, onnx.TensorProto.FLOAT8E5M2FNUZ)


def _made_dtype(form: OperatorForm) -> int | None:
    """Return the dtype that a Cast or CastLike makes."""
    like = form.operand(1)
    return form.attributes.get("to") if like is None else like.dtype


def _check_infinities(form: OperatorForm) -> None:
    """Cast and CastLike: an infinity saturates in the float8 types without one since 24."""
    if _made_dtype(form) in _FNUZ and form.attributes.get("saturate", True):
        raise form.declines("makes NaN of infinities before opset 24")


def _check_dtype(form: OperatorForm) -> None:
    """Numbers of attributes become operands of the dtype of the first one."""
    if form.dtype is None:
        raise form.declines("needs a known dtype for its new operands")


def _check_bounds(form: OperatorForm) -> None:
    """Clip before 11 has attributes, and runtimes refuse a min above max."""
    low, high = form.numbers(1), form.numbers(2)
    if low is not None and high is not None and (low > high).any():
        raise form.declines("has a min above max, which is not defined before opset 11")


def _write_plain_cast(since: int, attribute: str, dtypes: frozenset[int]) -> OpsetChange:
    """Return the row of an attribute of casts that only casts to some dtypes obey."""

    def write(form: OperatorForm) -> None:
        to = _made_dtype(form)
        if to is not None and to not in dtypes:
            form.attributes.pop(attribute, None)

    return OpsetChange(since, write=write)


def _write_mod(form: OperatorForm) -> None:
    if not form.attributes.get("fmod", 0) and form.dtype not in _INTEGERS:
        raise form.declines("rounds the quotient of floats down since opset 28")


def _write_shift(form: OperatorForm) -> None:
    shift, dtype = form.numbers(1), form.dtype
    if shift is None or dtype is None or (shift >= bits_of(dtype)).any():
        raise form.declines("defines shifts by all bits since opset 28")


def _write_quantized_dtype(form: OperatorForm) -> None:
    """QuantizeLinear before 21 has the dtype of its zero point, else uint8."""
    dtype = form.attributes.pop("output_dtype", 0)
    if not dtype or dtype == onnx.TensorProto.UINT8 or form.operand(2) is not None:
        return
    scale = form.operand(1)
    shape = None if scale is None else scale.static_shape
    if shape is None:
        raise form.declines("needs a zero point for its dtype, and the scale's shape is not known")
    zeros = np.zeros(shape, onnx.helper.tensor_dtype_to_np_dtype(dtype))
    form.set_operand(2, detached(zeros, "zero_point"))


def _write_dequantized_dtype(form: OperatorForm) -> None:
    """DequantizeLinear before 23 has the dtype of its scale."""
    scale = form.operand(1)
    if scale is not None and scale.dtype == form.attributes.get("output_dtype"):
        form.attributes.pop("output_dtype", None)


def _write_scalar_axis(form: OperatorForm) -> None:
    """QuantizeLinear and DequantizeLinear ignore the axis where there is one scale."""
    scale = form.operand(1)
    if scale is not None and scale.rank == 0:
        form.attributes.pop("axis", None)


# --- shapes ---------------------------------------------------------------------------------------


def _write_image(form: OperatorForm) -> None:
    if form.rank != 4:
        raise form.declines("samples 4-D images alone before opset 20")


def _write_full_mask(form: OperatorForm) -> None:
    """Attention-24 pads a mask that is shorter than the keys."""
    mask = form.operand(3)
    if mask is None:
        return
    size, parts = mask.dim(-1), [form.operand(1), form.operand(4)]
    sizes = [value.dim(-2) for value in parts if value is not None]
    if size is not None and sizes == [size]:
        return
    numbers = [each for each in (size, *sizes) if isinstance(each, int)]
    if len(numbers) > len(sizes) and numbers[0] == sum(numbers[1:]):
        return
    raise form.declines("pads a shorter mask since opset 24")


def _write_resized_axes(form: OperatorForm) -> None:
    """Resize before 18 has a scale or size for each axis."""
    axes = form.attributes.get("axes")
    if axes is None:
        return
    scales, sizes, shape = form.numbers(2), form.numbers(3), form.shape
    if shape is None or (form.operand(1) is not None and form.numbers(1) is None):
        raise form.declines("needs a known rank and a constant roi without axes")
    rank, at = len(shape), [axis % len(shape) for axis in axes]
    if form.operand(2) is not None:
        if scales is None:
            raise form.declines("needs constant scales without axes")
        form.set_operand(2, detached(_spread(scales, [1.0] * rank, at, np.float32), "scales"))
    if form.operand(3) is not None:
        if sizes is None or not all(isinstance(dim, int) for dim in shape):
            raise form.declines("needs constant sizes and known dims without axes")
        form.set_operand(3, detached(_spread(sizes, shape, at, np.int64), "sizes"))
    roi = form.numbers(1)
    if roi is not None and roi.size:
        half, dtype = len(at), roi.dtype
        starts = _spread(roi[:half], [0.0] * rank, at, dtype)
        ends = _spread(roi[half:], [1.0] * rank, at, dtype)
        form.set_operand(1, detached(np.concatenate([starts, ends]), "roi"))
    del form.attributes["axes"]


def _read_roi(form: OperatorForm) -> None:
    """Resize-11 and -12 need a roi, which may be empty."""
    form.set_operand(1, detached(np.empty(0, np.float32), "roi"))


def _write_no_roi(form: OperatorForm) -> None:
    """Resize-10 takes scales alone; an empty roi is none."""
    drop_empty(form, 1)


def _spread(given: np.ndarray[Any, Any], rest: Any, places: list[int], dtype: Any) -> Any:
    full = np.array(rest, dtype)
    full[places] = given
    return full


def _read_group_scale(form: OperatorForm) -> None:
    """GroupNormalization has a scale for each channel since 21, for each group before."""
    data, groups = form.operand(0), form.attributes["num_groups"]
    channels = None if data is None else data.dim(1)
    for place, name in ((1, "scale"), (2, "bias")):
        array = form.numbers(place)
        if array is None or not isinstance(channels, int) or channels % groups:
            raise form.declines(f"needs a constant {name} and known channels")
        form.set_operand(place, detached(np.repeat(array, channels // groups), name))


def _write_gemm_bias(form: OperatorForm) -> None:
    """Gemm before 11 needs its third operand: -0.0 is what changes no sum, not even to +0.0."""
    if form.operand(2) is not None:
        return
    if form.dtype is None:
        raise form.declines("needs a bias, and the dtype is not known")
    zero = np.array(-0.0).astype(onnx.helper.tensor_dtype_to_np_dtype(form.dtype))
    form.attributes.pop("beta", None)
    form.set_operand(2, detached(zero, "bias"))


# --- operators that got another name --------------------------------------------------------------


def _rename(op_type: str) -> Any:
    def apply(form: OperatorForm) -> None:
        form.op_type = op_type

    return apply


def _read_upsample(form: OperatorForm) -> None:
    """Upsample-9 is Resize-10 with scales from 1 on, and so rounds down."""
    scales = form.numbers(1)
    if scales is not None and (scales < 1).any():
        raise form.declines("takes scales from 1 on")
    form.op_type = "Resize"
    if form.target > 10 and form.attributes.get("mode", "nearest") == "nearest":
        form.attributes["nearest_mode"] = "floor"


def _write_upsample(form: OperatorForm) -> None:
    scales = form.numbers(1)
    if scales is None or (scales < 1).any():
        raise form.declines("is Upsample before opset 10 for constant scales from 1 on")
    form.op_type = "Upsample"


def _write_scatter(form: OperatorForm) -> None:
    _no_negative(1, "indices")(form)
    form.op_type = "Scatter"


_WINDOWS: Final = _both(22, _check_windows)
_CAST: Final = (
    _both(24, _check_infinities),
    _write_plain_cast(24, "round_mode", _SCALES),
    _write_plain_cast(19, "saturate", _FLOAT8),
)
_ONE_SCALE: Final = OpsetChange(13, write=_write_scalar_axis)

MEANINGS: Final[Mapping[str, tuple[OpsetChange, ...]]] = {
    "Attention": (OpsetChange(24, write=_write_full_mask),),
    "AveragePool": (_WINDOWS, _both(19, _check_counted_padding), _undilated(19)),
    "BitShift": (OpsetChange(28, write=_write_shift),),
    "Cast": _CAST,
    "CastLike": _CAST,
    "Clip": (OpsetChange(11, read=_check_dtype, write=_check_bounds),),
    "Compress": (negative_axes("axis"),),
    "ConvTranspose": (_both(11, _check_sides),),
    "DequantizeLinear": (OpsetChange(23, write=_write_dequantized_dtype), _ONE_SCALE),
    "Gather": (OpsetChange(11, write=_no_negative(1, "indices")),),
    "Gemm": (OpsetChange(11, write=_write_gemm_bias),),
    "GridSample": (OpsetChange(20, write=_write_image),),
    "LpPool": (_WINDOWS, _undilated(18)),
    "MaxPool": (_WINDOWS, _undilated(10)),
    "Mod": (OpsetChange(28, write=_write_mod),),
    "OneHot": (_both(11, _no_negative(0, "indices")),),
    "Pad": (OpsetChange(11, read=_check_dtype),),
    "QuantizeLinear": (OpsetChange(21, write=_write_quantized_dtype), _ONE_SCALE),
    "Resize": (
        OpsetChange(18, write=_write_resized_axes),
        OpsetChange(11, _read_roi, _write_no_roi),
        OpsetChange(10, write=_write_upsample),
    ),
    "Scatter": (OpsetChange(11, read=_rename("ScatterElements")),),
    "ScatterElements": (OpsetChange(11, write=_write_scatter),),
    "Slice": (OpsetChange(11, write=_write_slice_axes),),
    "Upsample": (OpsetChange(10, read=_read_upsample),),
}
INSTEAD: Final[Mapping[str, tuple[OpsetChange, ...]]] = {
    "GroupNormalization": (OpsetChange(21, _read_group_scale),),
}
