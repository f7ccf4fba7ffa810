import numpy as np
import pytest

from tiered.runtime import Session
from tiered.support.errors import RuntimeFailure
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_slice_with_gather"


def _before(x: str, y: str, start: int, end: int, axis: int = 0, squeezed: int = 0) -> str:
    return (
        f"(float[{x}] x) => (float[{y}] y) <int64[1] b = {{{start}}}, int64[1] e = {{{end}}},"
        f" int64[1] a = {{{axis}}}, int64[1] s = {{{squeezed}}}>"
        " { h = Slice(x, b, e, a)  y = Squeeze(h, s) }"
    )


@pytest.mark.parametrize(
    ("start", "end", "index"),
    [(1, 2, 1), (-1, 9223372036854775807, 2), (-2, -1, 1), (-9, 1, 0), (2, 2147483647, 2)],
)
def test_one_element_of_a_known_dim_is_gathered(start: int, end: int, index: int) -> None:
    assert_rewrites(
        PASS,
        _before("N,3", "N", start, end, axis=1, squeezed=-1),
        f"(float[N,3] x) => (float[N] y) <int64 i = {{{index}}}> {{ y = Gather<axis=1>(x, i) }}",
    )


@pytest.mark.parametrize(("start", "end"), [(0, 1), (-1, 2147483647), (-1, 9223372036854775807)])
def test_of_an_unknown_dim_the_end_follows_the_start(start: int, end: int) -> None:
    assert_rewrites(
        PASS,
        _before("N,3", "3", start, end),
        f"(float[N,3] x) => (float[3] y) <int64 i = {{{start}}}> {{ y = Gather<axis=0>(x, i) }}",
    )


def test_out_of_range_both_forms_fail() -> None:
    for text in (
        _before("N,3", "3", 4, 5),
        "(float[N,3] x) => (float[3] y) <int64 i = {4}> { y = Gather(x, i) }",
    ):
        session = Session(parse(text))
        with pytest.raises(RuntimeFailure):
            session.run({"x": np.zeros((2, 3), np.float32)})


def test_axes_and_steps_may_be_absent_or_1() -> None:
    after = "(float[3,N] x) => (float[N] y) <int64 i = {1}> { y = Gather<axis=0>(x, i) }"
    for more, operands in (
        ("", ""),
        (", a", "int64[1] a = {0}, "),
        (", a, o", "int64[1] a = {0}, int64[1] o = {1}, "),
    ):
        assert_rewrites(
            PASS,
            f"(float[3,N] x) => (float[N] y) <{operands}int64[1] b = {{1}}, int64[1] e = {{2}},"
            " int64[1] s = {0}>"
            f" {{ h = Slice(x, b, e{more})  y = Squeeze(h, s) }}",
            after,
        )


def test_old_opsets_have_attributes() -> None:
    text = (
        "(float[{0},3] x) => (float[3] y) {{ h = Slice<starts=[{1}], ends=[{2}], axes=[0]>(x)"
        "  y = Squeeze<axes=[0]>(h) }}"
    )
    assert_rewrites(
        PASS,
        text.format("N", 1, 2),
        "(float[N,3] x) => (float[3] y) <int64 i = {1}> { y = Gather<axis=0>(x, i) }",
        opset=9,
    )
    assert_unchanged(
        PASS,
        text.format("N", -1, 2147483647),
        because="before opset 11, no index is negative",
        opset=9,
    )


def test_an_open_end_of_an_unknown_dim_is_left_alone() -> None:
    for start, end in ((1, 2147483647), (0, 2), (-1, 0), (-2, 2147483647), (0, -1)):
        assert_unchanged(
            PASS,
            _before("N,3", "3", start, end),
            because="the number of elements is not known",
        )


def test_none_or_several_elements_still_fail() -> None:
    for start, end in ((0, 2), (3, 4), (1, 1)):
        assert_unchanged(
            PASS, _before("3,N", "N", start, end), because="it does not take one element"
        )


def test_another_axis_is_left_alone() -> None:
    assert_unchanged(PASS, _before("1,3", "1", 1, 2, axis=1), because="another axis is squeezed")


@pytest.mark.parametrize("starts", ["int64[2] b = {0,0}", "int64[1] b = {0}"])
def test_several_axes_are_left_alone(starts: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[3,3] x) => (float y) <{starts}, int64[2] e = {{1,1}}, int64[2] s = {{0,1}}>"
        " { h = Slice(x, b, e)  y = Squeeze(h, s) }",
        because="it cuts or squeezes several axes",
    )


def test_ends_of_several_axes_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[3,3] x) => (float y) <int64[1] b = {0}, int64[2] e = {1,1}, int64[1] s = {0}>"
        " { h = Slice(x, b, e)  y = Squeeze(h, s) }",
        because="it cuts or squeezes several axes",
    )


def test_steps_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x) => (float y) <int64[1] b = {0}, int64[1] e = {2}, int64[1] s = {0},"
        " int64[1] o = {2}> { h = Slice(x, b, e, s, o)  y = Squeeze(h, s) }",
        because="the step is not 1",
    )


def test_axes_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[3,3] x, int64[1] a) => (float[3] y) <int64[1] b = {0}, int64[1] e = {1},"
        " int64[1] s = {0}> { h = Slice(x, b, e, a)  y = Squeeze(h, s) }",
        because="axes or steps is not a constant",
    )


def test_a_slice_with_other_consumers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[3,3] x) => (float[3] y, float[1,3] z) <int64[1] b = {0}, int64[1] e = {1},"
        " int64[1] s = {0}> { h = Slice(x, b, e)  y = Squeeze(h, s)  z = Relu(h) }",
    )


def _reshaped(x: str, y: str, shape: str, bounds: str = "1,2,0") -> str:
    start, end, axis = bounds.split(",")
    return (
        f"(float[{x}] x) => (float[{y}] y) <int64[1] b = {{{start}}}, int64[1] e = {{{end}}},"
        f" int64[1] a = {{{axis}}}, int64[{shape.count(',') + 1}] s = {{{shape}}}>"
        " { h = Slice(x, b, e, a)  y = Reshape(h, s) }"
    )


def test_a_reshape_that_drops_the_axis_is_a_squeeze() -> None:
    assert_rewrites(
        PASS,
        _reshaped("3,4,5", "3,5", "3,5", "2,3,1"),
        "(float[3,4,5] x) => (float[3,5] y) <int64 i = {2}> { y = Gather<axis=1>(x, i) }",
    )


def test_a_reshape_that_does_more_is_left_alone() -> None:
    for x, shape in (("3,4,6", "6,4"), ("3,4,6", "24"), ("3,1,6", "1,6,1")):
        dims = ",".join("M" for _ in shape.split(","))
        assert_unchanged(
            PASS, _reshaped(x, dims, shape), because="the Reshape does more than to drop the axis"
        )


def test_a_reshape_of_an_unknown_dim_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[3,A] u, int64[R] k) => (float[M] y) <int64[1] b = {1}, int64[1] e = {2},"
        " int64[1] a = {0}, int64[1] s = {-1}>"
        " { x = Reshape(u, k)  h = Slice(x, b, e, a)  y = Reshape(h, s) }",
        because="the shape of x is not known",
    )
