import numpy as np
import pytest

from tiered import Model, get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "legalize_indices"


def test_constants_count_from_the_front() -> None:
    head = "(float[N,4] x) => (float[N,2] y)"
    assert_rewrites(
        PASS,
        f"{head} <int64[2] i = {{-1,0}}> {{ y = Gather<axis=1>(x, i) }}",
        f"{head} <int64[2] i = {{3,0}}> {{ y = Gather<axis=1>(x, i) }}",
    )


def test_elements_count_from_the_front() -> None:
    head = "(float[2,2] x) => (float[2,2] y)"
    assert_rewrites(
        PASS,
        f"{head} <int32[2,2] i = {{-1,0,-2,1}}> {{ y = GatherElements<axis=-1>(x, i) }}",
        f"{head} <int32[2,2] i = {{1,0,0,1}}> {{ y = GatherElements<axis=-1>(x, i) }}",
    )


def test_computed_indices_are_selected() -> None:
    head = "(float[4] x, int64[3] i) => (float[3] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = Gather(x, i) }}",
        f"{head} <int64 z = {{0}}, int64 d = {{4}}> "
        "{ l = Less(i, z) a = Add(i, d) w = Where(l, a, i) y = Gather(x, w) }",
    )


def test_all_indices_in_range() -> None:
    model = Model.from_proto(parse("(float[4] x, int64[8] i) => (float[8] y) { y = Gather(x, i) }"))
    get_pass(PASS).apply(model)
    x = np.arange(4, dtype=np.float32)
    found = run(model.to_proto(), {"x": x, "i": np.arange(-4, 4)})["y"]
    assert found.tolist() == x[np.arange(-4, 4)].tolist()


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[4] x) => (float[1] y) <int64[1] i = {1}> { y = Gather(x, i) }",
            "no index is negative",
        ),
        (
            "(float[N] x) => (float[1] y) <int64[1] i = {-1}> { y = Gather(x, i) }",
            "the dim or the dtype of the indices is not known",
        ),
        (
            "(float[4] x, int64[2] i) => (float[2] y) <int64 z = {0}, int64 d = {4}> "
            "{ l = Less(i, z) a = Add(i, d) w = Where(l, a, i) y = Gather(x, w) }",
            "the indices were made positive before",
        ),
        (
            "(float[4] x) => (float[1] y) <int64[1] i = {-5}> { y = Gather(x, i) }",
            "an index is out of range",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
