import pytest

from tiered import get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_concat_into_slice"
XZ = "(float[2,N] x, float[3,N] z) => "


@pytest.mark.parametrize(
    ("b", "e", "part", "start", "end"),
    [(0, 2, "x", 0, 2), (2, 4, "z", 0, 2), (-1, 9, "z", 2, 3), (1, -3, "x", 1, 2)],
)
def test_a_slice_of_one_part_reads_that_part(
    b: int, e: int, part: str, start: int, end: int
) -> None:
    assert_rewrites(
        PASS,
        XZ + f"(float[M,N] y) <int64[1] b = {{{b}}}, int64[1] e = {{{e}}}>"
        " { h = Concat<axis=0>(x, z)  y = Slice(h, b, e) }",
        XZ + f"(float[M,N] y) <int64[1] b = {{{start}}}, int64[1] e = {{{end}}},"
        f" int64[1] a = {{0}}> {{ y = Slice({part}, b, e, a) }}",
    )


@pytest.mark.parametrize(("i", "part", "index"), [(1, "x", 1), (2, "z", 0), (-1, "z", 2)])
def test_a_gather_of_one_part_reads_that_part(i: int, part: str, index: int) -> None:
    assert_rewrites(
        PASS,
        XZ + f"(float[N] y) <int64 i = {{{i}}}> {{ h = Concat<axis=0>(x, z)  y = Gather(h, i) }}",
        XZ + f"(float[N] y) <int64 i = {{{index}}}> {{ y = Gather({part}, i) }}",
    )


def test_a_concat_with_other_consumers_stays_beside_it() -> None:
    assert_rewrites(
        PASS,
        XZ + "(float[N] y, float[5,N] w) <int64 i = {0}>"
        " { h = Concat<axis=-2>(x, z)  y = Gather(h, i)  w = Relu(h) }",
        XZ + "(float[N] y, float[5,N] w) <int64 i = {0}>"
        " { h = Concat<axis=-2>(x, z)  y = Gather(x, i)  w = Relu(h) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[] x, float[] z) => (float[] y) <int64 i = {0}>"
         " { h = Concat<axis=0>(x, z)  y = Gather(h, i) }",
         "the rank is not known, or an axis is a parameter"),
        ("(float[N] x, float[3] z) => (float y) <int64 i = {0}>"
         " { h = Concat<axis=0>(x, z)  y = Gather(h, i) }", "the size of a part is not known"),
        ("(float[2] x, float[3] z, int64 i) => (float y)"
         " { h = Concat<axis=0>(x, z)  y = Gather(h, i) }", "an operand is not constant"),
        ("(float[2] x, float[3] z) => (float[2] y) <int64[2] i = {0,2}>"
         " { h = Concat<axis=0>(x, z)  y = Gather(h, i) }",
         "it takes elements of several parts, or none"),
        ("(float[2,4] x, float[3,4] z) => (float[5] y) <int64 i = {0}>"
         " { h = Concat<axis=0>(x, z)  y = Gather<axis=1>(h, i) }",
         "the Gather takes along another axis"),
        ("(float[2,4] x, float[3,4] z) => (float[5,1] y)"
         " <int64[1] b = {0}, int64[1] e = {1}, int64[1] a = {1}>"
         " { h = Concat<axis=0>(x, z)  y = Slice(h, b, e, a) }", "the Slice cuts another axis"),
        ("(float[2] x, float[3] z) => (float[1] y)"
         " <int64[1] b = {0}, int64[1] e = {2}, int64[1] a = {0}, int64[1] s = {2}>"
         " { h = Concat<axis=0>(x, z)  y = Slice(h, b, e, a, s) }",
         "it cuts several axes, or its step is not 1"),
        ("(float[2] x, float[3] z) => (float y) <int64 i = {5}>"
         " { h = Concat<axis=0>(x, z)  y = Gather(h, i) }", "an index is out of range"),
    ],
)  # fmt: skip
def test_others_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_a_slice_of_an_old_opset_has_attributes() -> None:
    text = """<ir_version: 8, opset_import: ["" : 7]>
        g (float[2,2] x, float[3,2] z) => (float[1,2] y)
        { h = Concat<axis=0>(x, z)  y = Slice<axes=[0], starts=[3], ends=[4]>(h) }"""
    made = get_pass(PASS)(parse(text))
    (node,) = made.graph.node
    assert (node.op_type, list(node.input)) == ("Slice", ["z"])
    assert {each.name: list(each.ints) for each in node.attribute} == {
        "axes": [0], "starts": [1], "ends": [2]
    }  # fmt: skip
