"""Configs that are read from Q/DQ: the model is float, and written again it computes the same."""

import numpy as np
import onnx
import pytest

from tests.conformance.random_networks import random_network
from tests.recorded import assert_values
from tests.small import made_by, model, ops, parsed
from tiered import Model, PassContext, get_pass
from tiered.compat.ppq.configs.config_reading import _FLOATING, read_configs
from tiered.compat.ppq.configs.operations import OperationQuantizationConfig
from tiered.compat.ppq.configs.qdq import write_configs
from tiered.compat.ppq.configs.quantable import quantable_nodes, quantize_node
from tiered.compat.ppq.configs.states import QuantizationStates as States
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig
from tiered.runtime import Session
from tiered.runtime.inputs.make import feasible_inputs

UNIT = """g (float[2,3] x) => (float[2,2] y)
    <float s = {0.5}, uint8 z = {3}, int8[3,2] q = {1,-2,3,4,-5,6}, float[2] t = {0.1,0.2},
     int8[2] o = {0,0}, int32[2] c = {70000000,-9}, float[2] u = {0.05,0.1}, int32[2] n = {0,0}> {
    a = QuantizeLinear(x, s, z)  b = DequantizeLinear(a, s, z)
    w = DequantizeLinear<axis = 1>(q, t, o)  v = DequantizeLinear<axis = 0>(c, u, n)
    g = Gemm(b, w, v)  h = QuantizeLinear(g, s, z)  i = DequantizeLinear(h, s, z)
    y = Softmax(i) }"""
PAIR = """g (float[2] x) => (float[2] y) <float s = {0.5}, uint8 z = {3}> {
    q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  y = Relu(d) }"""


def _result(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return Session(proto).run(feeds)


def test_operands_and_results_have_the_configs_that_the_model_says() -> None:
    made = model(UNIT)
    assert read_configs(made) == []
    assert sorted(ops(made)) == ["Gemm", "Softmax"]
    gemm, softmax = quantable_nodes(made)
    assert [each.state.name for each in gemm.config] == [
        "ACTIVATED", "BAKED", "PASSIVE_BAKED", "ACTIVATED",
    ]  # fmt: skip
    assert [each.state.name for each in softmax.config] == ["ACTIVATED", "FP32"]
    data, weight, bias, result = gemm.config
    assert data.scale == 0.5
    assert data.offset == 3
    assert data.channel_axis is None
    assert (weight.channel_axis, weight.quant_min, weight.quant_max) == (1, -128, 127)
    assert bias.num_of_bits == 32
    assert weight.policy.is_per_channel
    assert weight.policy.is_symmetric
    assert not result.policy.is_symmetric


def test_what_is_written_again_is_the_same() -> None:
    made = model(UNIT)
    before = made.to_proto()
    feeds = {"x": np.linspace(-9, 9, 6, dtype=np.float32).reshape(2, 3)}
    read_configs(made)
    write_configs(made)
    assert sorted(ops(made)) == sorted(node.op_type for node in before.graph.node)
    np.testing.assert_array_equal(_result(made.to_proto(), feeds)["y"], _result(before, feeds)["y"])


@pytest.mark.parametrize("seed", range(8))
def test_random_quantised_models_compute_the_same_after_reading_and_writing(seed: int) -> None:
    proto = random_network(seed)
    made = Model.from_proto(proto)
    get_pass("quantize").with_options(samples=2).apply(made, PassContext.isolated())
    before = made.to_proto()
    feeds = feasible_inputs(before, seed=seed).feeds
    assert read_configs(made) == []
    assert not any("uantize" in op_type for op_type in ops(made))
    write_configs(made)
    found, expected = _result(made.to_proto(), feeds), _result(before, feeds)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


SCALE = "<float s = {0.5}, "
HALVES = PAIR.replace("float s = {0.5}", "float16 s = {14336}").replace("float[2]", "float16[2]")
INTEGERS = PAIR.replace("float[2] x", "uint8[2] q").replace("q = QuantizeLinear(x, s, z)", "")
TWICE = PAIR.replace("float[2] y", "uint8[2] y").replace("Relu(d)", "QuantizeLinear(d, s, z)")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PAIR, ""),
        (PAIR.replace("uint8 z = {3}", "uint8[1] z = {3}"), ""),
        (PAIR.replace("float s = {0.5}", "float[1] s = {0.5}"), ""),
        (
            PAIR.replace("(q, s, z)", "(q, e, z)").replace("<", "<float e = {0.25}, ", 1),
            "Q and DQ have other parameters",
        ),
        (TWICE, "its result is read by QuantizeLinear"),
        (
            PAIR.replace("  y = Relu(d)", "").replace("d = ", "y = "),
            "its result is an output of the graph",
        ),
        (PAIR.replace("y = Relu(d)", "y = Relu(x)"), "nothing reads it"),
        (INTEGERS, "its input is integer data"),
        (PAIR.replace("{0.5}", "{-0.5}"), "a scale is not a positive normal number"),
        (
            PAIR.replace(SCALE, "<").replace("float[2] x", "float[2] x, float s"),
            "a scale or zero point is not constant",
        ),
        (
            PAIR.replace("uint8 z = {3}", "float8e4m3fn z = {0}"),
            "its codes are no integers of 4 to 32 bits",
        ),
        (HALVES, "a scale is not float32"),
    ],
)
def test_what_no_config_says_stays(text: str, reason: str) -> None:
    made = model(text)
    found = read_configs(made)
    assert [each.reason for each in found] == ([reason] if reason else [])
    assert ("DequantizeLinear" in ops(made)) == bool(reason)


def test_scales_of_blocks_stay() -> None:
    made = model("""g (float[2,4] x) => (float[2,2] y)
        <int8[4,2] q = {1,2,3,4,5,6,7,8}, float[2,2] s = {1,2,3,4}> {
        w = DequantizeLinear<axis = 0, block_size = 2>(q, s)  y = MatMul(x, w) }""")
    (found,) = read_configs(made)
    assert found.reason == "its scales are of blocks"


def test_scale_and_zero_point_of_other_sizes_stay() -> None:
    made = model(PAIR.replace("uint8 z = {3}", "uint8[2] z = {3,4}"))
    assert {each.reason for each in read_configs(made)} == {"scale and zero point differ in size"}


def test_a_parameter_of_a_body_stays() -> None:
    made = model("""g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <
            then_branch = t () => (float[2] p) <int8[2] q = {1, 2}, float s = {0.5}> {
                w = DequantizeLinear(q, s)  p = Mul(x, w) },
            else_branch = e () => (float[2] r) { r = Neg(x) }
        > }""")
    (found,) = read_configs(made)
    assert found.reason == "a parameter of a body is not read"


def test_integers_that_float32_does_not_tell_apart_stay() -> None:
    text = """g (float[2,3] x) => (float[2,1] y)
        <float[3,1] w = {1,2,3}, float t = {1.6008627e-07}, int32[1] c = {CODE}> {
        b = DequantizeLinear(c, t)  y = Gemm(x, w, b) }"""
    (found,) = read_configs(model(text.replace("CODE", "7064341")))
    assert found.reason == "its numbers do not become the same integers again"
    assert read_configs(model(text.replace("CODE", "7064"))) == []


def test_nodes_with_configs_keep_them() -> None:
    made = model(PAIR)
    read_configs(made)
    before = made.to_proto()
    (quantable,) = quantable_nodes(made)
    assert read_configs(made) == []
    assert quantable_nodes(made) == [quantable]
    assert made.to_proto() == before


def read(text: str, opset: int = 21) -> object:
    """Return what stays in a model, its nodes, and the configs of each node that has some."""
    constants = """
        float s = {0.5}, float s2 = {0.25}, float[2] t = {0.5,0.25}, float[1] one = {0.5},
        uint8 z = {3}, uint8 z0 = {0}, int8 i0 = {0}, int8[2] o = {0,0}, int16 h = {0},
        int32 w0 = {0}, float tiny = {1e-40}, float inf = {inf}, float neg = {-1},
        double d = {0.5}, float[1,2] block = {1,1}, uint8[2] q = {1,2}, int8[2,2] m = {1,2,3,4},
        float16 hs = {14336}, float[2] f = {1,2}, float least = {1.1754943508222875e-38}"""
    of = parsed(f"(float[2] x, uint8[2] u, float v) => (y) <{constants}> {{ {text} }}", opset=opset)
    left = [each.reason for each in read_configs(of)]
    nodes = [f"{n.op_type}{[v and v.name for v in n.inputs]}" for n in of.main.topological_order()]
    configs = {
        each.node.op_type: [
            f"{c.state.name} {c.num_of_bits} {c.quant_min}..{c.quant_max} {c.channel_axis} "
            f"{None if c.scale is None else c.scale.tolist()} "
            f"{None if c.offset is None else c.offset.tolist()} {c.policy.is_symmetric}"
            for c in each.config
        ]
        for each in quantable_nodes(of)
    }
    return left, nodes, configs


def test_what_is_read_is_recorded() -> None:
    function = """<ir_version: 10, opset_import: ["" : 21, "l" : 1]> g (float[2] x) => (float[2] y)
        { y = l.F<a = 0>(x) } <domain: "l", opset_import: ["" : 21]> F <a> (p) => (r)
        { s = Constant<value = float {0.5}>() q = QuantizeLinear<axis: int = @a>(p, s)
        d = DequantizeLinear<axis: int = @a>(q, s) r = Neg(d) }"""
    made = model(PAIR)
    floats = [TensorQuantizationConfig(_FLOATING, state=States.FP32) for _ in range(2)]
    quantize_node(made_by(made, "y"), OperationQuantizationConfig(floats[:1], floats[1:]))
    baked = model(UNIT)
    read_configs(baked)
    gemm, _ = quantable_nodes(baked)
    states = []
    for edit in (gemm.dequantize, gemm.restore):
        edit()
        states.append([each.state.name for each in gemm.config])
    names = {
        "read": read,
        "in_function": read_configs(Model.from_proto(onnx.parser.parse_model(function))),
        "with_configs": read_configs(made),
        "undone": states,
    }
    assert_values(__file__, names)
