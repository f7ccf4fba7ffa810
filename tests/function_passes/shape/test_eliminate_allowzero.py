"""ONNX forbids a 0 beside a -1 where allowzero is set; what follows from that, and what does not."""

import numpy as np
import pytest

from tiered import Model, get_pass
from tiered.runtime import run
from tiered.support.errors import RuntimeFailure
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "eliminate_allowzero"


STRICT = "<allowzero=1>"


def assert_dropped(text: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    """Assert what is left, and equal results for dims that are not empty."""
    assert_rewrites(PASS, text % before, text % after, runtime="none")
    rank = text.partition(")")[0].count(",") + 1
    feeds = {"x": np.arange(24, dtype=np.float32).reshape((4, 6) if rank == 2 else (2, 3, 4))}
    old, new = (run(parse(text % each), feeds) for each in (before, after))
    for name, array in old.items():
        np.testing.assert_array_equal(new[name], array, strict=True)


def test_beside_a_minus_one_no_size_is_zero() -> None:
    text = """(float[A,B] x) => (float[D,B] y) <int64[1] m = {-1}>
        { b = Shape<start=1>(x) t = Concat<axis=0>(m, b) y = Reshape%s(x, t) }"""
    assert_dropped(text, (STRICT,), ("",))


SPLIT = """(float[A,B,C] x) => (float[D,C] f, float[E,F,G] y) <int64[1] m = {-1}> {
    a = Shape<start=0,end=1>(x) b = Shape<start=1,end=2>(x) c = Shape<start=2>(x)
    t = Concat<axis=0>(m, c) f = Reshape%s(x, t)
    s = Concat<axis=0>(FIRST, b, c) y = Reshape%s(f, s)
}"""


def test_dims_that_are_in_no_size_beside_a_minus_one_may_be_empty() -> None:
    assert_dropped(SPLIT.replace("FIRST", "a"), (STRICT, STRICT), ("", STRICT))


def test_each_shape_with_a_minus_one_counts() -> None:
    assert_dropped(SPLIT.replace("FIRST", "m"), (STRICT, STRICT), ("", ""))


def test_a_product_beside_a_minus_one_proves_its_factors() -> None:
    text = """(float[A,B] x) => (float[D,E] f, float[A,B] y) <int64[1] m = {-1}> {
        a = Shape<start=0,end=1>(x) b = Shape<start=1>(x) p = Mul(a, b)
        t = Concat<axis=0>(p, m) f = Reshape%s(x, t)
        s = Concat<axis=0>(a, b) y = Reshape%s(f, s)
    }"""
    assert_dropped(text, (STRICT, STRICT), ("", ""))


@pytest.mark.parametrize(
    "sizes", ["int64[2] s", "int64[A] v", "float[2,B] z"], ids=["unknown", "rank", "dim"]
)
def test_a_size_that_may_be_zero_stays(sizes: str) -> None:
    shape = {
        "int64[2] s": "y = Reshape<allowzero=1>(x, s)",
        "int64[A] v": "y = Reshape<allowzero=1>(x, v)",
        "float[2,B] z": "s = Shape(z) y = Reshape<allowzero=1>(x, s)",
    }[sizes]
    assert_unchanged(
        PASS, f"(float[N] x, {sizes}) => (float[?,?] y) {{ {shape} }}", because="a size may be 0"
    )


def test_a_constant_zero_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[N,0] x) => (float[0,3] y) <int64[2] s = {0, 3}> { y = Reshape<allowzero=1>(x, s) }",
        because="a size may be 0",
    )


def test_empty_dims_that_onnx_forbids_fail_afterwards() -> None:
    """Why it is opt-in: onnxruntime runs what the standard forbids."""
    source = parse(
        """(float[A,B] x) => (float[D,B] y) <int64[1] m = {-1}>
        { b = Shape<start=1>(x) t = Concat<axis=0>(m, b) y = Reshape<allowzero=1>(x, t) }"""
    )
    model = Model.from_proto(source)
    get_pass(PASS).apply(model)
    feeds = {"x": np.zeros((3, 0), np.float32)}
    assert run(source, feeds)["y"].shape == (3, 0)
    with pytest.raises(RuntimeFailure):
        run(model.to_proto(), feeds)
