"""Clamps, choices, quantised numbers, loops, sequences, and sizes that nobody knows."""

import numpy as np
import onnx
import pytest

from tests.certify.call import free
from tests.certify.test_checker import proof
from tiered.certify.evaluation.forms import Dequantized

F = "(float[N] x) => (float[N] y)"
FF = "(float[N] x, float[N] z) => (float[N] y)"
BF = "(bool[N] x, float[N] z) => (float[N] y)"
BOUNDS = "<float a = {-1}, float b = {2}, float c = {0}, float d = {1}>"
LOOP = """(float[2] x) => (float[2] y) <int64 n = {2}, bool c = {1}> {
    y = Loop(n, c, x)<body = g (int64 i, bool k, float[2] s) => (bool k, float[2] t) {
        t = Add(s, x) }> }"""
EQUAL = {
    "two clips": (
        f"{F} {BOUNDS} {{ h = Clip(x, a, b)  y = Clip(h, c) }}",
        f"{F} {BOUNDS} {{ y = Clip(x, c, b) }}",
    ),
    "a Relu and a Clip": (
        f"{F} {BOUNDS} {{ h = Relu(x)  y = Clip(h, a, b) }}",
        f"{F} {BOUNDS} {{ y = Clip(x, c, b) }}",
    ),
    "a Max above zero": (
        f"{FF} {BOUNDS} {{ h = Max(x, d)  i = Max(z, b)  y = Max(h, i) }}",
        f"{FF} {BOUNDS} {{ y = Max(z, b, x) }}",
    ),
    "integers in any order": (
        "(int64[N] x, int64[N] z) => (int64[N] y) { h = Max(x, z)  y = Max(h, x) }",
        "(int64[N] x, int64[N] z) => (int64[N] y) { y = Max(z, x) }",
    ),
    "twice an idempotent one": (
        f"{F} {{ h = Ceil(x)  y = Round(h) }}", f"{F} {{ y = Ceil(x) }}",
    ),
    "a zero before what cannot see it": (
        f"{F} {BOUNDS} {{ h = Add(x, c)  y = Exp(h) }}", f"{F} {{ y = Exp(x) }}",
    ),
    "a square": (f"{F} <float p = {{2}}> {{ y = Pow(x, p) }}", f"{F} {{ y = Mul(x, x) }}"),
    "a choice by Not": (
        f"{BF} <float c = {{0}}> {{ n = Not(x)  y = Where(n, z, c) }}",
        f"{BF} <float c = {{0}}> {{ y = Where(x, c, z) }}",
    ),
    "integers there and back": (
        """(uint8[N] x) => (uint8[N] y) <float s = {0.1}, uint8 z = {3}> {
            h = DequantizeLinear(x, s, z)  y = QuantizeLinear(h, s, z) }""",
        "(uint8[N] x) => (uint8[N] y) { y = Identity(x) }",
    ),
    "signed and unsigned integers": (
        f"""{F} <float s = {{0.1}}, uint8 z = {{3}}> {{
            h = QuantizeLinear(x, s, z)  y = DequantizeLinear(h, s, z) }}""",
        f"""{F} <float s = {{0.1}}, int8 z = {{-125}}> {{
            h = QuantizeLinear(x, s, z)  y = DequantizeLinear(h, s, z) }}""",
    ),
    "a limit beyond which all is alike": (
        f"""{F} <float s = {{0.5}}, uint8 z = {{0}}> {{ h = Relu(x)
            q = QuantizeLinear(h, s, z)  y = DequantizeLinear(q, s, z) }}""",
        f"""{F} <float s = {{0.5}}, uint8 z = {{0}}> {{
            q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }}""",
    ),
    "iterations": (LOOP, "(float[2] x) => (float[2] y) { h = Add(x, x)  y = Add(h, x) }"),
    "a tensor of a sequence": (
        f"{F} <int64 i = {{-1}}> {{ n = Neg(x)  s = SequenceConstruct(x, n)"
        "  y = SequenceAt(s, i) }",
        f"{F} {{ y = Neg(x) }}",
    ),
    "a size that data decide": (
        f"{F} {{ i = NonZero(x)  g = Gather(x, i)  n = Neg(g)  m = Neg(n)  y = ReduceMax(m) }}",
        f"{F} {{ i = NonZero(x)  g = Gather(x, i)  y = ReduceMax(g) }}",
    ),
    "a shape from outside": (
        """(int64[2] s) => (float[?,?] y) {
            c = ConstantOfShape(s)  y = Cast<to = 1>(c) }""",
        "(int64[2] s) => (float[?,?] y) { y = ConstantOfShape(s) }",
    ),
    "a state of zeros": (
        """(float[5,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float[?,?,?,?] y)
            <float[1,1,2] h = {0,0}> { y = LSTM<hidden_size = 2>(x, w, r, , , h) }""",
        """(float[5,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float[?,?,?,?] y) {
            y = LSTM<hidden_size = 2>(x, w, r) }""",
    ),
}  # fmt: skip
DIFFERENT = {
    "a Max of floats in another order": (f"{FF} {{ y = Max(x, z) }}", f"{FF} {{ y = Max(z, x) }}"),
    "a Min with zero in another order": (
        f"{F} {BOUNDS} {{ y = Min(x, c) }}", f"{F} {BOUNDS} {{ y = Min(c, x) }}",
    ),
    "a Max with zero and a Relu": (f"{F} {BOUNDS} {{ y = Max(c, x) }}", f"{F} {{ y = Relu(x) }}"),
    "bounds in another order": (
        f"{F} {BOUNDS} {{ h = Clip(x, b, b)  y = Clip(h, a, d) }}",
        f"{F} {BOUNDS} {{ h = Clip(x, a, d)  y = Clip(h, b, b) }}",
    ),
    "no bound and the furthest one": (
        f"{F} {{ y = Clip(x) }}", f"{F} {{ y = Identity(x) }}",
    ),
    "a Floor after a fraction": (f"{F} {{ h = Abs(x)  y = Floor(h) }}", f"{F} {{ y = Abs(x) }}"),
    "a zero before a reciprocal": (
        f"{F} {BOUNDS} {{ h = Add(x, c)  y = Reciprocal(h) }}", f"{F} {{ y = Reciprocal(x) }}",
    ),
    "a half to the third": (
        "(float16[N] x) => (float16[N] y) <float16 p = {3}> { y = Pow(x, p) }",
        "(float16[N] x) => (float16[N] y) { h = Mul(x, x)  y = Mul(h, x) }",
    ),
    "a choice by Not in the same order": (
        f"{BF} <float c = {{0}}> {{ n = Not(x)  y = Where(n, z, c) }}",
        f"{BF} <float c = {{0}}> {{ y = Where(x, z, c) }}",
    ),
    "integers with another scale": (
        """(uint8[N] x) => (uint8[N] y) <float s = {0.1}, float t = {0.11}, uint8 z = {3}> {
            h = DequantizeLinear(x, s, z)  y = QuantizeLinear(h, t, z) }""",
        "(uint8[N] x) => (uint8[N] y) { y = Identity(x) }",
    ),
    "another zero point": (
        f"""{F} <float s = {{0.1}}, uint8 z = {{3}}> {{
            h = QuantizeLinear(x, s, z)  y = DequantizeLinear(h, s, z) }}""",
        f"""{F} <float s = {{0.1}}, int8 z = {{3}}> {{
            h = QuantizeLinear(x, s, z)  y = DequantizeLinear(h, s, z) }}""",
    ),
    "a limit within the range": (
        f"""{F} <float s = {{0.5}}, uint8 z = {{1}}> {{ h = Relu(x)
            q = QuantizeLinear(h, s, z)  y = DequantizeLinear(q, s, z) }}""",
        f"""{F} <float s = {{0.5}}, uint8 z = {{1}}> {{
            q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }}""",
    ),
    "a sum of one int64": (
        "(int64[2,1] x) => (int64[2,1] y) <int64[1] a = {1}> { y = ReduceSum(x, a) }",
        "(int64[2,1] x) => (int64[2,1] y) { y = Identity(x) }",
    ),
    "an iteration less": (LOOP, "(float[2] x) => (float[2] y) { y = Add(x, x) }"),
    "a state of ones": (
        """(float[5,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float[?,?,?,?] y)
            <float[1,1,2] h = {1,0}> { y = LSTM<hidden_size = 2>(x, w, r, , , h) }""",
        """(float[5,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float[?,?,?,?] y) {
            y = LSTM<hidden_size = 2>(x, w, r) }""",
    ),
    "the first of a sequence": (
        f"{F} <int64 i = {{0}}> {{ n = Neg(x)  s = SequenceConstruct(x, n)"
        "  y = SequenceAt(s, i) }",
        f"{F} {{ y = Neg(x) }}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_is_proved(name: str) -> None:
    found = proof(*EQUAL[name])
    assert found.domain == "bits", found.reason


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_in_a_bit_is_not_proved_bit_for_bit(name: str) -> None:
    assert proof(*DIFFERENT[name]).domain != "bits"


def test_tensors_of_one_scale_have_one_number_for_it_and_for_the_zero_point() -> None:
    def of(scale: list[float], zero: list[int], dtype: int = onnx.TensorProto.UINT8) -> Dequantized:
        integers = free("integers", 2, dtype=dtype)
        return Dequantized(integers, np.array(scale, np.float32), np.array(zero), 0)

    one = of([0.5], [3])
    for other, is_same in (
        (of([0.5], [3]), True), (of([0.25], [3]), False), (of([0.5], [4]), False),
        (of([0.5], [3], onnx.TensorProto.INT8), False), (of([0.5, 0.5], [3]), False),
        (of([0.5], [3, 3]), False),
    ):  # fmt: skip
        assert one.is_scaled_as(other) == other.is_scaled_as(one) == is_same, other
    wide = of([0.5, 0.5], [3, 3])
    assert not wide.is_scaled_as(wide)


def test_integers_that_shapes_are_computed_from_are_named() -> None:
    found = proof(*EQUAL["a shape from outside"])
    assert dict(found.sizes[0]) == {"s(0)": 2, "s(1)": 3}


def test_sizes_that_data_decide_are_named() -> None:
    found = proof(*EQUAL["a size that data decide"])
    assert "data 0" in found.sizes[0]
