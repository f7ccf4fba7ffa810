import numpy as np
import pytest

from tiered import optimize
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_consecutive_add"


def _model(nodes: str, constants: str, dtype: str = "float") -> str:
    return (
        f"({dtype}[N] x) => ({dtype}[N] y) <{constants.replace('D ', dtype + ' ')}> {{ {nodes} }}"
    )


@pytest.mark.parametrize("dtype", ["float", "double", "int64"])
@pytest.mark.parametrize(
    ("inner", "outer", "number", "after"),
    [
        ("Add(x, a)", "Add(h, b)", 8, "Add(x, c)"),
        ("Add(a, x)", "Add(b, h)", 8, "Add(x, c)"),
        ("Sub(x, a)", "Sub(h, b)", -8, "Add(x, c)"),
        ("Sub(x, a)", "Add(h, b)", 4, "Add(x, c)"),
        ("Add(x, a)", "Sub(h, b)", -4, "Add(x, c)"),
        ("Sub(a, x)", "Add(h, b)", 8, "Sub(c, x)"),
        ("Sub(a, x)", "Sub(h, b)", -4, "Sub(c, x)"),
        ("Add(x, a)", "Sub(b, h)", 4, "Sub(c, x)"),
        ("Sub(x, a)", "Sub(b, h)", 8, "Sub(c, x)"),
        ("Sub(a, x)", "Sub(b, h)", 4, "Add(x, c)"),
    ],
)
def test_two_constants_are_one(inner: str, outer: str, number: int, after: str, dtype: str) -> None:
    assert_rewrites(
        PASS,
        _model(f"h = {inner}  y = {outer}", "D a = {2}, D b = {6}", dtype),
        _model(f"y = {after}", f"D c = {{{number}}}", dtype),
    )


def test_constants_of_several_numbers_are_added_one_by_one() -> None:
    assert_rewrites(
        PASS,
        "(float[N,2] x) => (float[N,2] y) <float[2] a = {1,2}, float b = {5}>"
        " { h = Add(x, a)  y = Sub(b, h) }",
        "(float[N,2] x) => (float[N,2] y) <float[2] c = {4,3}> { y = Sub(c, x) }",
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [("1", "-1"), ("1e8", "1"), ("1", "1e-3"), ("5", "-4"), ("0", "1"), ("inf", "1"), ("nan", "1"),
     ("3e38", "3e38")],
)  # fmt: skip
def test_constants_that_cancel_or_vanish_stay(a: str, b: str) -> None:
    constants = f"D a = {{{a}}}, D b = {{{b}}}"
    assert_unchanged(
        PASS,
        _model("h = Add(x, a)  y = Add(h, b)", constants),
        because="a constant vanishes beside the other, or they cancel",
    )


def test_rounding_by_a_large_number_stays() -> None:
    text = _model("h = Add(x, a)  y = Sub(h, a)", "D a = {12582912}")
    feeds = {"x": np.array([0.3, 1.7, -2.2], np.float32)}
    assert run(optimize(parse(text), opt_level=3), feeds)["y"].tolist() == [0, 2, -2]


def test_integers_wrap() -> None:
    large = 2**63 - 1
    assert_rewrites(
        PASS,
        _model("h = Add(x, a)  y = Add(h, b)", f"D a = {{{large}}}, D b = {{1}}", "int64"),
        _model("y = Add(x, c)", f"D c = {{{-large - 1}}}", "int64"),
    )


def _of_sizes(size: int) -> str:
    ones = ",".join(["1"] * size)
    return (
        f"(float[2,{size}] x) => (float[2,{size}] y) <float[2,1] a = {{1,2}},"
        f" float[{size}] b = {{{ones}}}> {{ h = Add(x, a)  y = Add(h, b) }}"
    )


def test_together_they_are_not_larger() -> None:
    assert_unchanged(PASS, _of_sizes(3), because="together the constants are larger")


def test_large_constants_are_left_alone() -> None:
    assert_unchanged(PASS, _of_sizes(1025), because="a constant is large")


def test_constants_that_do_not_broadcast_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x) => (float[M] y) <float[2] a = {1,2}, float[3] b = {1,2,3}>"
        " { h = Add(x, a)  y = Add(h, b) }",
        because="the constants do not broadcast",
    )


def test_bfloat16_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        _model("h = Add(x, a)  y = Add(h, a)", "D a = {16256}", "bfloat16"),
        because="constants of the dtype are not added",
    )


def test_a_sum_with_other_consumers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x) => (float[N] y, float[N] h) <float a = {1}> { h = Add(x, a)  y = Add(h, a) }",
        because="an inner value is a graph output",
    )


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_unsigned_constants_are_subtracted_with_wrap(dtype: str) -> None:
    assert_rewrites(
        PASS,
        f"({dtype}[4] x) => ({dtype}[4] y) <{dtype} a = {{3}}, {dtype} b = {{5}}>"
        " { h = Add(x, a)  y = Sub(b, h) }",
        f"({dtype}[4] x) => ({dtype}[4] y) <{dtype} c = {{2}}> {{ y = Sub(c, x) }}",
    )
