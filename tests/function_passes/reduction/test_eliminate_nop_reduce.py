from importlib.metadata import version
from typing import Literal

import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_reduce"

# Before 1.30 onnxruntime reduced an empty tensor to one number also where nothing is reduced.
RUNTIME: Literal["onnxruntime", "none"] = (
    "onnxruntime" if int(version("onnxruntime").split(".")[1]) >= 30 else "none"
)


@pytest.mark.parametrize("kind", ["Max", "Mean", "Min", "Prod", "Sum"])
def test_no_axes_may_be_none(kind: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[N] x) => (float[N] y) {{ h = Reduce{kind}<noop_with_empty_axes=1>(x)  y = Exp(h) }}",
        "(float[N] x) => (float[N] y) { y = Exp(x) }",
        runtime=RUNTIME,
    )


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("Max", "float"),
        ("Min", "float16"),
        ("Prod", "float"),
        ("Sum", "int32"),
        ("Mean", "int32"),
        ("Max", "int8"),
    ],
)
def test_dims_of_1_hold_their_result(kind: str, dtype: str) -> None:
    assert_rewrites(
        PASS,
        f"({dtype}[N,1,3,1] x) => ({dtype}[N,1,3,1] y) <int64[2] a = {{1,-1}}, int64[4] s = {{0,1,3,1}}>"
        f" {{ h = Reduce{kind}(x, a)  y = Reshape(h, s) }}",
        f"({dtype}[N,1,3,1] x) => ({dtype}[N,1,3,1] y) <int64[4] s = {{0,1,3,1}}> {{ y = Reshape(x, s) }}",
    )


def test_dims_of_1_that_go_are_squeezed() -> None:
    assert_rewrites(
        PASS,
        "(float[N,1] x) => (float[N] y) <int64[1] a = {1}> { y = ReduceMax<keepdims=0>(x, a) }",
        "(float[N,1] x) => (float[N] y) <int64[1] a = {1}> { y = Squeeze(x, a) }",
    )
    assert_rewrites(
        PASS,
        "(float[N,1] x) => (float[N] y) { y = ReduceMax<axes=[1], keepdims=0>(x) }",
        "(float[N,1] x) => (float[N] y) { y = Squeeze<axes=[1]>(x) }",
        opset=11,
    )


def test_an_axis_from_the_end_is_squeezed_too() -> None:
    # onnxruntime gives an empty tensor that is reduced over negative axes a wrong shape.
    assert_rewrites(
        PASS,
        "(float[N,1] x) => (float[N] y) <int64[1] a = {-1}> { y = ReduceMax<keepdims=0>(x, a) }",
        "(float[N,1] x) => (float[N] y) <int64[1] a = {-1}> { y = Squeeze(x, a) }",
        runtime="reference",
    )


def test_all_of_a_single_element_is_the_element() -> None:
    assert_rewrites(
        PASS,
        "(float[1,1] x) => (float[1,1] y) { h = ReduceProd(x)  y = Exp(h) }",
        "(float[1,1] x) => (float[1,1] y) { y = Exp(x) }",
    )
    assert_rewrites(
        PASS,
        "(float x) => (float y) { h = ReduceMin<keepdims=0>(x)  y = Exp(h) }",
        "(float x) => (float y) { y = Exp(x) }",
    )


def test_a_sum_of_one_float_loses_the_sign_of_zero() -> None:
    for kind in ("Sum", "Mean"):
        assert_unchanged(
            PASS,
            f"(float[1,N] x) => (float[1,N] y) <int64[1] a = {{0}}> {{ y = Reduce{kind}(x, a) }}",
            because="single-element results may differ in this dtype",
        )


def test_large_integers_are_summed_in_floats() -> None:
    for kind in ("Sum", "Mean", "Prod"):
        assert_unchanged(
            PASS,
            f"(int64[1,N] x) => (int64[1,N] y) <int64[1] a = {{0}}> {{ y = Reduce{kind}(x, a) }}",
            because="single-element results may differ in this dtype",
        )


def test_more_than_one_element_is_reduced() -> None:
    for shape in ("2,3", "N,3"):
        assert_unchanged(
            PASS,
            f"(float[{shape}] x) => (float[1,3] y) <int64[1] a = {{0}}> {{ y = ReduceMax(x, a) }}",
            because="a reduced dim is not known to be 1",
        )


def test_what_computes_something_of_each_element_is_left_alone() -> None:
    for kind in ("L1", "L2", "LogSum", "LogSumExp", "SumSquare"):
        assert_unchanged(
            PASS,
            f"(float[1,3] x) => (float[1,3] y) <int64[1] a = {{0}}> {{ y = Reduce{kind}(x, a) }}",
        )


def test_axes_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1] x, int64[1] a) => (float[1,1] y) { y = ReduceMax(x, a) }",
        because="axes is not a constant",
    )


def test_an_unknown_rank_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, int64[K] s) => (float[A,B] y) { h = Reshape(x, s)  y = ReduceMax(h) }",
        because="the rank of x is not known",
    )


def test_axes_are_written_in_order() -> None:
    assert_rewrites(
        PASS,
        "(float[1,1] x) => (float y) { y = ReduceMax<axes=[1,0], keepdims=0>(x) }",
        "(float[1,1] x) => (float y) { y = Squeeze<axes=[0,1]>(x) }",
        opset=9,
    )
