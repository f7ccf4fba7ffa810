import numpy as np
import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_log_softmax"


@pytest.mark.parametrize("axis", [-1, 1])
def test_the_logarithm_of_a_softmax(axis: int) -> None:
    interface = "(float[N,3,4] x) => (float[N,3,4] y)"
    assert_rewrites(
        PASS,
        f"{interface} {{ t = Tanh(x) s = Softmax<axis={axis}>(t) y = Log(s) }}",
        f"{interface} {{ t = Tanh(x) y = LogSoftmax<axis={axis}>(t) }}",
    )


def test_old_opsets_flatten_alike() -> None:
    assert_rewrites(
        PASS,
        "(float[2,4] x) => (float[2,4] y) { t = Tanh(x) s = Softmax(t) y = Log(s) }",
        "(float[2,4] x) => (float[2,4] y) { t = Tanh(x) y = LogSoftmax<axis=1>(t) }",
        opset=11,
    )


def test_what_flattens_several_dims_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3,4] x) => (float[2,3,4] y) { s = Softmax(x) y = Log(s) }",
        opset=11,
    )


def test_a_softmax_that_others_see_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,4] x) => (float[2,4] y, float[2,4] s) { s = Softmax(x) y = Log(s) }",
        because="an inner value is a graph output",
    )


def _limits(dtype: str, bound: float) -> str:
    """Return constants `low` and `high`; ONNX text has half precision floats as their bits."""
    ends = (
        [-bound, bound]
        if dtype == "float"
        else np.array([-bound, bound], np.float16).view(np.uint16).tolist()
    )
    return f"<{dtype} low = {{{ends[0]}}}, {dtype} high = {{{ends[1]}}}>"


@pytest.mark.parametrize(
    ("dtype", "bound", "dim"), [("float", 42.0, "4"), ("float", 32.0, "N"), ("float16", 4.0, "4")]
)
def test_bounds_that_are_close_enough(dtype: str, bound: float, dim: str) -> None:
    interface = f"({dtype}[2,{dim}] x) => ({dtype}[2,{dim}] y)"
    limits = _limits(dtype, bound)
    assert_rewrites(
        PASS,
        f"{interface} {limits} {{ t = Clip(x, low, high) s = Softmax(t) y = Log(s) }}",
        f"{interface} {limits} {{ t = Clip(x, low, high) y = LogSoftmax<axis=-1>(t) }}",
    )


@pytest.mark.parametrize(
    ("dtype", "bound", "dim"), [("float", 44.0, "4"), ("float", 42.0, "N"), ("float16", 5.0, "4")]
)
def test_the_logarithm_of_what_may_be_zero_stays(dtype: str, bound: float, dim: str) -> None:
    interface = f"({dtype}[2,{dim}] x) => ({dtype}[2,{dim}] y)"
    limits = _limits(dtype, bound)
    assert_unchanged(
        PASS,
        f"{interface} {limits} {{ t = Clip(x, low, high) s = Softmax(t) y = Log(s) }}",
        because="the quotient may underflow",
    )
    assert_unchanged(
        PASS, f"{interface} {{ s = Softmax(x) y = Log(s) }}", because="the quotient may underflow"
    )
