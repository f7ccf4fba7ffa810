"""Ranges of configs: measured on samples, of parameters, or from the scales of other operands."""

from typing import Any

import numpy as np
import pytest

from tests.compat.ppq.configs.test_quantable import (
    ASYMMETRIC,
    CHANNELS,
    SYMMETRIC,
    X,
    activated,
    data,
    floating,
    gemm,
    named,
    states,
    weight,
)
from tests.small import model
from tiered import Model
from tiered.compat.ppq.configs.observed import Unknown, activate_configs
from tiered.compat.ppq.configs.operations import OperationQuantizationConfig
from tiered.compat.ppq.configs.quantable import quantize_node
from tiered.compat.ppq.configs.states import QuantizationStates as S
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig


def test_ranges_are_measured_and_a_bias_follows() -> None:
    _, first, second = activated()
    assert states(first) == ["ACTIVATED", "ACTIVATED", "PASSIVE", "OVERLAPPED"]
    assert states(second) == ["OVERLAPPED", "ACTIVATED"]
    x, w, b, _ = first.config
    assert x.scale is not None
    assert w.scale is not None
    assert x.scale == np.float32(5 / 255)
    np.testing.assert_allclose(w.scale, np.array([0.9, 2.0]) / 127, rtol=1e-6)
    np.testing.assert_array_equal(b.scale, x.scale * w.scale)


def test_scales_by_hand_are_kept() -> None:
    made, first, _ = gemm()
    config = first.config.input_quantization_config[0]
    config.scale, config.offset, config.state = 0.5, 3, S.ACTIVATED
    activate_configs(made, [{"x": X}])
    assert config.scale == 0.5
    assert config.offset == 3


@pytest.mark.parametrize(
    ("text", "configs", "reason"),
    [
        (
            "g (float[2] x) => (float[2] y) <float[2] w = {1, nan}> { y = Add(x, w) }",
            lambda: [data(), TensorQuantizationConfig(SYMMETRIC)],
            "the weight has NaN or Inf",
        ),
        (
            "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }",
            lambda: [data(), weight()],
            "shape [2] has no axis 1",
        ),
        (
            "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }",
            lambda: [TensorQuantizationConfig(CHANNELS, channel_axis=0), floating()],
            "data is measured as a whole; set scale and offset",
        ),
        (
            "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }",
            lambda: [data(state=S.PASSIVE_INIT), floating()],
            "only the bias of a product follows other scales; set dominated_by",
        ),
    ],
)
def test_what_gets_no_scale_says_why(text: str, configs: Any, reason: str) -> None:
    made = model(text)
    quantize_node(named(made, "y"), OperationQuantizationConfig(configs(), [floating()]))
    (found,) = activate_configs(made, [{"x": np.ones(2, np.float32)}])
    assert found.reason == reason


def test_data_without_a_finite_number_has_no_range() -> None:
    made = model("g (float[2] x) => (float[2] y) { z = Relu(x)  y = Relu(z) }")
    config = OperationQuantizationConfig([data()], [floating()])
    quantize_node(named(made, "y"), config)
    (found,) = activate_configs(made, [{"x": np.full(2, np.nan, np.float32)}])
    assert (found.value, found.reason) == ("z", "no finite number was seen")


def test_a_bias_has_as_many_scales_as_the_weight() -> None:
    made, first, _ = gemm()
    configs = first.config.input_quantization_config
    configs[2] = TensorQuantizationConfig(SYMMETRIC, state=S.PASSIVE_INIT)
    (found,) = activate_configs(made, [{"x": X}])
    assert found.reason == "the bias needs one scale for each scale of the weight"


def test_a_bias_waits_for_data() -> None:
    made, first, _ = gemm()
    first.config.input_quantization_config[0].state = S.FP32
    (found,) = activate_configs(made, [{"x": X}])
    assert found.reason == "data or weight has no scale"


def test_what_dominates_a_passive_config_needs_scale_and_offset() -> None:
    for given, reasons in (
        ({}, ["its dominator has no scale"]),
        ({"scale": 0.5}, ["its dominator has no scale"]),
        ({"offset": 3}, ["its dominator has no scale"]),
        ({"scale": 0.5, "offset": 3}, []),
    ):
        bound = data(state=S.PASSIVE_INIT)
        bound.dominated_by = data(**given)
        made = model("g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }")
        parts = OperationQuantizationConfig([floating(), bound], [floating()])
        quantize_node(named(made, "y"), parts)
        assert [each.reason for each in activate_configs(made)] == reasons, given
        assert bound.state is (S.PASSIVE_INIT if reasons else S.PASSIVE)


def test_a_bias_waits_for_the_weight() -> None:
    made, first, _ = gemm()
    first.config.input_quantization_config[1].state = S.FP32
    (found,) = activate_configs(made, [{"x": X}])
    assert found.reason == "data or weight has no scale"


def test_a_dominated_passive_config_follows_its_dominator() -> None:
    made = model("g (float[2] x) => (float[2] y) <float w = {3}> { y = Max(x, w) }")
    first, bound = data(), data(state=S.PASSIVE_INIT)
    bound.dominated_by = first
    quantize_node(named(made, "y"), OperationQuantizationConfig([first, bound], [floating()]))
    assert activate_configs(made, [{"x": np.array([-1, 4], np.float32)}]) == []
    assert bound.state is S.PASSIVE
    assert bound.scale == first.scale


def _one(text: str, configs: list[TensorQuantizationConfig], name: str = "y") -> Model:
    """Return a model of a node with configs for its operands."""
    made = model(text)
    quantize_node(named(made, name), OperationQuantizationConfig(configs, [floating()]))
    return made


ADD = "g (float[2] x) => (float[2] y) <float[2,3] w = {1,-2,3,4,-6,5}> { y = Add(x, w) }"


@pytest.mark.parametrize(
    ("axis", "scales"),
    [(None, 6.0), (0, [3.0, 6.0]), (1, [4.0, 6.0, 5.0]), (-1, [4.0, 6.0, 5.0]), (-2, [3.0, 6.0])],
)
def test_a_parameter_has_the_range_of_its_numbers(axis: int | None, scales: object) -> None:
    policy = SYMMETRIC if axis is None else CHANNELS
    config = TensorQuantizationConfig(policy, 8, -127, 127, channel_axis=axis)
    assert activate_configs(_one(ADD, [floating(), config]), [{"x": np.ones(3, np.float32)}]) == []
    assert config.state is S.ACTIVATED
    np.testing.assert_array_equal(config.scale, (np.array(scales) / 127).astype(np.float32))


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_a_parameter_lacks_is_a_reason(axis: int) -> None:
    config = TensorQuantizationConfig(CHANNELS, channel_axis=axis)
    (found,) = activate_configs(_one(ADD, [floating(), config]), [{"x": np.ones(3, np.float32)}])
    assert found == Unknown("node_y", "w", f"shape [2, 3] has no axis {axis}")
    assert config.state is S.INITIAL


def test_the_levels_of_a_config_and_its_observer_decide_the_range() -> None:
    """One number of many is far away: the least squared error cuts it off, the range has it."""
    x = np.append(np.linspace(-1, 1, 999), 40.0).astype(np.float32)
    text = "g (float[1000] x) => (float[1000] y) { y = Relu(x) }"
    scales = {}
    for method in ("minmax", "mse"):
        config = TensorQuantizationConfig(SYMMETRIC, 4, -7, 7, observer_algorithm=method)
        assert activate_configs(_one(text, [config]), [{"x": x}]) == []
        assert config.scale is not None
        scales[method] = float(config.scale)
    assert scales["minmax"] == np.float32(40 / 7)
    assert scales["mse"] < scales["minmax"]


BODY = """g (float[2] x, bool c) => (float[2] z) {
    z = If (c) <
        then_branch = t () => (float[2] p) { [node_p] p = Relu(x) },
        else_branch = e () => (float[2] q) { [node_q] q = Neg(x) }> }"""


def test_data_inside_a_body_is_not_measured() -> None:
    made = model(BODY)
    (node,) = [each for graph in made.graphs() for each in graph.nodes_of("Relu")]
    result = data()
    quantize_node(node, OperationQuantizationConfig([floating()], [result]))
    feeds = {"x": np.ones(2, np.float32), "c": np.array(True)}
    (found,) = activate_configs(made, [feeds])
    assert found == Unknown("node_p", "p", "a value inside a body is not measured")
    assert result.scale is None


def test_only_initial_and_passive_configs_get_a_scale() -> None:
    made, first, _ = gemm()
    operands = first.config.input_quantization_config
    operands[0].state = S.SOI
    operands[2].state = S.FP32
    assert activate_configs(made, [{"x": X}]) == []
    assert states(first) == ["SOI", "ACTIVATED", "FP32", "OVERLAPPED"]
    assert operands[0].scale is None


def _dominated(op_type: str, slot: int) -> list[Unknown]:
    """Give a node three operands, one of which is passive and has no dominator."""
    bias = TensorQuantizationConfig(SYMMETRIC, 32, -(2**31) + 1, 2**31 - 1, state=S.PASSIVE_INIT)
    configs = [data(), data(), data()]
    configs[slot] = bias
    text = f"g (float[2,2] x) => (float[2,2] y) {{ y = {op_type}(x, x, x) }}"
    return activate_configs(_one(text, configs), [{"x": np.ones((2, 2), np.float32)}])


@pytest.mark.parametrize(
    ("op_type", "slot", "count"), [("Gemm", 2, 0), ("Gemm", 1, 1), ("Max", 2, 1)]
)
def test_only_the_third_operand_of_a_product_is_a_bias(op_type: str, slot: int, count: int) -> None:
    found = _dominated(op_type, slot)
    assert [each.reason for each in found] == [
        "only the bias of a product follows other scales; set dominated_by"
    ] * count


def test_a_dominator_without_a_scale_is_a_reason() -> None:
    made = model("g (float[2] x) => (float[2] y) <float w = {3}> { y = Max(x, w) }")
    first, bound = data(), data(state=S.PASSIVE_INIT)
    bound.dominated_by = first
    quantize_node(named(made, "y"), OperationQuantizationConfig([floating(), bound], [floating()]))
    assert activate_configs(made, [{"x": np.ones(2, np.float32)}]) == [
        Unknown("node_y", "w", "its dominator has no scale")
    ]
    assert bound.state is S.PASSIVE_INIT


@pytest.mark.parametrize(
    ("scale", "expected"),
    [(2.0**-100, 2.0**-126), (1.0, 2.0**-30), (2.0**127, None), (2.0**100, 2.0**70)],
)
def test_the_scale_of_a_bias_is_a_finite_product(scale: float, expected: float | None) -> None:
    made, first, _ = gemm()
    x, w, _ = first.config.input_quantization_config
    factor = 2.0**-30 if expected is not None else 2.0
    x.scale, x.offset, x.state = scale, 0, S.ACTIVATED
    w.scale, w.offset, w.state = np.full(2, factor), np.zeros(2, int), S.ACTIVATED
    found = activate_configs(made, [{"x": X}])
    bias = first.config.input_quantization_config[2]
    if expected is None:
        assert [each.reason for each in found] == ["the product of the scales is not finite"]
        assert bias.state is S.PASSIVE_INIT
    else:
        assert found == []
        np.testing.assert_array_equal(bias.scale, np.full(2, expected, np.float32))
        np.testing.assert_array_equal(bias.offset, [0, 0])


def test_one_scale_is_no_bias_of_each_channel() -> None:
    made, first, _ = gemm()
    configs = first.config.input_quantization_config
    configs[1] = TensorQuantizationConfig(ASYMMETRIC, 8, 0, 255)
    (found,) = activate_configs(made, [{"x": X}])
    assert found.reason == "the bias needs one scale for each scale of the weight"
