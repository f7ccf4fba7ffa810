"""Ranges of configs: measured on samples, of parameters, or from the scales of other operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.compat.ppq.configs.quantable import QuantableNode, quantable_nodes
from tiered.compat.ppq.configs.states import QuantizationStates
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig
from tiered.graph import Model, Value
from tiered.numerics.calibration.calibrate import calibrate
from tiered.numerics.calibration.observers import Method
from tiered.numerics.quantization.quantization_plan import weight_refusal
from tiered.numerics.quantization.scales import LEAST
from tiered.runtime.inputs.samples import Source

Array = np.ndarray[Any, Any]
WITH_BIAS: Final = frozenset({"Conv", "ConvTranspose", "Gemm"})


class Unknown(NamedTuple):
    """A config that got no scale.

    Attributes:
        node: the label of its node.
        value: the name of its tensor.
        reason: why.
    """

    node: str
    value: str
    reason: str


def activate_configs(model: Model, given: Sequence[Source] = (), *, seed: int = 0) -> list[Unknown]:
    """Give each config that has no scale one, and activate it; return those that get none.

    INITIAL configs of data take the measured range by their `observer_algorithm`, those of
    parameters the range of their numbers. PASSIVE_INIT configs of a bias take the product of the
    scales of data and weight; a dominated one takes the scale of its dominator.

    Args:
        model: with nodes that have configs.
        given: the user's samples; without any they are made.
        seed: of made samples.
    """
    nodes = quantable_nodes(model)
    initial = [
        (each, config, value)
        for each in nodes
        for config, value in each.places()
        if config.state is QuantizationStates.INITIAL and value is not None
    ]
    unknown: list[Unknown] = []
    ends = _measured(model, [(config, value) for _, config, value in initial], given, seed)
    for each, config, value in initial:
        found = ends.get(config, "no finite number was seen")
        if isinstance(found, str):
            unknown.append(Unknown(each.node.label, value.name, found))
            continue
        config.set_range(*found)
        config.state = QuantizationStates.ACTIVATED
    for each in nodes:
        unknown += _passive(each)
    return unknown


def _measured(
    model: Model,
    initial: Sequence[tuple[TensorQuantizationConfig, Value]],
    given: Sequence[Source],
    seed: int,
) -> dict[TensorQuantizationConfig, tuple[Array, Array] | str]:
    """Return the range of each config, or why it has none."""
    ends: dict[TensorQuantizationConfig, tuple[Array, Array] | str] = {}
    data = [pair for pair in initial if not pair[1].is_constant]
    ends.update((config, _constant_range(config, value)) for config, value in initial
                if value.is_constant)  # fmt: skip
    for config, value in data:
        if not value.owner.is_main:
            ends[config] = "a value inside a body is not measured"
        elif config.policy.is_per_channel:
            ends[config] = "data is measured as a whole; set scale and offset"
    runs: dict[tuple[Method, int], list[tuple[TensorQuantizationConfig, Value]]] = {}
    for config, value in data:
        if config not in ends:
            levels = config.quant_max - config.quant_min
            runs.setdefault((config.observer_algorithm, levels), []).append((config, value))
    for (method, levels), chosen in runs.items():
        values = [value for _, value in chosen]
        found = calibrate(model, values, given, method=method, levels=levels, seed=seed)
        for config, value in chosen:
            interval = found.interval(value.name)
            if interval is not None:
                low, high = sorted(interval)  # ends of bins may cross if all numbers are in one
                ends[config] = np.array(low), np.array(high)
    return ends


def _constant_range(config: TensorQuantizationConfig, value: Value) -> tuple[Array, Array] | str:
    if refusal := weight_refusal(value):
        return refusal
    array, axis = value.const, config.channel_axis
    assert array is not None
    if axis is None:
        return array.min(), array.max()
    if not -array.ndim <= axis < array.ndim:
        return f"shape {list(array.shape)} has no axis {axis}"
    rows = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    return rows.min(1), rows.max(1)


def _passive(quantable: QuantableNode) -> list[Unknown]:
    """Activate the configs that depend on others."""
    unknown: list[Unknown] = []
    places = list(quantable.places())
    for slot, (config, value) in enumerate(places):
        if config.state is not QuantizationStates.PASSIVE_INIT or value is None:
            continue
        is_free = config.dominated_by is config
        is_bias = quantable.node.op_type in WITH_BIAS and slot == 2
        if is_free:
            found = _bias_scale(config, places[0][0], places[1][0]) if is_bias else (
                "only the bias of a product follows other scales; set dominated_by"
            )  # fmt: skip
            if isinstance(found, str):
                unknown.append(Unknown(quantable.node.label, value.name, found))
                continue
            config.scale, config.offset = found, np.zeros(found.shape, np.int64)
        elif config.scale is None or config.offset is None:
            reason = "its dominator has no scale"
            unknown.append(Unknown(quantable.node.label, value.name, reason))
            continue
        config.state = QuantizationStates.PASSIVE
    return unknown


def _bias_scale(
    config: TensorQuantizationConfig,
    data: TensorQuantizationConfig,
    weight: TensorQuantizationConfig,
) -> Array | str:
    """Return the scale of a bias: the product of two others, or why there is none."""
    if data.scale is None or weight.scale is None:
        return "data or weight has no scale"
    with np.errstate(over="ignore"):
        scale = np.maximum(data.scale * weight.scale, np.float32(LEAST))
    if scale.ndim != int(config.policy.is_per_channel):
        return "the bias needs one scale for each scale of the weight"
    if not np.isfinite(scale).all():
        return "the product of the scales is not finite"
    return np.asarray(scale)
