"""Each policy computes what its properties say: activated, baked, written; or it says why not."""

from itertools import product

import numpy as np
import pytest

from tests.small import model, ops
from tiered import DataType, Model
from tiered.compat.ppq.configs.observed import activate_configs
from tiered.compat.ppq.configs.operations import OperationQuantizationConfig
from tiered.compat.ppq.configs.policies import (
    QuantizationPolicy,
    QuantizationProperty as P,
)
from tiered.compat.ppq.configs.qdq import write_configs
from tiered.compat.ppq.configs.quantable import QuantableNode, quantize_node
from tiered.compat.ppq.configs.states import QuantizationStates as S
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig
from tiered.runtime import Session
from tiered.support.errors import ModelError, UsageError

TEXT = """g (float[2,3] x) => (float[2,2] y) <float[3,2] w = {0.3,-1.1,0.25,0.7,-0.9,2.0}> {
    y = MatMul(x, w) }"""
X = np.linspace(-2, 3, 6, dtype=np.float32).reshape(2, 3)
POLICIES = [
    QuantizationPolicy(scales + symmetry + P.LINEAR + power)
    for scales, symmetry, power in product(
        (P.PER_TENSOR, P.PER_CHANNEL), (P.SYMMETRICAL, P.ASYMMETRICAL), (0, P.POWER_OF_2)
    )
]


def unit(policy: QuantizationPolicy) -> tuple[Model, QuantableNode, TensorQuantizationConfig]:
    """Return a MatMul; its weight has a policy, its data the same for the whole tensor."""
    made = model(TEXT)
    whole = policy
    if policy.is_per_channel:
        whole = QuantizationPolicy(policy.properties - P.PER_CHANNEL + P.PER_TENSOR)
    axis = 1 if policy.is_per_channel else None
    weight = TensorQuantizationConfig(policy, channel_axis=axis)
    floating = TensorQuantizationConfig(whole, state=S.FP32)
    configs = OperationQuantizationConfig([TensorQuantizationConfig(whole), weight], [floating])
    (node,) = made.main.nodes
    return made, quantize_node(node, configs), weight


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_linear_policy_decides_scale_and_offset(policy: QuantizationPolicy) -> None:
    made, quantable, weight = unit(policy)
    assert activate_configs(made, [{"x": X}]) == []
    data = quantable.config.input_quantization_config[0]
    for config, channels in ((data, 1), (weight, 2 if policy.is_per_channel else 1)):
        scale, offset = config.scale, config.offset
        assert scale is not None
        assert offset is not None
        assert scale.size == channels
        assert offset.any() != policy.is_symmetric
        assert (np.frexp(scale)[0] == 0.5).all() == policy.is_power_of_2
    write_configs(made)
    assert ops(made) == ["QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "MatMul"]
    exact = Session(model(TEXT).to_proto()).run({"x": X})["y"]
    found = Session(made.to_proto()).run({"x": X})["y"]
    assert np.abs(found - exact).max() < (0.2 if policy.is_power_of_2 else 0.1)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_baked_weight_has_the_numbers_that_are_written(policy: QuantizationPolicy) -> None:
    baked, quantable, weight = unit(policy)
    activate_configs(baked, [{"x": X}])
    quantable.bake()
    assert weight.state is S.BAKED
    written, _, _ = unit(policy)
    activate_configs(written, [{"x": X}])
    for made in (baked, written):
        write_configs(made)
    one, other = (Session(made.to_proto()).run({"x": X})["y"] for made in (baked, written))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("symmetry", [P.SYMMETRICAL, P.ASYMMETRICAL])
@pytest.mark.parametrize("scales", [P.PER_TENSOR, P.PER_CHANNEL])
def test_an_exponential_policy_is_not_written(scales: P, symmetry: P) -> None:
    made, quantable, weight = unit(QuantizationPolicy(scales + symmetry + P.EXPONENTIAL))
    activate_configs(made, [{"x": X}])
    before = made.to_proto()
    with pytest.raises(UsageError, match="no ONNX operator quantises exponentially"):
        quantable.bake()
    with pytest.raises((ModelError, UsageError), match="no ONNX operator quantises exponentially"):
        write_configs(made)
    assert made.to_proto() == before
    assert weight.state is S.ACTIVATED


# --- SOI and passive baked ------------------------------------------------------------------------

CHANNELS = QuantizationPolicy(P.PER_CHANNEL + P.LINEAR + P.SYMMETRICAL)
WHOLE = QuantizationPolicy(P.PER_TENSOR + P.LINEAR + P.SYMMETRICAL)


def test_a_shape_stays_an_soi_through_all_steps() -> None:
    made = model("""g (float[2,3] x) => (float[3,2] y) <int64[2] s = {3,2}> {
        y = Reshape(x, s) }""")
    shape = TensorQuantizationConfig(WHOLE, state=S.SOI)
    configs = [TensorQuantizationConfig(WHOLE), shape]
    (node,) = made.main.nodes
    quantable = quantize_node(
        node, OperationQuantizationConfig(configs, [TensorQuantizationConfig(WHOLE)])
    )
    assert activate_configs(made, [{"x": X}]) == []
    assert shape.state is S.SOI
    quantable.bake()
    quantable.dequantize()
    quantable.restore()
    assert shape.state is S.SOI
    write_configs(made)
    assert node.inputs[1] is not None
    assert node.inputs[1].name == "s"


def test_a_passive_bias_is_baked_and_restored() -> None:
    made = model("""g (float[2,3] x) => (float[2,2] y)
        <float[3,2] w = {0.3,-1.1,0.25,0.7,-0.9,2.0}, float[2] b = {0.11,-0.23}> {
        y = Gemm(x, w, b) }""")
    most = 2**31 - 1
    bias = TensorQuantizationConfig(CHANNELS, 32, -most, most, channel_axis=0, state=S.PASSIVE_INIT)
    weight = TensorQuantizationConfig(CHANNELS, channel_axis=1)
    configs = [TensorQuantizationConfig(WHOLE), weight, bias]
    (node,) = made.main.nodes
    quantable = quantize_node(
        node, OperationQuantizationConfig(configs, [TensorQuantizationConfig(WHOLE)])
    )
    assert activate_configs(made, [{"x": X}]) == []
    quantable.bake()
    assert bias.state.name == "PASSIVE_BAKED"
    value = node.inputs[2]
    assert value is not None
    baked = value.const
    assert baked is not None
    assert bias.scale is not None
    numbers = np.array([0.11, -0.23], np.float32)
    np.testing.assert_array_equal(baked, np.rint(numbers / bias.scale) * bias.scale)
    quantable.dequantize()
    assert bias.state.name == "FP32"
    np.testing.assert_array_equal(value.const, numbers)
    quantable.restore()
    assert bias.state.name == "PASSIVE_BAKED"
    np.testing.assert_array_equal(value.const, baked)
    write_configs(made)
    codes = [node.inputs[0] for node in made.main.nodes_of("DequantizeLinear")]
    assert DataType.INT32 in [each.dtype for each in codes if each is not None]
