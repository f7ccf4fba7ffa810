"""The page of a difference: tables, and the places as the page of a run draws rewrites."""

import tiered
from tests.extensions.differences.test_model_diff import BASE, LAYERS, diff
from tests.support.pages.reader import read
from tiered.extensions.differences.difference_page import difference_page
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
