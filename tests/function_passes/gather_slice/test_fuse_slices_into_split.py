import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_slices_into_split"

POINTS = "int64[1] zero = {0}, int64[1] two = {2}, int64[1] five = {5}, int64[1] six = {6}"
FIRST_POINTS = POINTS[: POINTS.index(", int64[1] six")]


@pytest.mark.parametrize("dtype", ["float", "int64", "bool", "float16"])
@pytest.mark.parametrize("axis", [1, -1])
def test_slices_side_by_side_are_a_split(dtype: str, axis: int) -> None:
    head = f"({dtype}[N,6] x) => ({dtype}[N,3] z, {dtype}[N,2] y, {dtype}[N,1] w)"
    assert_rewrites(
        PASS,
        f"{head} <{FIRST_POINTS}, int64[1] last = {{9223372036854775807}}, int64[1] ax = {{{axis}}}>"
        " { z = Slice(x, two, five, ax) y = Slice(x, zero, two, ax) w = Slice(x, five, last, ax) }",
        f"{head} <int64[3] p = {{2,3,1}}> {{ y, z, w = Split<axis=1>(x, p) }}",
    )


def test_places_may_count_from_the_end_and_slices_be_there_twice() -> None:
    head = "(float[6,2] x) => (float[2,2] y, float[2,2] z, float[4,2] w)"
    assert_rewrites(
        PASS,
        f"{head} <int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] six = {{6}}, int64[1] minus4 = {{-4}}, int64[1] minus9 = {{-9}}>"
        " { y = Slice(x, zero, two) a = Slice(x, minus9, minus4) z = Relu(a)"
        " w = Slice(x, minus4, six) }",
        f"{head} <int64[2] p = {{2,4}}> {{ y, w = Split(x, p) z = Relu(y) }}",
    )


def test_a_slice_across_the_others_stays() -> None:
    head = "(float[6] x) => (float[2] y, float[4] z, float[3] w)"
    assert_rewrites(
        PASS,
        f"{head} <{POINTS}>"
        " { y = Slice(x, zero, two) z = Slice(x, two, six) w = Slice(x, two, five) }",
        f"{head} <int64[2] p = {{2,4}}, int64[1] two = {{2}}, int64[1] five = {{5}}>"
        " { y, z = Split(x, p) w = Slice(x, two, five) }",
    )


def test_old_opsets_have_all_of_it_as_attributes() -> None:
    head = "(float[2,6] x) => (float[2,2] y, float[2,4] z)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = Slice<axes=[1], starts=[0], ends=[2]>(x)"
        " z = Slice<axes=[1], starts=[2], ends=[6]>(x) }",
        f"{head} {{ y, z = Split<axis=1, split=[2,4]>(x) }}",
        opset=9,
    )


@pytest.mark.parametrize(
    "nodes",
    [
        "y = Slice(x, zero, two) z = Slice(x, five, six)",
        "y = Slice(x, zero, five) z = Slice(x, two, six)",
        "y = Slice(x, zero, two) z = Slice(w, two, six)",
        "y = Slice(x, zero, two, zero) z = Slice(x, two, six, one)",
        "y = Slice(x, zero, six) z = Relu(w)",
    ],
)
def test_slices_that_are_not_all_of_an_axis_stay(nodes: str) -> None:
    constants = POINTS + (", int64[1] one = {1}" if "one" in nodes else "")
    assert_unchanged(
        PASS,
        f"(float[6,6] x, float[6,6] w) => (float[A,B] y, float[C,D] z) <{constants}> {{ {nodes} }}",
        because="no other slices cover the axis",
    )


@pytest.mark.parametrize(
    ("x", "nodes", "because"),
    [
        ("[6]", "y = Slice(x, zero, k) z = Slice(x, k, six)", "an operand is not a constant"),
        (
            "[6]",
            "y = Slice(x, zero, six, zero, two) z = Slice(x, zero, two)",
            "it cuts several axes, or in steps",
        ),
        (
            "[2,6]",
            "y = Slice(x, many, ends) z = Slice(x, two, six)",
            "it cuts several axes, or in steps",
        ),
        (
            "[2,6]",
            "y = Slice(x, zero, two, many) z = Slice(x, two, six)",
            "it cuts several axes, or in steps",
        ),
        (
            "[6]",
            "y = Slice(x, zero, many) z = Slice(x, two, six)",
            "it cuts several axes, or in steps",
        ),
        (
            "[N]",
            "y = Slice(x, zero, two) z = Slice(x, two, six)",
            "the size of the axis is not known",
        ),
        ("[6]", "y = Slice(x, two, two) z = Slice(x, zero, two)", "it selects no elements"),
    ],
)
def test_what_is_not_known_to_be_a_part_is_none(x: str, nodes: str, because: str) -> None:
    rank = "A,B" if "," in x else "A"
    assert_unchanged(
        PASS,
        f"(float{x} x, int64[1] k) => (float[{rank}] y, float[{rank}] z)"
        f" <{POINTS}, int64[2] many = {{0,0}}, int64[2] ends = {{2,2}}> {{ {nodes} }}",
        because=because,
    )


def test_function_parameters_are_unknown() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 9, "d" : 1]>'
        " g (float[6] x) => (float[3] y, float[3] z) { y, z = d.f<e=[3]>(x) }"
        ' <domain: "d", opset_import: ["" : 9]> f <e> (x) => (y, z) {'
        " y = Slice<starts=[0], ends: ints = @e>(x) z = Slice<starts=[3], ends=[6]>(x) }",
        because="an operand is not a constant",
    )


def test_issue_40_a_part_may_be_cut_again() -> None:
    points = "int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] eight = {8}"
    head = "(float[8] x) => (float[2] c, float[2] d, float[4] b, float[1] e, float[1] f)"
    assert_rewrites(
        PASS,
        f"{head} <{points}, int64[1] one = {{1}}>"
        " { a = Slice(x, zero, four) b = Slice(x, four, eight)"
        " c = Slice(a, zero, two) d = Slice(a, two, four)"
        " e = Slice(d, zero, one) f = Slice(d, one, two) }",
        f"{head} <int64[2] p = {{4,4}}, int64[2] q = {{2,2}}, int64[2] r = {{1,1}}>"
        " { a, b = Split(x, p) c, d = Split(a, q) e, f = Split(d, r) }",
    )
