import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_slice_into_gather"


def _text(
    dims: str, y: str, cut: str, operands: str, i: str = "int64 i = {-1}", axis: int = 0
) -> str:
    return (
        f"(float[{dims}] x) => (float{y} y) <{cut}, {i}>"
        f" {{ h = Slice(x, {operands})  y = Gather<axis={axis}>(h, i) }}"
    )


CUT = "int64[1] b = {1}, int64[1] e = {3}"


@pytest.mark.parametrize(
    ("cut", "operands", "index"),
    [(CUT, "b, e", 2),
     ("int64[1] b = {3}, int64[1] e = {-9}, int64[1] a = {0}, int64[1] s = {-1}", "b, e, a, s", 0),
     ("int64[1] b = {0}, int64[1] e = {9}, int64[1] a = {-2}, int64[1] s = {2}", "b, e, a, s", 2)],
)  # fmt: skip
def test_the_index_is_one_of_x(cut: str, operands: str, index: int) -> None:
    assert_rewrites(
        PASS,
        _text("4,N", "[N]", cut, operands),
        f"(float[4,N] x) => (float[N] y) <int64 i = {{{index}}}> {{ y = Gather<axis=0>(x, i) }}",
    )


def test_a_gather_without_an_axis_takes_from_the_first_one() -> None:
    assert_rewrites(
        PASS,
        _text("4,N", "[N]", CUT, "b, e").replace("<axis=0>(h", "(h"),
        "(float[4,N] x) => (float[N] y) <int64 i = {2}> { y = Gather<axis=0>(x, i) }",
    )


def test_a_list_of_indices_is_one_of_x() -> None:
    assert_rewrites(
        PASS,
        _text("4,N", "[2,N]", CUT, "b, e", "int64[2] i = {1,0}"),
        "(float[4,N] x) => (float[2,N] y) <int64[2] i = {2,1}> { y = Gather<axis=0>(x, i) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[4] x, int64[1] a) => (float y) <int64[1] b = {1}, int64[1] e = {3}, int64 i = {0}>"
         " { h = Slice(x, b, e, a)  y = Gather(h, i) }", "axes or steps is not a constant"),
        (_text("4,4", "[2]", "int64[2] b = {1,1}, int64[2] e = {3,3}", "b, e"),
         "the Slice cuts several axes"),
        (_text("4,4", "[2]", CUT, "b, e", axis=1),
         "the Slice cuts another axis, or the rank is not known"),
        (_text("N,4", "[4]", CUT, "b, e"), "the size of the axis is not known"),
        (_text("4", "", "int64[1] b = {3}, int64[1] e = {9223372036854775807}, int64[1] a = {0},"
               " int64[1] s = {-1}", "b, e, a, s"), "runtimes read this end in different ways"),
        (_text("4", "", CUT, "b, e", "int64 i = {2}"), "an index is out of range"),
    ],
)  # fmt: skip
def test_others_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
