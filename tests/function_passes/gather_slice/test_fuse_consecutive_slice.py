import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_slice"


def _model(shape: str, first: str, second: str) -> str:
    """Return two Slices; each is "axis@start:end:step"."""
    constants, calls = [], []
    for name, text in (("f", first), ("g", second)):
        axis, cut = text.split("@")
        start, end, step = cut.split(":")
        numbers = {"s": start, "e": end, "a": axis, "t": step}
        constants += [f"int64[1] {name}{key} = {{{number}}}" for key, number in numbers.items()]
        calls.append(f"{name}s, {name}e, {name}a, {name}t")
    dims = ",".join("ABC"[: shape.count(",") + 1])
    return (
        f"(float[{shape}] x) => (float[{dims}] y) <{', '.join(constants)}>"
        f" {{ h = Slice(x, {calls[0]})  y = Slice(h, {calls[1]}) }}"
    )


def test_two_axes_are_cut_beside_each_other() -> None:
    assert_rewrites(
        PASS,
        _model("N,6,M", "2@1:-1:1", "-2@-4:5:2"),
        "(float[N,6,M] x) => (float[A,B,C] y) <int64[2] s = {-4,1}, int64[2] e = {5,-1}, int64[2] a = {1,2}, int64[2] t = {2,1}>"
        " { y = Slice(x, s, e, a, t) }",
    )


def test_steps_and_axes_that_say_nothing_are_left_out() -> None:
    assert_rewrites(
        PASS,
        _model("5,6", "1@1:4:1", "0@2:9:1"),
        "(float[5,6] x) => (float[A,B] y) <int64[2] s = {2,1}, int64[2] e = {9,4}>"
        " { y = Slice(x, s, e) }",
    )


def test_old_opsets_have_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[5,6] x) => (float[A,B] y)"
        " { h = Slice<axes=[1], starts=[1], ends=[4]>(x)  y = Slice<axes=[0], starts=[2], ends=[9]>(h) }",
        "(float[5,6] x) => (float[A,B] y) { y = Slice<starts=[2,1], ends=[9,4]>(x) }",
        opset=9,
    )


@pytest.mark.parametrize(
    ("first", "second", "start", "end"),
    [
        ("1:8:1", "2:4:1", 3, 5),
        ("1:3:1", "1:9:1", 2, 3),
        ("2:9223372036854775807:1", "1:9223372036854775807:1", 3, 9223372036854775807),
        ("5:3:1", "1:2:1", 6, 3),
    ],
)
def test_one_axis_of_any_size_is_cut_as_by_both(
    first: str, second: str, start: int, end: int
) -> None:
    assert_rewrites(
        PASS,
        _model("N", f"0@{first}", f"0@{second}"),
        f"(float[N] x) => (float[A] y) <int64[1] s = {{{start}}}, int64[1] e = {{{end}}}>"
        " { y = Slice(x, s, e) }",
    )


@pytest.mark.parametrize(
    ("first", "second", "after"),
    [
        ("-7:-1:1", "1:-1:1", (4, 8, 1)),
        ("0:10:3", "1:4:2", (3, 12, 6)),
        ("0:10:2", "-1:-9999999999:-1", (8, -11, -2)),
        ("-1:-9999999999:-1", "0:3:1", (9, 6, -1)),
        ("8:2:1", "0:9:1", (0, 0, 1)),
        ("-99:-9999999999:-1", "0:3:1", (0, -11, -1)),
        ("2:8:1", "-9:-9999999999:-1", (2, 1, -1)),
    ],
)
def test_an_axis_of_known_size_is_cut_anyhow(
    first: str, second: str, after: tuple[int, int, int]
) -> None:
    start, end, step = after
    steps = "" if step == 1 else f", int64[1] t = {{{step}}}"
    assert_rewrites(
        PASS,
        _model("10", f"0@{first}", f"0@{second}"),
        f"(float[10] x) => (float[A] y) <int64[1] s = {{{start}}}, int64[1] e = {{{end}}}{steps}>"
        f" {{ y = Slice(x, s, e{', , t' if steps else ''}) }}",
    )


@pytest.mark.parametrize(
    ("first", "second"), [("0:-1:1", "0:2:1"), ("1:9:1", "-2:9:1"), ("0:9:2", "1:3:1")]
)
def test_a_size_that_counts_must_be_known(first: str, second: str) -> None:
    assert_unchanged(
        PASS,
        _model("N", f"0@{first}", f"0@{second}"),
        because="two cuts of one axis depend on its size",
    )


def test_backwards_to_int_max_is_read_in_two_ways() -> None:
    assert_unchanged(
        PASS,
        _model("4", "0@0:3:1", "0@-1:2147483647:-1"),
        because="two cuts of one axis depend on its size",
    )


def test_an_end_that_is_fed_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[5] x, float[N] z) => (float[A] y) <int64[1] s = {1}>"
        " { h = Slice(x, s, z)  y = Slice(h, s, z) }",
        because="an operand is not a constant",
    )


def test_an_axis_from_the_end_needs_the_rank() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, int64[K] r) => (float[A,B] y) <int64[1] s = {0}, int64[1] e = {2}, int64[1] a = {-1}>"
        " { w = Reshape(x, r)  h = Slice(w, s, e)  y = Slice(h, s, e, a) }",
        because="an axis counts from the end of an unknown rank",
    )


def test_an_intermediate_value_with_other_consumers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[5] x) => (float[A] z, float[B] y) <int64[1] s = {1}, int64[1] e = {4}>"
        " { h = Slice(x, s, e)  y = Slice(h, s, e)  z = Relu(h) }",
        because="an inner value has another user",
    )


def test_what_begins_beyond_any_size_takes_nothing() -> None:
    most = "9223372036854775807"
    assert_rewrites(
        PASS,
        _model("N,6,M", f"0@{most}:{most}:1", f"0@{most}:{most}:1"),
        f"(float[N,6,M] x) => (float[A,B,C] y) <int64[1] s = {{{most}}}, int64[1] e = {{{most}}}>"
        " { y = Slice(x, s, e) }",
    )
