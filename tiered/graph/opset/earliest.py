"""The changes of opsets 2 to 7: what the first forms of operators say, and how they are written.

Only a conversion reads them. A form that the first opsets left open (training by default, an axis
without a default) is declined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx

from tiered.graph.opset.adapter import OperatorForm, OpsetChange, detached, moved, says_the_same
from tiered.graph.queries.op_traits import ARITHMETIC, LOGIC

_CONSUMING: Final = (
    "Abs", "Add", "BatchNormalization", "Ceil", "Clip", "Div", "Dropout", "Elu", "Exp", "Floor",
    "HardSigmoid", "InstanceNormalization", "LeakyRelu", "Log", "Max", "Mean", "Min", "Mul", "Neg",
    "PRelu", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sqrt", "Sub", "Sum", "Tanh",
)  # fmt: skip
WITH_BROADCAST: Final = tuple(sorted((*ARITHMETIC, *LOGIC, "Equal", "Greater", "Less", "Pow")))
"""The operators with `broadcast` and `axis` before opset 7."""


def _read_consumed(form: OperatorForm) -> None:
    """Which inputs a kernel may overwrite says nothing of the result."""
    form.attributes.pop("consumed_inputs", None)


# --- broadcasting ---------------------------------------------------------------------------------


def _read_broadcast(form: OperatorForm) -> None:
    """Before 7 the second operand is a part of the first one's shape, from `axis` on."""
    axis = form.attributes.get("axis")
    if form.attributes.get("broadcast", 0) and axis is not None:
        first, second = form.operand(0), form.operand(1)
        ranks = [None if value is None else value.rank for value in (first, second)]
        if ranks[0] is None or ranks[1] is None:
            raise form.declines("broadcasts along an axis, and a rank is not known")
        if axis + ranks[1] != ranks[0] and ranks[1]:
            raise form.declines(f"broadcasts along axis {axis}")
    form.attributes.pop("broadcast", None)
    form.attributes.pop("axis", None)


def _write_broadcast(form: OperatorForm) -> None:
    other = form.operand(1)
    first, second = form.shape, None if other is None else other.shape
    if first is None or second is None:
        raise form.declines("broadcasts, and a shape is not known")
    if None in first or None in second or second != first[len(first) - len(second) :]:
        raise form.declines("broadcasts more than the last dims of its first operand")
    if first != second:
        form.attributes["broadcast"] = 1


def _write_bias_broadcast(form: OperatorForm) -> None:
    """Gemm before 7 says whether its third operand is broadcast."""
    bias = form.operand(2)
    if bias is None or bias.rank is None or (bias.rank > 1 and form.target < _BIAS_COLUMNS):
        raise form.declines("needs a bias of a known rank")
    form.attributes["broadcast"] = 1


_BIAS_COLUMNS: Final = 6


def _read_slope(form: OperatorForm) -> None:
    """PRelu before 7 has a slope for each channel, and since then one that broadcasts."""
    slope = form.operand(1)
    if slope is None or slope.rank is None:
        raise form.declines("has a slope for each channel, and its rank is not known")
    if slope.rank == 1 and slope.shape != (1,) and form.rank != 2:
        raise form.declines("has a slope for each channel")


def _write_slope(form: OperatorForm) -> None:
    slope = form.operand(1)
    if slope is None or (slope.shape != (1,) and (slope.rank != 1 or form.rank != 2)):
        raise form.declines("has a slope for each channel before opset 7")


# --- what became an operand, or another attribute -------------------------------------------------


def _read_cast(form: OperatorForm) -> None:
    to = form.attributes["to"]
    try:
        form.attributes["to"] = onnx.TensorProto.DataType.Value(to)
    except (TypeError, ValueError) as error:
        raise form.declines(f"casts to {to!r}, which is no name of a dtype") from error


def _write_cast(form: OperatorForm) -> None:
    form.attributes["to"] = onnx.TensorProto.DataType.Name(form.attributes["to"])


def _renamed(older: str, newer: str, since: int) -> OpsetChange:
    def rename(before: str, after: str) -> Any:
        def apply(form: OperatorForm) -> None:
            if before in form.attributes:
                form.attributes[after] = form.attributes.pop(before)

        return apply

    return OpsetChange(since, rename(older, newer), rename(newer, older))


def _read_upsample(form: OperatorForm) -> None:
    """Upsample-1 is of images: a scale of their height, and one of their width."""
    scales = [form.attributes.pop(f"{name}_scale") for name in ("height", "width")]
    form.attributes["scales"] = [1.0, 1.0, *scales]
    if form.attributes.get("mode") == "bilinear":
        form.attributes["mode"] = "linear"


def _write_upsample(form: OperatorForm) -> None:
    scales = form.attributes.pop("scales")
    if len(scales) != 4 or tuple(scales[:2]) != (1.0, 1.0):
        raise form.declines("scales height and width of images alone")
    form.attributes["height_scale"], form.attributes["width_scale"] = scales[2:]
    if form.attributes.get("mode") == "linear":
        form.attributes["mode"] = "bilinear"


def _read_tiles(form: OperatorForm) -> None:
    """Tile-1 repeats along one axis."""
    tiles, axis, rank = form.numbers(1), form.numbers(2), form.rank
    if tiles is None or axis is None or rank is None or tiles.size != 1 or axis.size != 1:
        raise form.declines("needs constant tiles and axis, and a known rank")
    if not -rank <= int(axis.item()) < rank:
        raise form.declines("has no such axis")
    repeats = np.ones(rank, np.int64)
    repeats[int(axis.item())] = int(tiles.item())
    form.operands[1:] = [detached(repeats, "repeats")]


def _decline_tiles(form: OperatorForm) -> None:
    raise form.declines("repeats along one axis")


def _read_parts(form: OperatorForm) -> None:
    """Split-1 has the sizes as an attribute or as an operand, and no default axis."""
    if "axis" not in form.attributes:
        raise form.declines("has no default axis")
    if form.operand(1) is None:
        return
    sizes = form.numbers(1)
    if sizes is None:
        raise form.declines("needs constant sizes")
    form.attributes["split"] = [int(size) for size in sizes.ravel().tolist()]
    form.set_operand(1, None)


def _write_parts(form: OperatorForm) -> None:
    form.attributes.setdefault("axis", 0)


# --- training -------------------------------------------------------------------------------------


def _read_test(form: OperatorForm) -> None:
    """BatchNormalization and Dropout train before 7, unless they say that it is a test."""
    if not form.attributes.pop("is_test", 0):
        raise form.declines("trains without is_test=1")


def _write_test(form: OperatorForm) -> None:
    form.attributes["is_test"] = 1


# --- defaults -------------------------------------------------------------------------------------


def _default(attribute: str, older: Any, newer: Any, since: int) -> OpsetChange:
    """Return the row of an attribute with another default since an opset; None is none."""

    def written(default: Any) -> Any:
        def apply(form: OperatorForm) -> None:
            if default is not None:
                form.attributes.setdefault(attribute, default)

        return apply

    return OpsetChange(since, written(older), written(newer))


def _check_limits(form: OperatorForm) -> None:
    """Clip without a limit has that of its dtype before 6, and that of a float32 until 11."""
    if form.dtype == onnx.TensorProto.FLOAT:
        return
    for attribute in ("min", "max"):
        if attribute not in form.attributes:
            raise form.declines(f"without {attribute} has that of its dtype")


def _read_norm(form: OperatorForm) -> None:
    p = form.attributes.get("p")
    if p is None:
        return
    if p != int(p):
        raise form.declines("has a whole p since opset 2")
    form.attributes["p"] = int(p)


def _write_norm(form: OperatorForm) -> None:
    if "p" in form.attributes:
        form.attributes["p"] = float(form.attributes["p"])


def _read_direction(form: OperatorForm) -> None:
    """The default of GRU-1 is misspelt."""
    if form.attributes.get("direction") == "foward":
        form.attributes["direction"] = "forward"


def _write_direction(form: OperatorForm) -> None:
    form.attributes.setdefault("direction", "forward")


def _read_sequence(form: OperatorForm) -> None:
    """Whether the outputs of all steps may be left out: those that a node names are computed."""
    form.attributes.pop("output_sequence", None)


def _write_sequence(form: OperatorForm) -> None:
    form.attributes["output_sequence"] = 1


_NORM: Final = (OpsetChange(2, _read_norm, _write_norm),)
_SEQUENCE: Final = OpsetChange(7, _read_sequence, _write_sequence)
_IS_TEST: Final = OpsetChange(7, _read_test, _write_test)
_OWN: Final[Mapping[str, tuple[OpsetChange, ...]]] = {
    **dict.fromkeys(WITH_BROADCAST, (OpsetChange(7, _read_broadcast, _write_broadcast),)),
    "BatchNormalization": (_IS_TEST,),
    "Cast": (OpsetChange(6, _read_cast, _write_cast),),
    "Clip": (OpsetChange(6, _check_limits, _check_limits),),
    "Concat": (_default("axis", 1, None, 4),),
    "Dropout": (_IS_TEST,),
    "GRU": (_SEQUENCE, OpsetChange(3, _read_direction, _write_direction)),
    "Gemm": (OpsetChange(7, _read_broadcast, _write_bias_broadcast),),
    "GlobalLpPool": _NORM,
    "LSTM": (_SEQUENCE,),
    "LpPool": _NORM,
    "PRelu": (OpsetChange(7, _read_slope, _write_slope),),
    "Pad": (_renamed("paddings", "pads", 2),),
    "RNN": (_SEQUENCE,),
    "Reshape": (moved(1, "shape", 5, "int64"),),
    "Selu": (
        _default("alpha", 1.6732, 1.67326319217681884765625, 6),
        _default("gamma", 1.0507, 1.05070102214813232421875, 6),
    ),
    "Split": (OpsetChange(2, _read_parts, _write_parts),),
    "Tile": (OpsetChange(6, _read_tiles, _decline_tiles),),
    "Upsample": (OpsetChange(7, _read_upsample, _write_upsample),),
}  # fmt: skip
_CONSUMED: Final = OpsetChange(6, _read_consumed, says_the_same)

EARLIEST: Final[Mapping[str, tuple[OpsetChange, ...]]] = {
    name: (*_OWN.get(name, ()), *((_CONSUMED,) if name in _CONSUMING else ()))
    for name in sorted({*_OWN, *_CONSUMING})
}
"""The changes of opsets 2 to 7 by operator of the default domain, the newest first."""
