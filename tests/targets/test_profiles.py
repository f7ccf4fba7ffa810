"""The built-in profiles: whole, and true to a few facts that are easy to get wrong."""

import numpy as np
import onnx
import pytest

from tests.targets.test_backend import said
from tiered import (
    DataType,
    Model,
    PassContext,
    backend_names,
    get_backend,
    optimize,
    optimize_model,
    pipeline_for,
)
from tiered.runtime import run
from tiered.testing import parse

BUILT_IN = (
    "coreml",
    "int8_npu",
    "ipu",
    "nhwc_edge",
    "onnxruntime_cpu",
    "openvino_npu",
    "portable",
    "portable13",
    "qnn_htp",
    "tensorrt",
    "webnn",
)


def test_all_profiles_are_listed() -> None:
    assert set(BUILT_IN) <= set(backend_names())


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_profile_says_what_it_is_and_what_it_does_not_know(name: str) -> None:
    target = get_backend(name)
    assert target.name == name
    assert target.doc
    assert target.sources
    assert target.limits
    assert pipeline_for(target)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_profile_names_operators_and_operands_that_exist(name: str) -> None:
    for (domain, op_type), rules in get_backend(name).operators.items():
        if domain or all(any(rule.signature) for rule in rules):
            continue  # no operator of onnx
        assert onnx.defs.has(op_type), op_type
        newest = onnx.defs.get_schema(op_type)
        names = {formal.name for formal in newest.inputs}
        for rule in rules:
            assert names.issuperset(rule.constant), op_type
            assert names.issuperset(rule.elements), op_type
            assert set(newest.attributes).issuperset(rule.attributes), op_type


@pytest.mark.parametrize(
    ("name", "model", "refused"),
    [
        (
            "tensorrt",
            "(float[4000] x) => (v, i) <int64[1] k = {3900}> { v, i = TopK(x, k) }",
            ["K holds 3900; it takes at most 3839"],
        ),
        ("tensorrt", "(double[4] x) => (y) { y = Sin(x) }", []),
        (
            "tensorrt",
            "(float[1,9,4] b, float[1,9,80] s) => (n, y, z, c) "
            "{ n, y, z, c = EfficientNMS_TRT<max_output_boxes=10>(b, s) }",
            [],
        ),
        (
            "onnxruntime_cpu",
            "(float16[4] x, int64[1] i, float16[1] u) => (y) "
            '{ y = ScatterElements<reduction="add">(x, i, u) }',
            ["reduction is add; it takes none, mul, max, min"],
        ),
        (
            "onnxruntime_cpu",
            "(float16[4] x, int64[1,1] i, float16[1] u) => (y) { y = ScatterND(x, i, u) }",
            [],
        ),
        (
            "openvino_npu",
            "(float[N] x) => (y) { y = Relu(x) }",
            ["dynamic dims N; it takes static shapes"],
        ),
        (
            "qnn_htp",
            "(float[4] x) => (y) <int64[1] i = {-1}> { y = Gather(x, i) }",
            ["indices holds -1; it takes 0 or more"],
        ),
        (
            "qnn_htp",
            "(float[2,2] x) => (y) { y = LpNormalization<p=1>(x) }",
            ["p is 1; it takes 2"],
        ),
        (
            "nhwc_edge",
            '(float[1,4,2,2] x) => (y) { y = DepthToSpace<blocksize=2, mode="CRD">(x) }',
            ["mode is CRD; it takes DCR"],
        ),
        (
            "nhwc_edge",
            "(float[1,2,2,2,2] x) => (y) { y = Relu(x) }",
            ["rank 5; it takes at most 4"],
        ),
        (
            "nhwc_edge",
            "(float[2,3] x, int32[2] i) => (y) { y = Gather(x, i) }",
            [],
        ),
        (
            "nhwc_edge",
            "(float[2,2] x) => (y) { y = Reciprocal(x) }",
            ["the target has no such operator"],
        ),
        (
            "coreml",
            "(float[2,3] x, float[3,2] w) => (y) { y = Gemm(x, w) }",
            ["B is not a constant"],
        ),
        ("coreml", "(float[2,3] x, float[3,2] w) => (y) { y = MatMul(x, w) }", []),
        (
            "webnn",
            "(float[2,1] x, int64[2] s) => (y) { y = Expand(x, s) }",
            ["shape is not a constant", "dynamic dims; it takes static shapes"],
        ),
        ("int8_npu", "(int8[2] x) => (y) { y = Relu(x) }", []),
        (
            "int8_npu",
            "(float[2] x) => (y) { y = Relu(x) }",
            ["X, Y are float; it takes int8"],
        ),
        ("int8_npu", "(int8[2] x) => (y) { y = Erf(x) }", ["the target has no such operator"]),
        ("ipu", "(float[2] x) => (y) { y = Celu(x) }", ["the target has no such operator"]),
    ],
)
def test_facts_of_the_profiles(name: str, model: str, refused: list[str]) -> None:
    target = get_backend(name)
    assert said(target, model) == refused


def test_quantised_units_are_taken_by_targets_that_want_them() -> None:
    unit = """(uint8[1,1,4,4] x) => (uint8[1,1,4,4] y)
        <float s = {0.5}, uint8 z = {0}, int8[1,1,1,1] w = {1}, int8 wz = {0}> {
        a = DequantizeLinear(x, s, z)
        b = DequantizeLinear(w, s, wz)
        c = Conv(a, b)
        y = QuantizeLinear(c, s, z)
    }"""
    assert said(get_backend("qnn_htp"), unit) == []


def test_layouts_are_preferences_by_operator() -> None:
    edge = get_backend("nhwc_edge")
    assert edge.preferred_layout("Conv") == "NHWC"
    assert get_backend("onnxruntime_cpu").preferred_layout("Conv") == "NCHW"
    assert edge.supports("Conv", "tiered.nhwc")
    assert not get_backend("portable").supports("Conv", "tiered.nhwc")
    assert get_backend("ipu").supports("Conv", dtype=DataType.FLOAT16)


PAIR = {"QuantizeLinear", "DequantizeLinear"}
QUANTIZED = """(float[1,4] x) => (float[1,4] y)
<float s = {0.5}, int8 z = {3}, int8[4,4] w = {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}> {
    q = QuantizeLinear(x, s, z)
    a = DequantizeLinear(q, s, z)
    b = DequantizeLinear(w, s, z)
    c = MatMul(a, b)
    r = QuantizeLinear(c, s, z)
    y = DequantizeLinear(r, s, z)
}"""


@pytest.mark.parametrize(
    ("level", "left"),
    [(0, PAIR), (3, PAIR), (4, set())],
)
def test_a_quantised_model_is_float_on_core_ml(level: int, left: set[str]) -> None:
    target = get_backend("coreml")
    model = Model.from_proto(parse(QUANTIZED))
    with PassContext(opt_level=level, backend=target):
        pipeline_for(target)(model)
    assert set(target.coverage(model).refused) == left
    # Weights and products are floats from level 1 on; the input may be NaN.
    assert len(model.main.nodes_of("DequantizeLinear")) == {0: 3, 3: 1, 4: 0}[level]
    for number in (-0.0, np.nan):
        x = np.array([[0.3, -1e9, 63.4, number]], np.float32)
        before, after = (run(each, {"x": x})["y"] for each in (parse(QUANTIZED), model.to_proto()))
        if level < 4:
            assert after.tobytes() == before.tobytes()
        else:
            assert np.isnan(after).all() if np.isnan(number) else np.allclose(after, before, 1e-6)


def test_weights_that_become_floats_are_noted() -> None:
    proto = parse(
        "(float[5,2] x) => (float[5,2] y) <int8[2,2] w = {1, 2, 3, 4}, float s = {0.5}> "
        "{ d = DequantizeLinear(w, s)  y = MatMul(x, d) }"
    )
    for disabled, count in (((), 1), (("lower_quantized_constant", "legalize"), 0)):
        made = optimize_model(proto, backend="coreml", opt_level=3, disabled=disabled)
        start = "4 weights of 8 bits are floats now"
        assert sum(note.startswith(start) for note in made.model.notes) == count


BETWEEN_POOLS = """(float[1,2,6,6] x) => (float[1,3,1,1] y)
<float[3,2,1,1] w = {1,2,3,4,5,6}, float[3] s = {1,2,3}, float[3] b = {1,0,0}, float[3] m = {0,1,0},
 float[3] v = {1,2,1}> {
    c = Conv(x, w)  p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(c)
    n = BatchNormalization(p, s, b, m, v)  y = GlobalAveragePool(n) }"""


@pytest.mark.parametrize("name", ["nhwc_edge", "int8_npu"])
def test_a_batch_norm_between_pools_keeps_no_transposes(name: str) -> None:
    before = parse(BETWEEN_POOLS, opset=18)
    made = optimize_model(before, backend=name, opt_level=3).model
    assert len(made.main.nodes_of("Transpose")) <= 1  # that of the image
    assert not made.main.nodes_of("BatchNormalization")
    x = np.random.default_rng(0).standard_normal((1, 2, 6, 6)).astype(np.float32)
    found, expected = (run(each, {"x": x})["y"] for each in (made.to_proto(), before))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("level", [1, 2])
def test_below_level_3_a_batch_norm_is_not_rounded_otherwise(level: int) -> None:
    made = optimize_model(parse(BETWEEN_POOLS, opset=18), backend="nhwc_edge", opt_level=level)
    assert made.model.main.nodes_of("BatchNormalization")


@pytest.mark.parametrize("name", ["portable13", "ipu"])
@pytest.mark.parametrize(
    "node",
    ["LayerNormalization(x, x)", "MeanVarianceNormalization<axes = [0]>(x)", "Gelu(x)", "Mish(x)"],
)
def test_below_level_3_a_conversion_to_an_older_opset_changes_no_bit(name: str, node: str) -> None:
    given = parse(f"(float[9] x) => (float[9] y) {{ y = {node} }}")
    feeds = {"x": np.array([-3.7, -1.1, -0.3, -0.0, 0.0, 0.1, 0.7, 1.9, 1000.1], np.float32)}
    expected = run(given, feeds)["y"].tobytes()
    for level in (0, 1, 2):
        made = optimize(given, opt_level=level, backend=name)
        assert run(made, feeds)["y"].tobytes() == expected
    made = optimize(given, opt_level=3, backend=name)
    assert made.opset_import[0].version == (13 if name == "portable13" else 11)
