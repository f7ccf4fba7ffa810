import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_split_concat"


def test_all_parts_side_by_side_are_what_was_split() -> None:
    assert_rewrites(
        PASS,
        "(float[N,6] x) => (float[N,6] y) <int64[2] s = {2,4}>"
        " { a, b = Split<axis=1>(x, s)  h = Concat<axis=-1>(a, b)  y = Relu(h) }",
        "(float[N,6] x) => (float[N,6] y) { y = Relu(x) }",
    )


def test_a_run_among_others_is_what_was_split() -> None:
    assert_rewrites(
        PASS,
        "(float[6] x, float[N] z) => (float[M] y, float[3] a)"
        " { a, b = Split<num_outputs=2>(x)  y = Concat<axis=0>(z, a, b, a) }",
        "(float[6] x, float[N] z) => (float[M] y, float[3] a)"
        " { a, b = Split<num_outputs=2>(x)  y = Concat<axis=0>(z, x, a) }",
    )


def test_old_opsets_have_the_sizes_as_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[4] x) => (float[4] y) { a, b = Split<split=[1,3]>(x)  h = Concat<axis=0>(a, b)  y = Relu(h) }",
        "(float[4] x) => (float[4] y) { y = Relu(x) }",
        opset=7,
    )


@pytest.mark.parametrize("parts", ["b, a, c", "a, b", "a, c", "b, c", "a, b, z"])
def test_what_is_not_all_in_order_is_left_alone(parts: str) -> None:
    assert_unchanged(
        PASS,
        "(float[6] x, float[2] z) => (float[M] y)"
        f" {{ a, b, c = Split<num_outputs=3>(x)  y = Concat<axis=0>({parts}) }}",
        because="no inputs are all outputs of one Split",
    )


def test_another_axis_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2,4] x) => (float[4,2] y) { a, b = Split<axis=1, num_outputs=2>(x)  y = Concat<axis=0>(a, b) }",
        because="no inputs are all outputs of one Split",
    )
