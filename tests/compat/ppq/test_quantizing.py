"""QuantableGraph and TargetPlatform: quantisation of a graph by PPQ's names."""

from typing import Any

import numpy as np
import pytest

from tests.compat.ppq.small_graphs import graph, quantized
from tests.recorded import assert_values
from tests.small import ops
from tiered import Model, UsageError
from tiered.compat.ppq import (
    BaseQuantFunction,
    OperationQuantizationConfig,
    PPQLinearQuantFunction,
    QuantableGraph,
    QuantableOperation,
    QuantableVariable,
    QuantizationPolicy,
    QuantizationProperty,
    QuantizationStates,
    RoundingPolicy,
    TargetPlatform,
    create_default_quant_config,
)
from tiered.support.errors import ModelError


def test_parameters_are_baked_and_restored() -> None:
    on, quantable, made = quantized()
    w = on.variables["w"]
    assert isinstance(w, QuantableVariable)
    before = w.value
    function: BaseQuantFunction = PPQLinearQuantFunction
    assert made.store_parameter_value().baking_parameters(function) is made
    assert made.input_quant_config[1].state is QuantizationStates.BAKED
    baked = w.value
    assert baked is not None
    assert before is not None
    assert not np.array_equal(baked, before)
    np.testing.assert_array_equal(w.stored_value, before)
    quantable.dequantize_graph()
    np.testing.assert_array_equal(w.value, before)
    assert {each.state for each in made.config} == {QuantizationStates.FP32}
    quantable.restore_quantize_state()
    np.testing.assert_array_equal(w.value, baked)
    made.dequantize(parameter_only=True, expire_device="cpu")
    assert made.output_quant_config[0].state is QuantizationStates.ACTIVATED
    made.restore_quantize_state(expire_device="cpu")
    quantable.export()
    assert not isinstance(on.operations["node_b"], QuantableOperation)
    model_ = on.graph.model
    assert isinstance(model_, Model)
    assert ops(model_).count("DequantizeLinear") == 3


def test_a_default_config_is_changed_as_quantizers_do() -> None:
    on = graph("""g (float[2,3] x) => (float[2,2] y)
        <float[3,2] w = {0.3,-1.1,0.25,0.7,-0.9,2.0}, float[2] b = {0.11,-0.23}, float low = {0}> {
        g = Gemm(x, w, b)  y = Clip(g, low) }""")
    flags = QuantizationProperty.PER_TENSOR + QuantizationProperty.LINEAR
    policy = QuantizationPolicy(flags + QuantizationProperty.SYMMETRICAL)
    operation = on.operations["node_g"]
    made = create_default_quant_config(
        op=operation, num_of_bits=8, quant_max=127, quant_min=-128, observer_algorithm="percentile",
        policy=policy, rounding=RoundingPolicy.ROUND_HALF_EVEN,
    )  # fmt: skip
    channels = QuantizationPolicy(
        QuantizationProperty.PER_CHANNEL
        + QuantizationProperty.LINEAR
        + QuantizationProperty.SYMMETRICAL
    )
    _, weight, bias = made.input_quantization_config
    weight.policy, weight.channel_axis, weight.observer_algorithm = channels, 1, "minmax"
    bias.policy, bias.channel_axis = channels, 0
    bias.num_of_bits, bias.quant_max, bias.quant_min = 30, 2**29 - 1, -(2**29) + 1
    bias.state = QuantizationStates.PASSIVE_INIT
    quantable = QuantableGraph(on)
    quantable.quantize_operation("node_g", TargetPlatform.INT8, made)
    assert quantable.activate([{"x": np.ones((2, 3), np.float32)}]) == []
    assert [each.state.name for each in made] == ["ACTIVATED", "ACTIVATED", "PASSIVE", "ACTIVATED"]
    quantable.export()
    assert quantable.load() == []
    loaded = on.operations["node_g"]
    assert isinstance(loaded, QuantableOperation)
    assert [each.state.name for each in loaded.config] == [
        "ACTIVATED", "BAKED", "PASSIVE_BAKED", "ACTIVATED",
    ]  # fmt: skip
    clip = create_default_quant_config(
        on.operations["node_y"], 8, -128, 127, "kl", policy, RoundingPolicy.ROUND_HALF_EVEN
    )
    assert [each.state.name for each in clip] == ["INITIAL", "FP32", "INITIAL"]
    assert clip.input_quantization_config[0].observer_algorithm == "entropy"


@pytest.mark.parametrize(
    ("flags", "observer", "bits", "message"),
    [
        (21, "isotone", 0, "no observer 'isotone'"),
        (22, "mse", 0, "operands have different axes"),
        (21, "mse", 4, "without 4 bits of an exponent"),
    ],
)
def test_a_default_config_that_cannot_be_is_refused(
    flags: int, observer: str, bits: int, message: str
) -> None:
    policy, rounding = QuantizationPolicy(flags), RoundingPolicy.ROUND_HALF_EVEN
    operation = graph().operations["node_b"]
    with pytest.raises(UsageError, match=message):
        create_default_quant_config(operation, 8, -128, 127, observer, policy, rounding, bits)


def test_what_cannot_be_quantised_is_refused() -> None:
    on, quantable, made = quantized()
    with pytest.raises(UsageError, match="FP32 is no platform"):
        quantable.quantize_operation("node_c", TargetPlatform.FP32, made.config)
    with pytest.raises(ModelError, match="no operation 'nothing'"):
        quantable.quantize_operation("nothing", TargetPlatform.INT8, made.config)
    with pytest.raises(ModelError, match="no operation 'nothing'"):
        quantable.dequantize_operation("nothing")
    with pytest.raises(ModelError, match="has 2 inputs, the config 0"):
        made.config = OperationQuantizationConfig([], [])
    made.config = made.config.copy()
    quantable.export()
    with pytest.raises(ModelError, match="has no configs any more"):
        made.dequantize()
    assert on.operations["node_b"].type == "Add"


def test_platforms_of_integers_have_it_in_their_name() -> None:
    kinds = {each.name: TargetPlatform.is_quantized_platform(each) for each in TargetPlatform}
    assert {name for name, is_quantized in kinds.items() if is_quantized} == {
        "INT8", "TRT_INT8", "PPL_CUDA_INT8", "PPL_DSP_INT8", "HOST_INT8", "NXP_INT8",
        "QNN_DSP_INT8", "ORT_OOS_INT8",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("observer", "method"),
    [
        ("minmax", "minmax"),
        ("percentile", "percentile"),
        ("mse", "mse"),
        ("kl", "entropy"),
        ("entropy", "entropy"),
    ],
)
def test_observers_have_the_names_of_ppq(observer: str, method: str) -> None:
    flags = QuantizationProperty.PER_TENSOR + QuantizationProperty.LINEAR
    policy = QuantizationPolicy(flags + QuantizationProperty.ASYMMETRICAL)
    made = create_default_quant_config(
        graph().operations["node_b"], 4, 0, 15, observer, policy, RoundingPolicy.ROUND_UP
    )
    assert len(made.input_quantization_config) == 2
    assert len(made.output_quantization_config) == 1
    for each in made:
        assert (each.num_of_bits, each.quant_min, each.quant_max) == (4, 0, 15)
        assert (each.policy, each.rounding) == (policy, RoundingPolicy.ROUND_UP)
        assert (each.observer_algorithm, each.state) == (method, QuantizationStates.INITIAL)


def test_one_operation_returns_to_float_and_others_stay() -> None:
    on, quantable, made = quantized()
    assert quantable.dequantize_operation("node_b") == made
    assert {each.state for each in made.config} == {QuantizationStates.FP32}
    quantable.restore_quantize_state()
    assert QuantizationStates.FP32 not in {each.state for each in made.config}
    assert on.operations["node_b"].platform == "TRT_INT8"
    assert quantable.dequantize_operation("node_a").type == "Relu"


def test_numbers_of_one_bin_have_a_range() -> None:
    """A percentile of equal numbers ends below them."""
    on = graph()
    flags = QuantizationProperty.PER_TENSOR + QuantizationProperty.LINEAR
    policy = QuantizationPolicy(flags + QuantizationProperty.SYMMETRICAL)
    add = on.operations["node_b"]
    configs = create_default_quant_config(
        add, 8, -128, 127, "percentile", policy, RoundingPolicy.ROUND_HALF_EVEN
    )
    quantable = QuantableGraph(on)
    made = quantable.quantize_operation("node_b", TargetPlatform.INT8, configs)
    assert quantable.activate([{"x": np.ones((2, 3), np.float32)}]) == []
    assert made.input_quant_config[0].scale == np.float32(1 / 127)


def test_platforms_and_defaults_are_recorded() -> None:
    def default(*args: Any, node: str = "node_b", **more: Any) -> object:
        made = create_default_quant_config(graph().operations[node], *args, **more)
        return [
            f"{c.state.name} {c.num_of_bits} {c.quant_min} {c.quant_max} {c.observer_algorithm} "
            f"{c.rounding.name}"
            for c in made
        ]

    names = {
        "T": TargetPlatform,
        "default": default,
        "P": QuantizationProperty,
        "policy": QuantizationPolicy,
        "R": RoundingPolicy,
    }
    assert_values(__file__, names)
