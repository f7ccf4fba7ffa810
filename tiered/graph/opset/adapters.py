"""The table of opset forms: how older opsets write an operator.

Each row has the opset of the change, the conversion from the older form to the newer one, and the
conversion back. A row raises `NoEquivalentForm` if there is no equivalent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx

from tiered.graph.core.schema import AttributeReference
from tiered.graph.core.tensor import Tensor
from tiered.graph.opset.adapter import (
    OperatorForm,
    OpsetChange,
    absent,
    detached,
    drop_empty,
    moved,
    negative_axes,
    never,
    only_as,
    renamed,
    says_the_same,
    value_since,
)

if TYPE_CHECKING:
    from tiered.graph.core.types import Shape


# --- operators whose meaning changed --------------------------------------------------------------


def _read_flattening(form: OperatorForm) -> None:
    """Softmax and its like: before 13 all dims from `axis` on were one."""
    axis = form.attributes.get("axis", 1)
    if isinstance(axis, AttributeReference):
        raise form.declines("flattens from an axis that the call decides")
    data, shape = form.operand(0), form.shape
    producer = None if data is None else data.producer
    if shape is None and producer is not None and producer.is_op("Flatten"):
        shape = (None, None)  # a matrix, whatever it is of
    form.attributes["axis"] = _one_axis(form, axis, shape)


def _one_axis(form: OperatorForm, axis: int, shape: Shape | None) -> int:
    """Return the one axis that counts, of those from `axis` on."""
    if axis == -1:
        return -1
    if shape is None:
        raise form.declines("flattens, and the rank is not known")
    rank = len(shape)
    first = axis + rank if axis < 0 else axis
    if first == rank - 1:
        return -1
    wide = [at for at in range(first, rank) if shape[at] != 1]
    if len(wide) > 1 or first >= rank:
        raise form.declines("flattens several dims")
    return wide[0] if wide else rank - 1


def _write_flattening(form: OperatorForm) -> None:
    axis, shape = form.attributes.get("axis", -1), form.shape
    if shape is None:
        if axis != -1 or form.version < 11:
            raise form.declines("needs a known rank")
        form.attributes["axis"] = -1
        return
    rank = len(shape)
    first = axis + rank if axis < 0 else axis
    if not rank or any(dim != 1 for dim in shape[first + 1 :]):
        raise form.declines("would flatten the dims after its axis")
    form.attributes["axis"] = first


def _check_limits(form: OperatorForm) -> None:
    """Clip without a limit has the largest float32 before 11, and the largest x since."""
    if form.dtype == onnx.TensorProto.FLOAT:
        return
    for place, attribute in ((1, "min"), (2, "max")):
        if form.operand(place) is None and attribute not in form.attributes:
            raise form.declines(f"without {attribute} has that of a float32")


def _read_spatial(form: OperatorForm) -> None:
    if form.attributes.pop("spatial", 1) != 1:
        raise form.declines("is not spatial")


def _read_inference(form: OperatorForm) -> None:
    """BatchNormalization before 14 trained where it had more than one output."""
    if (form.n_outputs or 1) > 1:
        raise form.declines("trains")


def _write_inference(form: OperatorForm) -> None:
    if form.attributes.get("training_mode", 0) or (form.n_outputs or 1) > 1:
        raise form.declines("cannot train like that")


def _read_even_split(form: OperatorForm) -> None:
    if form.operand(1) is None and "split" not in form.attributes and form.n_outputs:
        form.attributes["num_outputs"] = form.n_outputs


def _write_even_split(form: OperatorForm) -> None:
    parts = form.attributes.pop("num_outputs", None)
    if parts is None or form.operand(1) is not None:
        return
    axis, shape = form.attributes.get("axis", 0), form.shape
    size = None if shape is None else shape[axis]
    if not isinstance(size, int):
        raise form.declines("needs a known size to split evenly")
    if size % parts:
        whole = -(-size // parts)
        sizes = [whole] * (parts - 1) + [size - whole * (parts - 1)]
        if sizes[-1] < 0:
            raise form.declines(f"cannot split {size} in {parts}")
        form.set_operand(1, detached(np.array(sizes, np.int64), "split"))


def _write_pad_axes(form: OperatorForm) -> None:
    """Pad before 18 pads all axes: the missing ones get pads of 0."""
    axes, pads, rank = form.numbers(3), form.numbers(1), form.rank
    if form.operand(3) is None:
        return
    if axes is None or pads is None or rank is None:
        raise form.declines("needs constant pads and axes, and a known rank")
    whole = np.zeros(2 * rank, np.int64)
    for at, axis in enumerate(axes.ravel().tolist()):
        whole[axis % rank] = pads.ravel()[at]
        whole[axis % rank + rank] = pads.ravel()[at + axes.size]
    form.set_operand(1, detached(whole, "pads"))
    form.set_operand(3, None)


def _write_zero_dims(form: OperatorForm) -> None:
    """Reshape before 14 always copies a dim for a 0."""
    if not form.attributes.get("allowzero", 0):
        return
    target = form.numbers(1)
    if target is None or 0 in target:
        raise form.declines("copies a dim for a 0")
    del form.attributes["allowzero"]


def _write_noop(form: OperatorForm) -> None:
    """Reductions before 13 or 18 reduce all axes if none are named."""
    if not form.attributes.pop("noop_with_empty_axes", 0):
        return
    axes = form.numbers(1)
    if axes is None or not axes.size:
        raise form.declines("reduces all axes if none are named")


def _write_constant(form: OperatorForm) -> None:
    """Constant before 12 holds a tensor."""
    for name, dtype in _CONSTANT_DTYPES.items():
        raw = form.attributes.pop(name, None)
        if raw is not None:
            form.attributes["value"] = Tensor.of(np.array(raw, dtype))


_CONSTANT_DTYPES: Final[Mapping[str, Any]] = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": object,
    "value_strings": object,
}


def _read_first_resize(form: OperatorForm) -> None:
    """Resize-10: (x, scales), asymmetric; "nearest" rounds as in onnxruntime."""
    scales = form.operand(1)
    is_nearest = form.attributes.get("mode", "nearest") == "nearest"
    if is_nearest and "nearest_mode" not in form.attributes:
        form.attributes["nearest_mode"] = _simple_nearest(form, form.numbers(1))
    form.attributes["coordinate_transformation_mode"] = "asymmetric"
    form.set_operand(1, None)
    form.set_operand(2, scales)


def _simple_nearest(form: OperatorForm, scales: np.ndarray[Any, Any] | None) -> str:
    if scales is not None and (scales >= 1).all():
        return "floor"
    if scales is not None and (scales <= 1).all():
        return "ceil"
    raise form.declines("rounds up where it shrinks and down where it grows")


def _write_first_resize(form: OperatorForm) -> None:
    mode = form.attributes.get("mode", "nearest")
    scales = form.numbers(2)
    if form.operand(1) is not None or form.operand(3) is not None or form.operand(2) is None:
        raise form.declines("takes scales alone")
    if form.attributes.pop("coordinate_transformation_mode", "half_pixel") != "asymmetric":
        raise form.declines("is asymmetric")
    rounding = form.attributes.pop("nearest_mode", "round_prefer_floor")
    if mode == "nearest" and rounding != _simple_nearest(form, scales):
        raise form.declines(f"has no nearest_mode={rounding!r}")
    value = form.operand(2)
    form.operands[1:] = [value]


def _read_required_resize(form: OperatorForm) -> None:
    """Resize-11 has an empty tensor for an absent operand."""
    drop_empty(form, 1, 2)


def _write_required_resize(form: OperatorForm) -> None:
    if form.version < 11:
        return
    for place, name in ((1, "roi"), (2, "scales")):
        if form.operand(place) is None:
            form.set_operand(place, detached(np.empty(0, np.float32), name))


def _write_one_scale(form: OperatorForm) -> None:
    scale = form.operand(1)
    if scale is None or scale.rank != 0:
        raise form.declines("has one scale")


def _write_same_shapes(form: OperatorForm) -> None:
    shapes = {None if value is None else value.static_shape for value in form.operands}
    if len(form.operands) > 1 and (len(shapes) > 1 or None in shapes):
        raise form.declines("does not broadcast")


def _read_dft_axis(form: OperatorForm) -> None:
    """DFT without an axis transforms the second one before 20, and the last but one since."""
    if form.operand(2) is None:
        form.set_operand(2, detached(np.array(1, np.int64), "axis"))


def _write_dft_axis(form: OperatorForm) -> None:
    if form.operand(2) is None:
        form.set_operand(2, detached(np.array(-2, np.int64), "axis"))


def _read_dropout_mask(form: OperatorForm) -> None:
    if (form.n_outputs or 1) > 1:
        raise form.declines("returns a mask that is not bool")


_FLATTENING: Final = OpsetChange(13, _read_flattening, _write_flattening)
_EQUAL_SHAPES: Final = OpsetChange(8, write=_write_same_shapes)
_AXIS: Final = negative_axes("axis")
_REDUCE: Final = (
    OpsetChange(18, write=_write_noop), moved(1, "axes", 18, "int64"), negative_axes("axes")
)  # fmt: skip

CHANGES: Final[Mapping[str, tuple[OpsetChange, ...]]] = {
    "ArgMax": (_AXIS,),
    "ArgMin": (_AXIS,),
    "BatchNormalization": (
        OpsetChange(14, _read_inference, _write_inference),
        OpsetChange(9, _read_spatial),
    ),
    "Clip": (
        OpsetChange(11, _check_limits, _check_limits),
        moved(1, "min", 11, "like x"),
        moved(2, "max", 11, "like x"),
    ),
    "Concat": (_AXIS,),
    "Constant": (OpsetChange(12, write=_write_constant),),
    "DFT": (OpsetChange(20, _read_dft_axis, _write_dft_axis), moved(2, "axis", 20, "int64 []")),
    "Dropout": (
        moved(1, "ratio", 12, "float"),
        absent(2, 12, lambda training: not training.any()),
        OpsetChange(10, _read_dropout_mask, _read_dropout_mask),
    ),
    "Flatten": (_AXIS,),
    "Gather": (_AXIS,),
    "GridSample": (renamed("mode", {"bilinear": "linear", "bicubic": "cubic"}, 20),),
    "GroupNormalization": (never(21, "has a scale for each group"),),
    "Hardmax": (_FLATTENING,),
    "LogSoftmax": (_FLATTENING,),
    "Max": (_EQUAL_SHAPES,),
    "Mean": (_EQUAL_SHAPES,),
    "Min": (_EQUAL_SHAPES,),
    "Pad": (
        value_since("mode", "wrap", 19),
        OpsetChange(18, write=_write_pad_axes),
        moved(1, "pads", 11, "int64"),
        moved(2, "value", 11, "like x"),
    ),
    "QuantizeLinear": (OpsetChange(13, write=_write_one_scale),),
    "DequantizeLinear": (OpsetChange(13, write=_write_one_scale),),
    "ReduceSum": (
        OpsetChange(13, write=_write_noop), moved(1, "axes", 13, "int64"), negative_axes("axes")
    ),
    **{
        f"Reduce{kind}": _REDUCE
        for kind in (
            "L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"
        )
    },
    "Reshape": (OpsetChange(14, write=_write_zero_dims),),
    "Resize": (
        value_since("coordinate_transformation_mode", "half_pixel_symmetric", 19),
        OpsetChange(13, _read_required_resize, _write_required_resize),
        OpsetChange(11, _read_first_resize, _write_first_resize),
    ),
    "RoiAlign": (only_as("coordinate_transformation_mode", "output_half_pixel", 16),),
    "Scan": (never(9, "has a batch"),),
    "ScatterElements": (value_since("reduction", "max", 18), value_since("reduction", "min", 18)),
    "ScatterND": (value_since("reduction", "max", 18), value_since("reduction", "min", 18)),
    "Slice": (
        absent(4, 10, lambda steps: bool((steps == 1).all())),
        moved(1, "starts", 10, "int64"),
        moved(2, "ends", 10, "int64"),
        moved(3, "axes", 10, "int64"),
    ),
    "Softmax": (_FLATTENING,),
    "Split": (
        OpsetChange(18, _read_even_split, _write_even_split),
        moved(1, "split", 13, "int64"),
        _AXIS,
    ),
    "Squeeze": (moved(1, "axes", 13, "int64"), negative_axes("axes")),
    "Sum": (_EQUAL_SHAPES,),
    "TopK": (moved(1, "k", 10, "int64 [1]"), _AXIS),
    "Unsqueeze": (moved(1, "axes", 13, "int64"), negative_axes("axes")),
    "Upsample": (moved(1, "scales", 9, "float"),),
}  # fmt: skip
"""The operators of the default domain that have older forms, the newest change first.

Reading goes from the oldest change to the newest, writing the other way.
"""

READ_ANEW: Final = frozenset(
    op_type
    for op_type, changes in CHANGES.items()
    if any(change.read is not says_the_same for change in changes)
)
"""The operators with an older form that differs when read; all others are read unchanged."""
