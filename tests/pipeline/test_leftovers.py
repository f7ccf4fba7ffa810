"""Shape operators that remain: the dims that keep them, and the options that fix these."""

import pytest

from tests.small import parsed
from tiered import Model
from tiered.pipeline.leftovers import (
    LONGEST,
    Leftover,
    fixing_hint,
    fixing_options,
    fixing_sizes,
    leftovers,
)

TWO = """(float[N,3] x, float[N,M] z, float[?,2] u) => (a, b, c, d) {
    a = Shape(x)  b = Size(z)  c = Shape(u)  e = Neg(z)  d = Shape(e) }"""


def found(text: str) -> list[tuple[str, tuple[tuple[str, int], ...], int, str]]:
    model = parsed(text)
    model.refresh_types()
    return [(each.dim, each.places, each.count, each.option) for each in leftovers(model)]


def test_dims_are_named_by_how_many_operators_need_them() -> None:
    assert found(TWO) == [
        ("N", (("x", 0), ("z", 0)), 3, "--dim N=1"),
        ("M", (("z", 1),), 2, "--dim M=1"),
        ("", (("u", 0),), 1, "--input-shape u:1,-1"),
    ]


def test_an_operand_counts_once_and_sizes_of_no_input_never() -> None:
    assert found("(float[N,N] x) => (a) { a = Shape(x) }") == [
        ("N", (("x", 0), ("x", 1)), 1, "--dim N=1")
    ]
    assert found("(float[2] x) => (a) { n = NonZero(x)  a = Shape(n) }") == []
    assert found("(float[N] x) => (a) { a = Neg(x) }") == []
    assert found("(float[] x) => (a) { a = Shape(x) }") == []
    assert [dim for dim, *_ in found("(float[Z,A] x) => (a) { a = Shape(x) }")] == ["A", "Z"]


def test_bodies_count_and_functions_do_not() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[N] x, bool k) => (y, z) { z = d.f(x)  y = If(k) <
        then_branch = t () => (p) { p = Shape(x) }, else_branch = e () => (q) { q = Size(x) }> }
    <domain: "d", opset_import: ["" : 21]> f (a) => (c) { c = Shape(a) }"""
    assert [count for _, _, count, _ in found(text)] == [2]


@pytest.mark.parametrize(
    ("places", "count", "text"),
    [
        ((("x", 0),), 1, "1 shape operator is left because 'N' (x[0]) is dynamic; "),
        (
            (("x", 0), ("z", 1)),
            2,
            "2 shape operators are left because 'N' (x[0], z[1]) is dynamic; ",
        ),
    ],
)
def test_a_line_names_the_places(
    places: tuple[tuple[str, int], ...], count: int, text: str
) -> None:
    line = str(Leftover("N", places, count, "--dim N=1"))
    assert line == f"{text}`--dim N=1` (any size) fixes it"


def test_a_long_line_names_as_many_places_as_fit() -> None:
    line = str(Leftover("", tuple((f"x{at}", at) for at in range(9)), 3, "--dim N=1"))
    assert line.startswith("3 shape operators are left because a dim without a name (x0[0]")
    assert " and 8 more)" in line
    assert len(line) <= LONGEST
    line = str(Leftover("N", (("a" * 8, 0), ("b" * 8, 1), ("c" * 9, 2)), 3, "--dim N=1"))
    assert " 'N' (aaaaaaaa[0], bbbbbbbb[1] and 1 more) is dynamic; " in line
    assert len(line) == LONGEST
    none = str(Leftover("N" * 80, (("x", 0),), 3, "--dim N=1"))
    assert "(x[0])" not in none


def _model(text: str) -> Model:
    model = parsed(text)
    model.refresh_types()
    return model


def test_all_dynamic_dims_have_a_size() -> None:
    model = _model(TWO)
    assert fixing_sizes(model) == ({"N": 1, "M": 1}, {"u": [1, 2]})
    assert fixing_options(model) == "--dim N=1 --dim M=1 --input-shape u:1,2"
    assert fixing_options(_model("(float[2] x) => (y) { y = Neg(x) }")) == ""
    assert fixing_sizes(_model("(float[N,?] x) => (y) { y = Neg(x) }"))[1] == {"x": [-1, 1]}


def test_a_hint_that_is_too_long_is_counted() -> None:
    start = "all dynamic dims at once: ``"
    fits = "--dim " + "N" * (LONGEST - len(start) - 6)
    assert fixing_hint(fits) == f"all dynamic dims at once: `{fits}`"
    more = f"{fits}N --dim M=1"
    assert fixing_hint(more).startswith(
        "2 options fix all dynamic dims at once; `tiered inspect -v`"
    )
    assert fixing_hint(more, whole=True) == f"all dynamic dims at once: `{more}`"
