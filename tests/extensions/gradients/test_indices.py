"""Gradients of operators that write at indices, or choose elements."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import OnnxRuntime, with_gradients
from tests.extensions.gradients.test_rules import check
from tiered import get_pass
from tiered.testing import parse

X = np.array([[0.5, -2, 0, 3], [1.5, 0, 0, 2], [4, 1, -1, 0.25]])
UPDATES = np.array([[0.75, 0, 0, 2.5], [2, 1.25, 0, -3]])


@pytest.mark.parametrize("reduction", ["mul", "max", "min", "add"])
def test_reductions_at_indices_that_occur_twice(reduction: str) -> None:
    check(
        "(double[3,4] x, double[2,4] u) => (double[3,4] y) <int64[2,4] i = {0,1,2,-1,0,2,2,1}> "
        f'{{ y = ScatterElements <axis = 0, reduction = "{reduction}"> (x, i, u) }}',
        feeds={"x": X, "u": UPDATES} if reduction == "mul" else {}, opset=18,
    )  # fmt: skip


@pytest.mark.parametrize("reduction", ["mul", "max", "min", "add"])
def test_reductions_of_rows(reduction: str) -> None:
    check(
        "(double[3,4] x, double[2,4] u) => (double[3,4] y) <int64[2,1] i = {2,2}> "
        f'{{ y = ScatterND <reduction = "{reduction}"> (x, i, u) }}',
        feeds={"x": X, "u": UPDATES} if reduction == "mul" else {}, opset=18,
    )  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_before_opset_11(axis: int) -> None:
    check(
        "(double[3,3] x, double[2,2] u) => (double[3,3] y) <int64[2,2] i = {1,0,0,2}> "
        f"{{ y = Scatter <axis = {axis}> (x, i, u) }}",
        opset=10, in_float=True,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize(
    ("past", "update", "axis"),
    [("2,4,3", "2,2,3", 1), ("2,2,4,3", "2,2,2,3", -2), ("2,2,3,4", "2,2,3,2", 3)],
)
def test_tensor_scatter(past: str, update: str, axis: int, mode: str) -> None:
    starts = "3,1" if mode == "circular" else "2,0"
    check(
        f"(double[{past}] x, double[{update}] u) => (double[{past}] y) "
        f"<int64[2] s = {{{starts}}}> "
        f'{{ y = TensorScatter <axis = {axis}, mode = "{mode}"> (x, u, s) }}',
        opset=24,
    )


def test_tensor_scatter_at_the_start() -> None:
    check(
        "(double[2,4,3] x, double[2,2,3] u) => (double[2,4,3] y) { y = TensorScatter(x, u) }",
        opset=24,
    )


@pytest.mark.parametrize(
    ("operands", "size"), [("x, i", "4,4"), ("x, i, s", "5,5")]
)
def test_max_unpool(operands: str, size: str) -> None:
    check(
        f"(double[1,1,2,2] x) => (double[1,1,{size}] y) "
        "<int64[1,1,2,2] i = {5,7,13,15}, int64[4] s = {1,1,5,5}> "
        f"{{ y = MaxUnpool <kernel_shape = [2,2], strides = [2,2]> ({operands}) }}"
    )


@pytest.mark.parametrize(
    ("settings", "y"), [("sorted = 1", "N"), ("axis = 0", "N,3"), ("axis = -1", "4,N")]
)
@pytest.mark.parametrize("outputs", ["y", "y, i, j"])
def test_unique(settings: str, y: str, outputs: str) -> None:
    check(f"(double[4,3] x) => (double[{y}] y) {{ {outputs} = Unique <{settings}> (x) }}")


def test_unique_in_the_order_of_x() -> None:
    check("(double[5] x) => (double[N] y) { y = Unique <sorted = 0> (x) }", in_float=True)


def test_positions_in_another_order() -> None:
    check(
        "(double[1,2,5,5] x) => (double[1,2,2,2] y) "
        "{ y, i = MaxPool <kernel_shape = [2,2], strides = [2,2], storage_order = 1> (x) }"
    )


def test_the_scales_of_blocks() -> None:
    check(
        "(float[2,2] s) => (float[4,2] y) <int8[4,2] q = {1,-2,3,4,5,-6,7,8}> "
        "{ y = DequantizeLinear <axis = 0, block_size = 2> (q, s) }",
        in_float=True,
    )


def test_batches_in_training() -> None:
    check(
        "(double[3,2,4] x, double[2] s, double[2] b, double[2] m, double[2] v) => "
        "(double[3,2,4] y, double[2] n, double[2] w) "
        "{ y, n, w = BatchNormalization <training_mode = 1> (x, s, b, m, v) }",
        low=0.2, high=2,
    )  # fmt: skip


def test_dropout_in_training_gets_a_mask() -> None:
    proto = parse(
        "(float[200] x, float r) => (float[200] y) <bool t = {1}> { y = Dropout(x, r, t) }"
    )
    made = OnnxRuntime(with_gradients(proto))
    x, seed = np.linspace(1, 2, 200, dtype=np.float32), np.ones(200, np.float32)
    found = made({"x": x, "r": np.array(0.25, np.float32), "seed/y": seed})
    kept = found["y"] != 0
    assert 100 < kept.sum() < 200
    np.testing.assert_allclose(found["grad/x"], kept / 0.75, rtol=1e-6)


FEATURES = """<ir_version: 10, opset_import: ["" : 13, "ai.onnx.ml" : 3]>
    g (float[3,4] x) => (float[3,2] y) <int64[2] i = {2,0}> {
        y = ai.onnx.ml.ArrayFeatureExtractor(x, i) }"""

THRESHOLDS = """<ir_version: 10, opset_import: ["" : 13, "ai.onnx.ml" : 3]>
    g (float[3,4] x) => (float[3,4] y) {
        b = ai.onnx.ml.Binarizer <threshold = 0.1> (x)  y = Add(b, x) }"""


def test_operators_of_the_classical_domain() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4) / 4
    for text, seed, expected in (
        (FEATURES, np.ones((3, 2), np.float32), np.array([[1, 0, 1, 0]] * 3)),
        (THRESHOLDS, np.ones((3, 4), np.float32), np.ones((3, 4))),
    ):
        found = OnnxRuntime(with_gradients(parse(text)))({"x": x, "seed/y": seed})
        np.testing.assert_array_equal(found["grad/x"], expected)


def test_the_element_of_an_optional_tensor() -> None:
    check("(double[3] x) => (double[3] y) { y = OptionalGetElement(x) }")


def test_a_body_that_imports_no_default_domain() -> None:
    text = """<ir_version: 13, opset_import: ["" : 26, "ai.onnx.preview" : 1]>
        g (double[1,2,3,4] q, double[1,2,5,4] k, double[1,2,5,4] v) => (double[1,2,3,4] y) {
            y = ai.onnx.preview.FlexAttention(q, k, v) }"""
    check(text)


def test_slices_had_no_steps_before_opset_10() -> None:
    check(
        """(double[3] h0, double[5,3] xs) => (double[3] y, double[5,3] z) {
        y, z = Scan <num_scan_inputs = 1, body = b (double[3] h, double[3] x) =>
            (double[3] next, double[3] row) {
                p = Mul(h, x)  next = Tanh(p)  row = Add(p, next) }> (h0, xs) }""",
        in_float=True, opset=9,
    )  # fmt: skip


@pytest.mark.parametrize("like", ["EyeLike", "RandomNormalLike", "RandomUniformLike"])
def test_operators_that_read_a_shape_only(like: str) -> None:
    proto = parse(
        f"(float[2,2] x) => (float[2,2] y, float[2,2] n) {{ n = {like}(x)  y = Mul(n, x) }}"
    )
    made = OnnxRuntime(get_pass("gradient", of=["y"], seed="ones")(proto))
    found = made({"x": np.array([[1, 2], [3, 4]], np.float32)})
    np.testing.assert_array_equal(found["grad/x"], found["n"])
