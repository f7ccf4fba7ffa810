"""What a Slice or a Gather takes, and which operands of an elementwise operator it would cut."""

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered.rewriter.idioms import selection
from tiered.rewriter.idioms.selection import Selection, selection_of
from tiered.rewriter.skip import Skip


def selected(text: str) -> Selection | str:
    found = selection_of(made_by(parsed(text), "y"))
    return str(found) if isinstance(found, Skip) else found


@pytest.mark.parametrize(
    ("text", "axes", "drops", "share"),
    [
        ("<int64[2] i = {0,2}> { y = Gather<axis=-1>(x, i) }", (1,), False, 0.5),
        ("<int64 i = {1}> { y = Gather<axis=1>(x, i) }", (1,), True, 0.25),
        ("<int64[1] b = {1}, int64[1] e = {4}, int64[1] i = {1}> { y = Slice(x, b, e, i) }",
         (1,), False, 0.75),
        ("<int64[2] b = {0,0}, int64[2] e = {1,2}> { y = Slice(x, b, e) }", (0, 1), False, 0.25),
        ('<int64[1] b = {0}, int64[1] e = {2}, int64[1] s = {2}> { y = Slice(x, b, e, "", s) }',
         (0,), False, 0.5),
    ],
)  # fmt: skip
def test_axes_and_the_share_of_the_elements(
    text: str, axes: tuple[int, ...], drops: bool, share: float
) -> None:
    found = selected(f"(float[2,4] x) => (float y) {text}")
    assert isinstance(found, Selection)
    assert (found.axes, found.drops, found.share) == (axes, drops, share)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[2,4] x, int64[1] i) => (float y) { y = Gather(x, i) }", "not constant"),
        ("(float[2,4] x, int64[1] b) => (float y) <int64[1] e = {1}> { y = Slice(x, b, e) }",
         "not constant"),
        ("(float[4] x) => (float y) <int64[1,2] i = {0,1}> { y = Gather(x, i) }", "several dims"),
        ("(float[N] x) => (float y) <int64[2] i = {0,1}> { y = Gather(x, i) }", "not known"),
        ("(float[N] x) => (float y) <int64[1] b = {0}, int64[1] e = {-1}> { y = Slice(x, b, e) }",
         "how much it selects is not known"),
        ("(float[2] x) => (float y) <int64[3] i = {0,1,0}> { y = Gather(x, i) }", "no fewer"),
        ("(float[2] x) => (float y) <int64[2] i = {1,0}> { y = Gather(x, i) }", "no fewer"),
        ("(float[2] x) => (float y) <int64[1] b = {0}, int64[1] e = {2}> { y = Slice(x, b, e) }",
         "no fewer"),
        ("(float[] x) => (float[] y) <int64[1] i = {0}> { y = Gather(x, i) }",
         "the shape of what is selected from is not known"),
        ("(float[4,4] x) => (float[] y) <int64[1] b = {0}, int64[1] e = {2}, int64[0] n = {}> "
         "{ y = Slice(x, n, n, n) }", "no fewer"),
        ("(float[4] x, int64[K] i) => (float[K] y) { y = Gather(x, i) }", "not constant"),
        ("(float[4] x, int64[1] i) => (float[] y) <int64[1] b = {0}, int64[1] e = {2}> "
         "{ y = Slice(x, b, e, i) }", "not constant"),
        ("(float[4] x, int64[1] i) => (float[] y) <int64[1] b = {0}, int64[1] e = {2}> "
         '{ y = Slice(x, b, e, "", i) }', "not constant"),
    ],
)  # fmt: skip
def test_only_what_surely_takes_fewer_elements_selects(text: str, because: str) -> None:
    assert because in str(selected(text))


TAKES = """(float[2,4] x, float[2,4] same, float[4] row, float[2,1] column, float[1,1] one,
    float[2,N] open, float[K,2,4] wider,
    float[] unknown, float scalar) => (float[2,2] y)
    <int64[2] i = {0,1}, float[2,4] c = {1,2,3,4,5,6,7,8}> {
    s = Add(x, same)  y = Gather<axis=1>(s, i)
    a = Neg(row)  b = Neg(column)  d = Neg(one)  e = Neg(open)  f = Neg(wider)  g = Neg(c)
    h = Neg(unknown)  j = Neg(scalar) }"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("same", True), ("c", True), ("column", False), ("one", False)),
        *(("row", None), ("open", None), ("wider", None), ("unknown", None), ("scalar", False)),
    ],
)
def test_an_operand_with_the_axis_is_cut_and_one_that_broadcasts_there_stays(
    name: str, expected: bool | None
) -> None:
    model = parsed(TAKES)
    found = selection_of(made_by(model, "y"))
    assert isinstance(found, Selection)
    assert found.cuts(named(model, name)) is expected


def test_a_dim_of_1_is_in_the_way_where_the_axis_is_gone() -> None:
    model = parsed(TAKES.replace("int64[2] i = {0,1}", "int64 i = {1}").replace("2,2] y", "2] y"))
    found = selection_of(made_by(model, "y"))
    assert isinstance(found, Selection)
    names = ("same", "column", "one", "scalar", "row", "unknown")
    assert [found.cuts(named(model, name)) for name in names] == [
        True, None, None, False, None, None,
    ]  # fmt: skip


def test_large_constants_are_not_cut() -> None:
    model = parsed(
        "(float[2,40000] x) => (float[1,40000] y) <int64[1] i = {0}> { y = Gather(x, i) }"
    )
    constant = model.main.constant(np.ones((2, 40000), np.float32))
    found = selection_of(made_by(model, "y"))
    assert isinstance(found, Selection)
    assert found.cuts(constant) is None


def test_the_same_selection_of_another_tensor() -> None:
    model = parsed(TAKES)
    found = selection_of(made_by(model, "y"))
    assert isinstance(found, Selection)
    made = found.applied(model.main, named(model, "same")).producer
    assert made is not None
    assert made.op_type == "Gather"
    assert made.attr("axis") == 1
    assert [value and value.name for value in made.inputs] == ["same", "i"]


def test_a_constant_is_cut_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parsed(TAKES)
    found = selection_of(made_by(model, "y"))
    assert isinstance(found, Selection)
    for most, cuts in ((7, None), (8, True)):
        monkeypatch.setattr(selection, "_MOST", most)
        assert [found.cuts(named(model, name)) for name in ("c", "same")] == [cuts, True]
