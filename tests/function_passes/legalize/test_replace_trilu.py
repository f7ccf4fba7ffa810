import numpy as np
import pytest

from tiered import Model, get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_trilu"


def test_the_upper_triangle_is_selected() -> None:
    head = "(float[N,2,3] x) => (float[N,2,3] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = Trilu(x) }}",
        f"{head} <bool[2,3] m = {{0,0,0,1,0,0}}, float z = {{0}}> {{ y = Where(m, z, x) }}",
    )


def test_the_lower_triangle_of_a_diagonal_is_selected() -> None:
    head = "(int64[2,2] x) => (int64[2,2] y)"
    assert_rewrites(
        PASS,
        f"{head} <int64 k = {{-1}}> {{ y = Trilu<upper=0>(x, k) }}",
        f"{head} <bool[2,2] m = {{1,1,0,1}}, int64 z = {{0}}> {{ y = Where(m, z, x) }}",
    )


def test_booleans_are_masked_by_and() -> None:
    head = "(bool[2,3] x) => (bool[2,3] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = Trilu(x) }}",
        f"{head} <bool[2,3] m = {{1,1,1,0,1,1}}> {{ y = And(x, m) }}",
    )


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [-(2**40), -4, -1, 0, 1, 4, 2**40])
def test_every_diagonal(upper: int, k: int) -> None:
    text = (
        f"(float[3,4] x) => (float[3,4] y) <int64 k = {{{k}}}> {{ y = Trilu<upper={upper}>(x, k) }}"
    )
    model = Model.from_proto(parse(text))
    get_pass(PASS).apply(model)
    assert len(model.main.nodes_of("Where")) == 1
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    near = max(-5, min(5, k))
    expected = np.triu(x, near) if upper else np.tril(x, near)
    assert run(model.to_proto(), {"x": x})["y"].tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[N,3] x) => (float[N,3] y) { y = Trilu(x) }", "the last two dims are not numbers"),
        (
            "(float[2,3] x, int64 k) => (float[2,3] y) { y = Trilu(x, k) }",
            "the diagonal is not a constant",
        ),
        (
            "(float[2000,2000] x) => (float[2000,2000] y) { y = Trilu(x) }",
            "the mask would have 4000000 elements",
        ),
        ("(float[...] x) => (float[...] y) { y = Trilu(x) }", "the rank of x is not known"),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    if "..." in text:
        model = parse(text.replace("[...]", "[1,1]"))
        for info in (*model.graph.input, *model.graph.output):
            info.type.tensor_type.ClearField("shape")
        assert_unchanged(PASS, model, because=because)
    else:
        assert_unchanged(PASS, text, because=because)


def test_a_diagonal_that_is_two_numbers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x) => (float[2,3] y) <int64[2] a = {-1,-1}> { y = Trilu(x, a) }",
        because="the diagonal is not a constant",
    )
