"""Gradients of random models: the outputs stay, and slopes are those of differences.

A slope counts where the model has one: where the differences to both sides agree, in double.
The gradient of a Cast to a narrow float is that of no Cast, its differences are those of a step;
that of a product with Inf is NaN even where nothing reads it. In both cases only the outputs and
the shapes are judged.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from tests.conformance.judge import open_on_onnxruntime
from tests.conformance.random_graphs import random_feeds, random_model
from tests.conformance.random_networks import random_network
from tests.conformance.rooms.room import NotTried, Refused, sizes_of
from tests.extensions.gradients.differences import OnnxRuntime, Reference, in_double
from tiered import get_pass
from tiered.graph.io.save import tensors_of
from tiered.runtime.compare.outputs import compare
from tiered.runtime.deviations import has_narrow_floats
from tiered.support.errors import RuntimeFailure, TieredError

Array = np.ndarray[Any, Any]
STEPS = (1e-4, 1e-5, 1e-6)
AGREES = 1e-3
"""The relative difference at which two slopes are one."""

LARGEST = 1e6
"""Of larger outputs, differences in double at the least step are those of rounding."""


def gradient_fault(seed: int) -> str:
    """Return what is wrong with the gradients of a random model; "" if nothing.

    Raises:
        NotTried: there are no floats, or no runtime runs the model in double.
        Refused: an operator has no gradient.
    """
    source = random.Random(seed)
    is_network = seed % 4 == 3
    model = random_network(seed) if is_network else random_model(source, source.randint(2, 12))
    defaults = {tensor.name for tensor in model.graph.initializer}
    inputs = [info.name for info in model.graph.input if _is_float(info)]
    inputs = [name for name in inputs if name not in defaults]
    outputs = [info.name for info in model.graph.output if _is_float(info)]
    outputs = [name for name in outputs if name not in inputs]
    if not inputs or not outputs:
        raise NotTried("there are no floats")
    options = {"of": outputs, "with_respect_to": inputs, "seed": "input"}
    try:
        made = get_pass("gradient", **options)(model)
    except TieredError as error:
        raise Refused(str(error)) from error
    assert isinstance(made, onnx.ModelProto)
    onnx.checker.check_model(made)
    feeds = _varied(random_feeds(source, model, {"": 2, **sizes_of(model)}), inputs, seed)
    try:
        expected = open_on_onnxruntime(model)(feeds)
    except RuntimeFailure as error:
        raise NotTried(str(error)) from error
    found = open_on_onnxruntime(made)({**feeds, **_seeds(expected, outputs)})
    for name, array in expected.items():
        if not compare({name: array}, {name: found[name]}, "exact").ok:
            return f"output {name!r} is another one"
    for name in inputs:
        if found[f"grad/{name}"].shape != feeds[name].shape:
            return f"the gradient of {name!r} has another shape"
    if has_narrow_floats(model) or not _has_finite_constants(model):
        return ""
    try:
        one, other = in_double(model), in_double(made)
    except TieredError as error:
        raise NotTried(str(error)) from error
    wide = {
        name: array.astype(np.float64) if name in inputs else array for name, array in feeds.items()
    }
    for runtime in (OnnxRuntime, Reference):
        try:
            return _judged(runtime(one), runtime(other), wide, expected, inputs, outputs)
        except Exception as error:  # noqa: BLE001  # whatever a runtime does not support
            said = str(error)
    raise NotTried(said)


def _has_finite_constants(model: onnx.ModelProto) -> bool:
    arrays = [onnx.numpy_helper.to_array(tensor) for tensor in tensors_of(model)]
    return all(np.isfinite(each).all() for each in arrays if each.dtype.kind == "f")


def _is_float(info: onnx.ValueInfoProto) -> bool:
    return info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT


def _is_near(one: Array, other: Array) -> bool:
    return np.allclose(one, other, rtol=1e-2, atol=1e-3, equal_nan=True)


def _varied(feeds: Mapping[str, Array], inputs: list[str], seed: int) -> dict[str, Array]:
    """Return feeds whose floats are ordinary numbers, none of them equal."""
    numbers = np.random.default_rng(seed)
    return {
        name: np.asarray(numbers.normal(size=array.shape), np.float32) if name in inputs else array
        for name, array in feeds.items()
    }


def _seeds(results: Mapping[str, Array], outputs: list[str]) -> dict[str, Array]:
    numbers = np.random.default_rng(0)
    return {
        f"seed/{name}": np.asarray(numbers.normal(size=results[name].shape), np.float32)
        for name in outputs
    }


def _judged(
    forward: OnnxRuntime | Reference,
    backward: OnnxRuntime | Reference,
    feeds: Mapping[str, Array],
    in_float: Mapping[str, Array],
    inputs: list[str],
    outputs: list[str],
) -> str:
    """Return where a slope by gradients is not the one by differences; "" if nowhere.

    Raises:
        NotTried: the runtime computes something else than onnxruntime does in float.
    """
    results = forward(feeds)
    if not all(_is_near(in_float[name], results[name]) for name in outputs):
        raise NotTried("the runtime computes something else")
    if not all(np.isfinite(results[name]).all() for name in outputs):
        return ""
    seeds = {name: each.astype(np.float64) for name, each in _seeds(results, outputs).items()}
    has_unjudged = False
    for name in outputs:
        is_large = np.abs(results[name]) > LARGEST
        seeds[f"seed/{name}"] = np.where(is_large, 0.0, seeds[f"seed/{name}"])
        has_unjudged |= bool(is_large.any())
    found = backward({**feeds, **seeds})
    if any(found[f"grad/{name}"].shape != feeds[name].shape for name in inputs):
        raise NotTried("the runtime computes something else")  # onnx.reference, of some scans
    numbers = np.random.default_rng(1)

    def loss(toward: Mapping[str, Array], step: float) -> float:
        moved = {**feeds, **{name: feeds[name] + step * each for name, each in toward.items()}}
        made = forward(moved)
        return float(sum((made[name] * seeds[f"seed/{name}"]).sum() for name in outputs))

    for _ in range(2):
        toward = {name: np.asarray(numbers.normal(size=feeds[name].shape)) for name in inputs}
        slope = float(sum((found[f"grad/{name}"] * toward[name]).sum() for name in inputs))
        if has_unjudged and not np.isfinite(slope):
            return ""  # 0 * Inf, of a seed that is 0 here
        here = loss(toward, 0.0)
        quotients = []
        for step in STEPS:
            ahead, behind = loss(toward, step), loss(toward, -step)
            right, left = (ahead - here) / step, (here - behind) / step
            if np.isfinite((right, left)).all() and _are_one(right, left):
                quotients.append((right + left) / 2)
        is_known = len(quotients) > 1 and _are_one(min(quotients), max(quotients))
        if is_known and not any(_are_one(slope, each) for each in quotients):
            return f"the slope is {slope:.6g}, by differences {quotients[0]:.6g}"
    return ""


def _are_one(a: float, b: float) -> bool:
    return abs(a - b) <= AGREES * (abs(a) + abs(b)) + 1e-6
