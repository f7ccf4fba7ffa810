import numpy as np
import pytest

from tiered import Model, get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "matmul_rotary_embedding"
R = "float[4,4] r = {0,0,1,0, 0,0,0,1, -1,0,0,0, 0,-1,0,0}"
SLICES = (
    "<int64[1] h = {2}, int64[1] end = {9223372036854775807}, int64[1] z = {0}, int64[1] a = {-1}> "
    "{ s = Slice(x, h, end, a) n = Neg(s) f = Slice(x, z, h, a) y = Concat<axis=-1>(n, f) }"
)


@pytest.mark.parametrize("shape", ["4", "N,4", "N,2,3,4"])
def test_two_slices_are_a_product(shape: str) -> None:
    head = f"(float[{shape}] x) => (float[{shape}] y)"
    assert_rewrites(PASS, f"{head} {SLICES}", f"{head} <{R}> {{ y = MatMul(x, r) }}")


def test_a_split_is_a_product() -> None:
    head = "(float[N,4] x) => (float[N,4] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ a, b = Split<axis=1, num_outputs=2>(x) n = Neg(b) y = Concat<axis=1>(n, a) }}",
        f"{head} <{R}> {{ y = MatMul(x, r) }}",
    )


def test_what_the_product_gets_wrong() -> None:
    """An Inf reaches other elements: it is for finite numbers only."""
    text = f"(float[4] x) => (float[4] y) {SLICES}"
    model = Model.from_proto(parse(text))
    get_pass(PASS).apply(model)
    x = {"x": np.array([1, 2, np.inf, 4], np.float32)}
    assert run(parse(text), x)["y"].tolist() == [-np.inf, -4, 1, 2]
    assert np.isnan(run(model.to_proto(), x)["y"]).any()


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (f"(float[N,M] x) => (float[N,K] y) {SLICES}", "the last dim is not known even"),
        (
            f"(float[N,6] x) => (float[N,6] y) {SLICES}",
            "the rotated parts are not halves",
        ),
        (f"(int32[N,4] x) => (int32[N,4] y) {SLICES}", "the dtype has no product"),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
