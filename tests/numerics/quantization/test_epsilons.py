"""Epsilons of integers: no divisor, logarithm or root becomes 0 that is none in float."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from onnx import numpy_helper

from tiered import Model, QuantizationSettings, get_backend, quantize_model
from tiered.runtime import run
from tiered.testing import parse

Array = np.ndarray[Any, Any]

ROWS = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
WITH_ZEROS = ROWS * np.array([[1], [0], [100], [1]], np.float32)

NODES = {
    "normalize": "n = ReduceL2<keepdims=1>(x, ax) c = Clip(n, e) y = Div(x, c)",
    "largest": "n = ReduceMax<keepdims=1>(p, ax) c = Max(n, e) y = Div(x, c)",
    "norm": """m = ReduceMean<keepdims=1>(x, ax) d = Sub(x, m) s = Mul(d, d)
        v = ReduceMean<keepdims=1>(s, ax) a = Add(v, e) r = Sqrt(a) y = Div(d, r)""",
    "rsqrt": """s = Mul(x, x) v = ReduceMean<keepdims=1>(s, ax) a = Add(v, e) r = Sqrt(a)
        i = Reciprocal(r) y = Mul(x, i)""",
    "power": """s = Mul(x, x) v = ReduceMean<keepdims=1>(s, ax) a = Add(v, e) i = Pow(a, half)
        y = Mul(x, i)""",
    "log": "b = Add(p, e) y = Log(b)",
    "moved": "b = Add(p, e) t = Transpose(b) l = Log(t) y = Transpose(l)",
    "share": "s = ReduceSum<keepdims=1>(p, ax) b = Add(s, e) y = Div(p, b)",
    "vector": "b = Add(p, k) y = Div(x, b)",
    "divisor": "y = Div(x, k)",
    "factor": "b = Add(p, k) c = Mul(b, k) y = Log(c)",
    "negative": "n = Neg(p) b = Sub(n, e) y = Div(x, b)",
}  # fmt: skip


def quantized(
    nodes: str, samples: list[Array], backend: str | None, epsilon: float = 1e-12
) -> tuple[Any, Any, list[str]]:
    text = f"""(float[4,8] x) => (float[4,8] y)
        <int64[1] ax = {{1}}, float e = {{{epsilon!r}}}, float half = {{-0.5}}>
        {{ p = Abs(x) {nodes} }}"""
    proto = parse(text, opset=18)
    rest = np.array([1e-9, 1, 2, 1, 1, 1e-7, 1, 3], np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(rest, "k"))
    model, reasons = Model.from_proto(proto), list[str]()
    given_ = [{"x": each} for each in samples]
    target = None if backend is None else get_backend(backend)
    quantize_model(
        model,
        QuantizationSettings(inputs=given_),
        on_skip=lambda node, reason: reasons.append(str(reason)),
        backend=target,
    )
    return proto, model.to_proto(), reasons


def new_infinities(before: Any, after: Any, x: Array) -> int:
    with np.errstate(all="ignore"):
        exact, found = (run(each, {"x": x})["y"] for each in (before, after))
    return int((np.isfinite(exact) & ~np.isfinite(found)).sum())


@pytest.mark.parametrize("backend", ["int8_npu", "nhwc_edge"])
@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("seen", [WITH_ZEROS, ROWS], ids=["rows of zeros", "none"])
def test_no_number_is_divided_by_an_epsilon_that_is_gone(
    name: str, backend: str, seen: Array
) -> None:
    before, after, _ = quantized(NODES[name], [seen, seen[::-1].copy()], backend)
    for x in (ROWS, WITH_ZEROS, np.zeros_like(ROWS)):
        assert new_infinities(before, after, x) == 0


def test_what_the_samples_need_stays_float_and_is_named() -> None:
    _, after, reasons = quantized(NODES["norm"], [WITH_ZEROS], "int8_npu")
    assert any(text.startswith("epsilon: 1e-12 would be 0, and a Pow reads it") for text in reasons)
    assert any(text.startswith("statistic: 1e-12 is added to it") for text in reasons)
    (added,) = (node for node in after.graph.node if node.op_type == "Add")
    assert added.input[1] == "e", "as it is"


def test_what_the_samples_do_not_need_is_at_least_one_step() -> None:
    _, after, reasons = quantized(NODES["norm"], [ROWS], "int8_npu")
    assert not [text for text in reasons if "epsilon" in text]
    assert [node.op_type for node in after.graph.node].count("Max") == 1


def test_a_small_probability_under_a_logarithm_is_in_float() -> None:
    nodes = "s = Softmax(x) c = Clip(s, e) y = Log(c)"
    before, after, reasons = quantized(nodes, [ROWS * 6], "int8_npu", 1e-7)
    assert any(text.startswith("probability: ") for text in reasons)
    exact, found = (run(each, {"x": ROWS * 6})["y"] for each in (before, after))
    assert np.linalg.norm(exact - found) < 0.05 * np.linalg.norm(exact)


@pytest.mark.parametrize("backend", [None, "onnxruntime_cpu", "qnn_htp"])
@pytest.mark.parametrize(
    ("end", "is_float"),
    [("y = Log(c)", True), ("t = Transpose(c) y = Log(t)", True), ("y = Exp(c)", False)],
)
def test_a_product_whose_result_a_logarithm_reads_has_no_integer_result(
    end: str, is_float: bool, backend: str | None
) -> None:
    text = f"""(float[1,1,4,8] x) => (float[?,?,?,?] y)
        <float[1,1,1,1] w = {{1}}, float e = {{1e-6}}>
        {{ p = Abs(x) a = Conv(p, w) c = Clip(a, e) {end} }}"""
    text = text.replace("?,?,?,?", "a,b,c,d")
    proto = parse(text, opset=18)
    model, x = Model.from_proto(proto), WITH_ZEROS.reshape(1, 1, 4, 8)
    target = None if backend is None else get_backend(backend)
    quantize_model(model, QuantizationSettings(inputs=[{"x": x}]), backend=target)
    (product,) = model.main.nodes_of("Conv")
    first = product.input(0)
    assert first is not None
    assert (first.producer is not None and first.producer.is_op("Abs")) == is_float
    assert new_infinities(proto, model.to_proto(), x) == 0


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(sorted(NODES)),
    backend=st.sampled_from(["int8_npu", "nhwc_edge"]),
    exponent=st.integers(-14, -1),
    scales=st.lists(st.sampled_from([0.0, 1e-3, 1.0, 30.0]), min_size=4, max_size=4),
)
def test_random_epsilons_at_random_places(
    name: str, backend: str, exponent: int, scales: list[float]
) -> None:
    seen = ROWS * np.array(scales, np.float32)[:, None]
    before, after, _ = quantized(NODES[name], [seen], backend, 10.0**exponent)
    for x in (seen, ROWS, np.zeros_like(ROWS)):
        assert new_infinities(before, after, x) == 0
