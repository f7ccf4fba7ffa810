"""Operators on quantised tensors are what they dequantise, compute and quantise."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, call
from tests.certify.reals.field import DOMAIN, are_same, number, ran, unknown
from tests.certify.test_checker import proof
from tiered.certify.definitions.contrib_definitions import OWN
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.values import CheckedTensor

SCALES = """float s = {0.5}, float t = {0.25}, float u = {2}, uint8 a = {3}, uint8 b = {7},
    uint8 c = {9}"""
BYTES = "(uint8[2,3] x, uint8[3,4] z) => (uint8[2,4] y)"
IMAGE = "(uint8[1,2,4] x) => (uint8[1,2,4] y)"
WEIGHTS = "int8[2,2,1] w = {1,-2,3,4}, float[2] v = {0.25,0.5}, int8[2] k = {0,0}"

EQUAL = {
    "QLinearMatMul": (
        f"""{BYTES} <{SCALES}> {{ p = DequantizeLinear(x, s, a)  q = DequantizeLinear(z, t, b)
            m = MatMul(p, q)  y = QuantizeLinear(m, u, c) }}""",
        f"{BYTES} <{SCALES}> {{ y = QLinearMatMul(x, s, a, z, t, b, u, c) }}",
    ),
    "QLinearConv": (
        f"""{IMAGE} <{SCALES}, {WEIGHTS}> {{ p = DequantizeLinear(x, s, a)
            q = DequantizeLinear<axis = 0>(w, v, k)  m = Conv(p, q)
            y = QuantizeLinear(m, u, c) }}""",
        f"{IMAGE} <{SCALES}, {WEIGHTS}> {{ y = QLinearConv(x, s, a, w, v, k, u, c) }}",
    ),
    "QGemm": (
        f"""{BYTES} <{SCALES}> {{ p = DequantizeLinear(x, s, a)  q = DequantizeLinear(z, t, b)
            m = Gemm(p, q)  y = QuantizeLinear(m, u, c) }}""",
        f"{BYTES} <{SCALES}> {{ y = com.microsoft.QGemm(x, s, a, z, t, b, , u, c) }}",
    ),
    "QGemm with a bias": (
        f"""{BYTES} <{SCALES}, float[4] d = {{1,2,3,4}}> {{
            p = DequantizeLinear(x, s, a)  q = DequantizeLinear(z, t, b)
            m = Gemm(p, q)  r = Add(m, d)  y = QuantizeLinear(r, u, c) }}""",
        f"""{BYTES} <{SCALES}, int32[4] n = {{8,16,24,32}}> {{
            y = com.microsoft.QGemm(x, s, a, z, t, b, n, u, c) }}""",
    ),
    "QLinearSigmoid": (
        f"""{IMAGE} <{SCALES}> {{ p = DequantizeLinear(x, s, a)  m = Sigmoid(p)
            y = QuantizeLinear(m, u, c) }}""",
        f"{IMAGE} <{SCALES}> {{ y = com.microsoft.QLinearSigmoid(x, s, a, u, c) }}",
    ),
    "QLinearLeakyRelu": (
        f"""{IMAGE} <{SCALES}> {{ p = DequantizeLinear(x, s, a)  m = LeakyRelu<alpha = 0.25>(p)
            y = QuantizeLinear(m, u, c) }}""",
        f"""{IMAGE} <{SCALES}> {{
            y = com.microsoft.QLinearLeakyRelu<alpha = 0.25>(x, s, a, u, c) }}""",
    ),
    "QLinearAveragePool": (
        f"""(uint8[1,2,4] x) => (uint8[1,2,3] y) <{SCALES}> {{ p = DequantizeLinear(x, s, a)
            m = AveragePool<kernel_shape = [2]>(p)  y = QuantizeLinear(m, u, c) }}""",
        f"""(uint8[1,2,4] x) => (uint8[1,2,3] y) <{SCALES}> {{
            y = com.microsoft.QLinearAveragePool<kernel_shape = [2]>(x, s, a, u, c) }}""",
    ),
    "QLinearConcat": (
        f"""(uint8[2,3] x, uint8[2,3] z) => (uint8[4,3] y) <{SCALES}> {{
            p = DequantizeLinear(x, s, a)  q = DequantizeLinear(z, t, b)
            m = Concat<axis = 0>(p, q)  y = QuantizeLinear(m, u, c) }}""",
        f"""(uint8[2,3] x, uint8[2,3] z) => (uint8[4,3] y) <{SCALES}> {{
            y = com.microsoft.QLinearConcat<axis = 0>(u, c, x, s, a, z, t, b) }}""",
    ),
    "MatMulIntegerToFloat": (
        f"""{BYTES.replace("uint8[2,4] y", "float[2,4] y")} <{SCALES}, float[4] n = {{1,2,3,4}}> {{
            p = DequantizeLinear(x, s, a)  q = DequantizeLinear(z, t, b)  m = MatMul(p, q)
            y = Add(m, n) }}""",
        f"""{BYTES.replace("uint8[2,4] y", "float[2,4] y")} <{SCALES}, float[4] n = {{1,2,3,4}}> {{
            y = com.microsoft.MatMulIntegerToFloat(x, z, s, t, a, b, n) }}""",
    ),
    "MatMulInteger": (
        f"""{BYTES.replace("uint8[2,4] y", "float[2,4] y")} <{SCALES}> {{
            p = DequantizeLinear(x, s, a)  q = DequantizeLinear(z, t, b)  y = MatMul(p, q) }}""",
        f"""{BYTES.replace("uint8[2,4] y", "float[2,4] y")} <{SCALES}, float e = {{0.125}}> {{
            i = MatMulInteger(x, z, a, b)  f = Cast<to = 1>(i)  y = Mul(f, e) }}""",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_a_fused_operator_is_its_definition(name: str) -> None:
    found = proof(*EQUAL[name])
    assert found.is_proved, found.reason


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("QLinearMatMul", "(x, s, a, z, t, b, u, c)", "(x, s, b, z, t, a, u, c)"),
        ("QLinearMatMul", "(x, s, a, z, t, b, u, c)", "(x, s, a, z, t, b, t, c)"),
        ("QLinearConv", "w, v, k, u, c", "w, v, k, u, a"),
        ("QGemm", "z, t, b, , u, c", "z, s, b, , u, c"),
        ("QGemm", "z, t, b, , u, c", "z, t, b, , u, a"),
        ("QGemm with a bias", "{8,16,24,32}", "{8,16,24,33}"),
        ("QLinearSigmoid", "u, c)", "u, a)"),
        ("QLinearLeakyRelu", "alpha = 0.25", "alpha = 0.5"),
        ("QLinearAveragePool", "x, s, a, u, c", "x, t, a, u, c"),
        ("QLinearConcat", "x, s, a, z, t, b", "x, s, a, z, t, a"),
        ("MatMulIntegerToFloat", "s, t, a, b, n", "s, t, b, a, n"),
        ("MatMulInteger", "0.125", "0.25"),
    ],
)
def test_another_scale_or_zero_point_is_not_proved(name: str, right: str, wrong: str) -> None:
    before, after = EQUAL[name]
    assert right in after
    assert not proof(before, after.replace(right, wrong)).is_proved


def test_a_pool_with_channels_last_has_no_definition() -> None:
    before, after = EQUAL["QLinearAveragePool"]
    last = after.replace("kernel_shape = [2]", "kernel_shape = [2], channels_last = 1")
    assert not proof(before, last).is_proved


# --- by the operators of the definition -----------------------------------------------------------


UINT8, INT32 = int(onnx.TensorProto.UINT8), int(onnx.TensorProto.INT32)
X, W = unknown("x", 2, 3, dtype=UINT8), unknown("w", 3, 4, dtype=UINT8)


def made(op: str, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    (result,) = OWN[op](call(op, *inputs, domain=DOMAIN, **held))
    assert result is not None
    return result


def byte(*numbers: int) -> CheckedTensor:
    return number(numbers, np.uint8)


def real(x: CheckedTensor, zero: Any = None) -> CheckedTensor:
    """Return bytes as reals, without a zero point."""
    wide = ran("Cast", x, to=FLOAT)
    return wide if zero is None else ran("Sub", wide, number(np.asarray(zero, np.float32)))


@pytest.mark.parametrize(
    ("scale", "zero", "axis", "factor", "offset"),
    [
        (number([0.5, 0.25, 2]), byte(1, 2, 3), None, [0.5, 0.25, 2], [1, 2, 3]),
        (number([0.5, 0.25, 2]), None, -1, [0.5, 0.25, 2], None),
        (number([0.5, 0.25]), byte(1, 2), 0, [[0.5], [0.25]], [[1], [2]]),
        (number([0.5, 0.25]), None, 0, [[0.5], [0.25]], None),
        (number([0.5]), byte(3), None, 0.5, 3),
        (number(0.5), number(3, np.uint8), None, 0.5, 3),
        (number([0.5]), None, None, 0.5, None),
    ],
)
def test_scales_and_zero_points_are_along_an_axis(
    scale: CheckedTensor, zero: CheckedTensor | None, axis: int | None, factor: Any, offset: Any
) -> None:
    held = {} if axis is None else {"axis": axis}
    expected = ran("Mul", real(X, offset), number(factor))
    assert are_same(made("DequantizeLinear", X, scale, zero, **held), expected)


def test_a_scale_of_one_element_keeps_a_scalar() -> None:
    x = unknown("x", dtype=UINT8)
    assert made("DequantizeLinear", x, number([0.5]), byte(3)).shape == ()


@pytest.mark.parametrize(
    ("inputs", "held"),
    [
        ((X, number(0.5)), {"block_size": 1}),
        ((X, number(0.5)), {"output_dtype": int(onnx.TensorProto.DOUBLE)}),
        ((byte(1, 2), number(0.5)), {}),
    ],
)
def test_blocks_other_dtypes_and_numbers_are_left(
    inputs: tuple[CheckedTensor, ...], held: dict[str, int]
) -> None:
    with pytest.raises(NoRule):
        made("DequantizeLinear", *inputs, **held)
    assert made("DequantizeLinear", X, number(0.5), output_dtype=FLOAT).shape == (2, 3)
    assert made("DequantizeLinear", byte(1, 2), unknown("s")).shape == (2,)


def test_a_product_of_integers_is_one_without_zero_points() -> None:
    found = made("MatMulInteger", X, W, byte(1, 2), byte(3, 4, 5, 6))
    assert found.dtype == INT32
    left, right = real(X, [[1], [2]]), real(W, [3, 4, 5, 6])
    assert are_same(found, ran("MatMul", left, right))
    assert are_same(made("MatMulInteger", X, W), ran("MatMul", real(X), real(W)))
    single = made("MatMulInteger", X, W, byte(1), number(3, np.uint8))
    assert are_same(single, ran("MatMul", real(X, [1]), real(W, 3)))


def test_what_is_a_number_over_the_reals_has_no_integers() -> None:
    none = unknown("none", 1, 0, 4, dtype=UINT8)
    with pytest.raises(NoRule):
        made("ConvInteger", none, number(np.zeros((2, 0, 2)), np.uint8))


def test_a_convolution_of_integers_is_one_without_zero_points() -> None:
    x = unknown("image", 1, 2, 4, dtype=UINT8)
    kernel = np.array([[[1], [2]], [[3], [4]]])
    for zero, offset in ((byte(5, 6), [[[5]], [[6]]]), (byte(5), 5), (None, 0)):
        found = made("ConvInteger", x, number(kernel, np.uint8), number(3, np.uint8), zero)
        expected = ran("Conv", real(x, 3), number((kernel - offset).astype(np.float32)))
        assert found.dtype == INT32
        assert are_same(found, expected)
    assert are_same(
        made("ConvInteger", x, number(kernel, np.uint8)),
        ran("Conv", real(x), number(kernel.astype(np.float32))),
    )


def test_a_bias_of_integers_has_the_scale_of_the_product() -> None:
    x, b = unknown("image", 1, 2, 4, dtype=UINT8), number([8, 16], np.int32)
    w = number([[[1], [2]], [[3], [4]]], np.uint8)
    scales = (number(0.5), number(0, np.uint8))
    held = (x, *scales, w, number(0.25), number(0, np.uint8), *scales)
    plain = (number([[[0.25], [0.5]], [[0.75], [1.0]]]), number([1.0, 2.0]))
    product = ran("Conv", ran("Mul", real(x), number(0.5)), *plain)
    expected = ran("QuantizeLinear", product, *scales)
    assert are_same(made("QLinearConv", *held, b), expected)
    assert not are_same(made("QLinearConv", *held), expected)


def test_a_gemm_may_be_turned_and_of_floats() -> None:
    w = unknown("turned", 4, 3, dtype=UINT8)
    scales, zeros = number([1.0, 2, 3, 4]), byte(1, 2, 3, 4)
    x = (X, number(0.5), number(3, np.uint8))
    columns = ran("Mul", real(w, [[1], [2], [3], [4]]), number([[1.0], [2], [3], [4]]))
    rows = ran("Mul", real(X, 3), number(0.5))
    found = made("com.microsoft::QGemm", *x, w, scales, zeros, transB=1)
    assert are_same(found, ran("MatMul", rows, ran("Transpose", columns)))
    plain = made("com.microsoft::QGemm", *x, W, scales, zeros)
    expected = ran("Mul", real(W, [1, 2, 3, 4]), scales)
    assert are_same(plain, ran("MatMul", rows, expected))


def test_a_dynamic_product_has_a_bias_or_none() -> None:
    x = unknown("floats", 2, 3)
    op, bias = "com.microsoft::DynamicQuantizeMatMul", number([1.0, 2, 3, 4])
    held = (x, W, number(0.5), number(3, np.uint8))
    plain = made(op, *held)
    assert (plain.shape, plain.dtype) == ((2, 4), FLOAT)
    assert are_same(made(op, *held, bias), ran("Add", plain, bias))
    for other in ((x, W, number(0.25), held[3]), (x, W, held[2], None), (x, W, held[2], byte(4))):
        assert not are_same(made(op, *other), plain)
