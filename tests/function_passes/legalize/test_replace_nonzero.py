import numpy as np
import pytest

from tiered import Model, get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_nonzero"


def test_a_mask_of_two_has_its_places_by_topk() -> None:
    """No runtime: the option promises two elements, and feeds of a test have any number."""
    assert_rewrites(
        PASS,
        "(float[3] x) => (int64[1,2] y) { y = NonZero(x) }",
        "(float[3] x) => (int64[1,2] y) <float zero = {0}, int64[1] k = {2}, int64[1] axes = {0}>"
        " { e = Equal(x, zero) n = Not(e) c = Cast<to=1>(n) v, i = TopK(c, k)"
        " y = Unsqueeze(i, axes) }",
        runtime="none",
        count=2,
    )


@pytest.mark.parametrize(
    ("dtype", "numbers", "count"),
    [
        ("float", [0, -2, 0], 1),
        ("float", [-0.0, 0, np.nan], 1),
        ("int64", [0, 5, 0, -1], 2),
        ("bool", [True, False, True], 2),
    ],
)
def test_the_places_are_those_of_nonzero(dtype: str, numbers: list[float], count: int) -> None:
    size = len(numbers)
    text = f"({dtype}[{size}] x) => (int64[1,{count}] y) {{ y = NonZero(x) }}"
    model = Model.from_proto(parse(text))
    get_pass(PASS).with_options(count=count).apply(model)
    assert not model.main.nodes_of("NonZero")
    model.check()
    name = {"float": "float32"}.get(dtype, dtype)
    x = {"x": np.array(numbers).astype(name)}
    (before,), (after,) = run(parse(text), x).values(), run(model.to_proto(), x).values()
    assert (after.tolist(), after.dtype) == (before.tolist(), before.dtype)


@pytest.mark.parametrize(
    ("text", "count", "because"),
    [
        ("(float[2,2] x) => (int64[2,K] y) { y = NonZero(x) }", 1, "a vector of numbers"),
        ("(float[2] x) => (int64[1,K] y) { y = NonZero(x) }", 3, "a vector of 2 has no 3 elements"),
        ("(float[2] x) => (int64[1,K] y) { y = NonZero(x) }", 0, "a vector of 2 has no 0 elements"),
    ],
)
def test_it_stays(text: str, count: int, because: str) -> None:
    assert_unchanged(PASS, text, because=because, count=count)
