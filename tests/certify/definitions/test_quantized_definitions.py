"""Operators on quantised tensors are what they dequantise, compute and quantise."""

import pytest

from tests.certify.test_checker import proof

SCALES = """float s = {0.5}, float t = {0.25}, float u = {2}, uint8 a = {3}, uint8 b = {7},
    uint8 c = {9}"""
BYTES = "(uint8[2,3] x, uint8[3,4] z) => (uint8[2,4] y)"
IMAGE = "(uint8[1,2,4] x) => (uint8[1,2,4] y)"
W = "int8[2,2,1] w = {1,-2,3,4}, float[2] v = {0.25,0.5}, int8[2] k = {0,0}"

EQUAL = {
    "QLinearMatMul": (
        f"""{BYTES} <{SCALES}> {{ p = DequantizeLinear(x, s, a)  q = DequantizeLinear(z, t, b)
            m = MatMul(p, q)  y = QuantizeLinear(m, u, c) }}""",
        f"{BYTES} <{SCALES}> {{ y = QLinearMatMul(x, s, a, z, t, b, u, c) }}",
    ),
    "QLinearConv": (
        f"""{IMAGE} <{SCALES}, {W}> {{ p = DequantizeLinear(x, s, a)
            q = DequantizeLinear<axis = 0>(w, v, k)  m = Conv(p, q)
            y = QuantizeLinear(m, u, c) }}""",
        f"{IMAGE} <{SCALES}, {W}> {{ y = QLinearConv(x, s, a, w, v, k, u, c) }}",
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
