"""The page of a difference: tables, and the places as the page of a run draws rewrites."""

import pytest

import tiered
from tests.extensions.differences.test_model_diff import BASE, LAYERS, diff
from tests.support.pages.reader import read
from tiered.extensions.differences.difference_page import difference_page, table_rows
from tiered.testing import parse


def test_each_place_is_drawn_before_and_after() -> None:
    found = tiered.diff(parse(LAYERS), tiered.optimize(parse(LAYERS), opt_level=3))
    page = read(difference_page(found))
    data = page.data
    assert data["total"] == len(data["rewrites"]) == len(found.places)
    row, strings = data["rewrites"][0], data["strings"]
    assert strings[row[1]] == "Conv, BatchNormalization → Conv"
    before, after = (
        {strings[data["states"][item[1]][1]] for item in items if item[0] == 2}
        for items in (row[6], row[7])
    )
    assert (before, after) == ({"Conv", "BatchNormalization"}, {"Conv"})
    near = {strings[data["states"][item[1]][1]] for item in row[7] if item[0] == 0}
    assert near == {"Relu"}  # What stays is on both sides, under one number.
    for title in ("Summary", "Operators", "Constants", "Nodes", "Places"):
        assert title.lower() in page.ids


def test_a_node_of_both_models_is_changed_and_keeps_its_number() -> None:
    page = read(difference_page(diff(BASE, BASE.replace("axis=1", "axis=0"))))
    ((row),) = page.data["rewrites"]
    changed = [[item for item in items if item[0] == 1] for items in (row[6], row[7])]
    assert changed[0] == changed[1] != []
    assert page.data["strings"][row[2]] == "attribute axis: 1 -> 0"


def test_the_words_are_those_of_a_difference() -> None:
    page = read(difference_page(diff(BASE, BASE.replace("axis=1", "axis=0"))))
    assert page.data["words"]["unit"] == "place"
    assert "Search by node or operator" in page.text
    assert "rewrite" not in page.text


def test_models_that_are_the_same_have_a_page() -> None:
    assert "No node differs." in read(difference_page(diff(BASE, BASE))).text


def test_the_same_models_make_the_same_bytes() -> None:
    pages = [
        difference_page(tiered.diff(parse(LAYERS), tiered.optimize(parse(LAYERS), opt_level=3)))
        for _ in range(2)
    ]
    assert pages[0] == pages[1]


RICH = """(float[n,4] x, bool c) => (float[n,4] y, float[n,4] extra) <float[4,4] w = {NUMBERS},
    float[4] k = {1,2,3,4}, float[4] old = {1,1,1,1}> {
    [product] p = MatMul(x, w)  [sum] s = Add(p, k)  [cut] r = Relu(s)  [more] q = Mul(r, old)
    [extra] extra = Neg(q)  [soft] y = If(c) <
        then_branch = t () => (float[n,4] a) { [b1] a = Neg(q) },
        else_branch = e () => (float[n,4] b) { [b2] b = Exp(q) }> }""".replace(
    "NUMBERS", ",".join(map(str, range(16)))
)
OTHER = (
    RICH.replace(", float[4] old = {1,1,1,1}", "").replace("3,4}", "3,5}")
    .replace(" w ", " weight ").replace("x, w)", "x, weight)")
    .replace("[cut] r", "[cut2] r2").replace("extra =", "other =")
    .replace("] extra)", "] other)").replace("[more] q = Mul(r, old)", "[gone] q = Sigmoid(r2)")
    .replace("[b1] a = Neg", "[b1] a = Abs")
)  # fmt: skip


def test_a_page_as_a_whole() -> None:
    page = read(difference_page(diff(RICH, OTHER)))
    assert page.text.partition("Summary The models ")[2] == (
        "before before after after they differ in 1 input or output, 3 constants, 2 places in the "
        "graph, 3 names nodes in both 6 constants in both 0 "
        "Interface Interface name new name type before type after "
        "output extra other float[n,4] float[n,4] "
        "Operators Operators operator before after change Neg 2 1 -1 (-50%) Mul 1 0 -1 (-100%) "
        "Abs 0 1 +1 Sigmoid 0 1 +1 parameters 24 20 -4 (-17%) bytes 505 488 -17 (-3%) "
        "Nodes Nodes places before after first at 1 Mul Sigmoid more 1 Neg Abs b1 "
        "Places The list of places and the diagrams need JavaScript. Show more Node Close Nodes "
        "Constants Constants: 1 removed, 1 renamed, 1 with other values name new name type before "
        "type after "
        "renamed w weight float[4,4] float[4,4] values k float[4] float[4] removed old float[4] "
        "Names Names before after node cut cut2 value r r2 value extra other"
    )
    data = page.data
    assert data["strings"] == [
        "Mul", "more", "r", "old", "q", "Relu", "cut", "s", "Neg", "extra", "Sigmoid", "gone",
        "Mul → Sigmoid", "", "float[n,4]", "float[4] const", "b1", "a", "Abs", "Neg → Abs",
        "soft.then_branch",
    ]  # fmt: skip
    assert data["types"] == {"17": 14, "2": 14, "3": 15, "4": 14}
    body = (1 << 32) + 35
    assert data["states"] == [
        [24, 0, 1, [2, 3], [4]], [20, 5, 6, [7], [2]], [28, 8, 9, [4], [9]],
        [23, 10, 11, [2], [4]], [body + 1, 8, 16, [4], [17]], [body, 18, 16, [4], [17]],
    ]  # fmt: skip
    assert data["rewrites"] == [
        [1, 12, 13, 13, 1, 0, [[2, 0, 1, 0], [0, 1, 0, 0], [0, 2, 2, 0], [3, 3, 0, 1]],
         [[2, 3, 1, 0], [0, 1, 0, 0], [0, 2, 2, 0]], 0, {}, [], []],
        [2, 19, 13, 20, 16, 0, [[2, 4, 1, 0], [3, 4, 0, 0], [3, 17, 2, 0]],
         [[2, 5, 1, 0], [3, 4, 0, 0], [3, 17, 2, 0]], 0, {}, [], []],
    ]  # fmt: skip


def test_the_first_rows_of_a_long_table_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.extensions.differences.difference_page.MOST_ROWS", 2)
    page = read(difference_page(diff(RICH, OTHER)))
    assert page.text.count("The first 2 of 3 rows are shown.") == 2
    assert page.text.endswith("before after node cut cut2 value r r2")


def test_models_of_which_nothing_or_only_bytes_differ_have_tables() -> None:
    same = "(float[2] x) => (float[2] y) { y = Neg(x) }"
    assert [*table_rows(diff(same, same))] == []
    longer = diff(same, same.replace("y =", "[a] y ="))
    assert [each.title for each in table_rows(longer)] == ["Operators", "Names"]
    lost = diff(
        "(float[2] x) => (float[2] y) <float[2] w = {1,2}, float[4] v = {1,2,3,4}> "
        "{ y = own.Op(x, w, v) }",
        "(float[2] x) => (float[2] y) <float[2] k = {5,6}, float[4] v = {1,2,3,5}> "
        "{ y = own.Op(x, k, v) }",
    )
    rows = next(each for each in table_rows(lost) if each.title.startswith("Constants"))
    assert (rows.title, [tuple(row[:2]) for row in rows.rows]) == (
        "Constants: 1 added, 1 removed, 1 with other values",
        [("values", "v"), ("removed", "w"), ("added", "k")],
    )


def test_absent_operands_and_outputs_are_empty_names_on_the_page() -> None:
    text = '(float[4] x) => (float[4] y) {{ a, "", b = own.{}(x, "", x)  y = Add(a, b) }}'
    data = read(difference_page(diff(text.format("F"), text.format("G")))).data
    strings = data["strings"]
    (row,) = data["rewrites"]
    assert strings[row[1]] == "own::F → own::G"
    states = [data["states"][item[1]] for items in (row[6], row[7]) for item in items
              if item[0] == 2]  # fmt: skip
    named = [
        [strings[at] if at >= 0 else "" for at in part] for each in states for part in each[3:5]
    ]
    assert named == [["x", "", "x"], ["a", "", "b"]] * 2
