"""Resize and Upsample: of nearest elements a movement, else a function of the resized axes.

The standard defines both axis by axis. Along an axis of scale 1 each element is itself, but for
coordinates that add a half to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
import onnx

from tiered.certify.domains.terms import Array, leaf, listed, mix, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results, axis_of
from tiered.certify.evaluation.constants import run_node
from tiered.certify.evaluation.values import CheckedTensor
from tiered.certify.rules.product_terms import needs_runtime

Rule = Callable[[EvaluatedCall], Results]
FLOAT: Final = int(onnx.TensorProto.FLOAT)
INT64: Final = int(onnx.TensorProto.INT64)
_SETTINGS: Final = {
    "antialias": 0,
    "coordinate_transformation_mode": "half_pixel",
    "cubic_coeff_a": -0.75,
    "exclude_outside": 0,
    "extrapolation_value": 0.0,
    "mode": "nearest",
    "nearest_mode": "round_prefer_floor",
}
"""The settings, by what they are where they are absent."""
_KEEPING: Final = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                   "asymmetric")  # fmt: skip
"""Coordinates by which an axis of scale 1 stays; those of Upsample and Resize-10 have no name."""


def nearest(call: EvaluatedCall) -> Results:
    """Move elements: along each axis the runtime says which one an index reads."""
    x = call.operand(0)
    if call.get("mode", "nearest") != "nearest" or not _is_resized_alone(call):
        raise NoRule
    needs_runtime(call, "constants-by-runtime")
    scales, shape = _scales(call, x), _shape(call, x)
    if any(
        scale != 1 and new == size for size, scale, new in zip(x.shape, scales, shape, strict=True)
    ):
        # onnxruntime copies the tensor if all sizes stay, else it moves elements along that axis.
        raise NoRule
    places = [
        np.arange(size) if new == size else _places(call, size, scale, new)
        for size, scale, new in zip(x.shape, scales, shape, strict=True)
    ]
    return [call.moved(x, lambda a: a[np.ix_(*places)], shape)]


def _places(call: EvaluatedCall, size: int, scale: float, new: int) -> Array:
    """Return which element each index of one axis reads: numbers are resized."""
    node = onnx.NodeProto()
    node.CopyFrom(call.node)
    for name in ("axes", "scales"):
        for each in [each for each in node.attribute if each.name == name]:
            node.attribute.remove(each)
    numbers = np.asarray([scale], np.float32)
    inputs: list[CheckedTensor | None] = [call.constant(np.arange(size, dtype=np.float32), FLOAT)]
    absent = None
    if call.opset < 13:  # where no operand is optional
        absent = call.constant(np.zeros(0, np.float32), FLOAT)
    if call.has(3):
        inputs += [absent, absent, call.constant(np.asarray([new], np.int64), INT64)]
    elif "scales" in call.attributes:
        node.attribute.append(onnx.helper.make_attribute("scales", [scale]))
    else:
        inputs += [absent] * (call.op == "Resize" and call.opset >= 11)
        inputs.append(call.constant(numbers, FLOAT))
    inner = EvaluatedCall(node, inputs, call.opset, call.domain, call.scope)
    inner.axioms = call.axioms
    (made,) = run_node(inner)
    if made is None or made.known is None or made.known.shape != (new,):
        raise NoRule
    return made.known.astype(np.int64)


def _is_resized_alone(call: EvaluatedCall) -> bool:
    """Return whether an axis of scale 1 stays, and axes do not depend on each other."""
    x = call.operand(0)
    mode = call.get("coordinate_transformation_mode", "half_pixel")
    policy = call.get("keep_aspect_ratio_policy", "stretch")
    return x.known is None and 0 not in x.shape and mode in _KEEPING and policy == "stretch"


def resize(call: EvaluatedCall) -> Results:
    """A rule of terms: over the reals it holds for all modes."""
    x = call.operand(0)
    if not _is_resized_alone(call):
        raise NoRule
    scales, shape = _scales(call, x), _shape(call, x)
    changed = [at for at, scale in enumerate(scales) if scale != 1 or shape[at] != x.shape[at]]
    kept = [at for at in range(x.rank) if at not in changed]
    if not changed:
        return [x]
    held = tuple(call.get(name, default) for name, default in _SETTINGS.items())
    sizes = tuple((x.shape[at], shape[at], scales[at]) for at in changed)
    seed = seed_of(call.op, held, sizes)

    def make() -> Array:
        terms = x.terms.transpose(*kept, *changed)
        outer = terms.shape[: len(kept)]
        whole = listed(seed, terms.reshape(*outer, -1))
        places = leaf(seed, [shape[at] for at in changed])
        made = mix(seed, whole.reshape(*outer, *[1] * len(changed)), places)
        return made.transpose(np.argsort([*kept, *changed]))

    return [call.made(x.dtype, shape, make)]


def _shape(call: EvaluatedCall, x: CheckedTensor) -> list[int]:
    if call.has(3):
        wanted = call.operand(3).numbers("sizes of Resize")
        return [int(size) for size in _along(call, x, [*map(float, x.shape)], wanted)]
    # In floats of 32 bits: 10 by 0.7 are 7.
    scales = np.asarray(_scales(call, x), np.float32)
    return [math.floor(np.float32(size) * by) for size, by in zip(x.shape, scales, strict=True)]


def _scales(call: EvaluatedCall, x: CheckedTensor) -> list[float]:
    """Return the scale of each axis."""
    if "scales" in call.attributes:
        return list(call.attributes["scales"])
    if call.has(3):
        return [new / old for new, old in zip(_shape(call, x), x.shape, strict=True)]
    at = 1 if call.op == "Upsample" or call.opset < 11 else 2
    return _along(call, x, [1.0] * x.rank, call.operand(at).numbers("scales"))


def _along(
    call: EvaluatedCall, x: CheckedTensor, default: list[float], numbers: Array
) -> list[float]:
    """Return numbers for all axes, where some are given."""
    axes = call.get("axes") or range(x.rank)
    if len(axes) != numbers.size:
        raise NoRule
    for axis, number in zip(axes, numbers.ravel().tolist(), strict=True):
        default[axis_of(axis, x.rank)] = number
    return default


RESIZING: Final[dict[str, Rule]] = {"Resize": nearest, "Upsample": nearest}
