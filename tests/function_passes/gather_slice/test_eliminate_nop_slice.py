import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_slice"


@pytest.mark.parametrize(
    ("shape", "starts", "ends"),
    [
        ("4", "0", "4"),
        ("4", "0", "9"),
        ("4", "-4", "4"),
        ("4", "-9", "2147483647"),
        ("N", "0", "9223372036854775807"),
        ("N", "0", "2147483647"),
        ("0", "0", "5"),
    ],
)
def test_all_of_an_axis_is_the_tensor(shape: str, starts: str, ends: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[{shape}] x) => (float[{shape}] y) <int64[1] s = {{{starts}}}, int64[1] e = {{{ends}}}>"
        " { h = Slice(x, s, e)  y = Relu(h) }",
        f"(float[{shape}] x) => (float[{shape}] y) {{ y = Relu(x) }}",
    )


def test_the_axes_are_those_named() -> None:
    assert_rewrites(
        PASS,
        "(float[2,N,4] x) => (float[2,N,4] y) <int32[2] s = {0,0}, int32[2] e = {4,2}, int32[2] a = {-1,0}, int32[2] t = {1,1}>"
        " { h = Slice(x, s, e, a, t)  y = Relu(h) }",
        "(float[2,N,4] x) => (float[2,N,4] y) { y = Relu(x) }",
    )


def test_old_opsets_have_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[2,4] x) => (float[2,4] y) { h = Slice<axes=[1], starts=[0], ends=[4]>(x)  y = Relu(h) }",
        "(float[2,4] x) => (float[2,4] y) { y = Relu(x) }",
        opset=9,
    )


@pytest.mark.parametrize(
    ("shape", "starts", "ends", "because"),
    [
        ("4", "1", "4", "it may not start at the front"),
        ("4", "-3", "4", "it may not start at the front"),
        ("N", "-4", "9223372036854775807", "it may not start at the front"),
        ("4", "0", "3", "it may not reach the end"),
        ("4", "0", "-1", "it may not reach the end"),
        ("N", "0", "1000000", "it may not reach the end"),
    ],
)
def test_what_may_take_less_is_left_alone(shape: str, starts: str, ends: str, because: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[{shape}] x) => (float[M] y) <int64[1] s = {{{starts}}}, int64[1] e = {{{ends}}}>"
        " { y = Slice(x, s, e) }",
        because=because,
    )


def test_another_step_takes_less_or_turns_around() -> None:
    for step in (2, -1):
        assert_unchanged(
            PASS,
            f"(float[4] x) => (float[M] y) <int64[1] s = {{0}}, int64[1] e = {{4}}, int64[1] t = {{{step}}}>"
            " { y = Slice(x, s, e, s, t) }",
            because="a step is not 1",
        )


def test_operands_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[4] x, int64[1] e) => (float[M] y) <int64[1] s = {0}> { y = Slice(x, s, e) }",
        because="starts or ends is not a constant",
    )
    assert_unchanged(
        PASS,
        "(float[4] x, int64[1] a) => (float[M] y) <int64[1] s = {0}, int64[1] e = {4}> { y = Slice(x, s, e, a) }",
        because="axes or steps is not a constant",
    )


def test_a_slice_that_no_runtime_takes_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[N] y) <int64[1] starts = {0}, int64[2] ends = {9,9}, int64[1] axes = {0}>"
        " { y = Slice(x, starts, ends, axes) }",
        because="starts, ends and axes differ in number",
    )
