"""What differs between two models, as data: counted in words, and as plain data."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from tests.small import parsed
from tiered.extensions.differences.constant_pairing import TensorChange
from tiered.extensions.differences.model_difference import (
    PARTS,
    Difference,
    PlaceKind,
    PortChange,
    Renamed,
    Setting,
)
from tiered.extensions.differences.places import DifferingPlace, NodeChange
from tiered.pipeline.result import ModelStatistics

NODES = parsed("(float[2] x) => (float[2] y) { a = Relu(x)  b = Neg(a)  y = Abs(b) }").main.nodes
RELU, NEG, ABS = NODES
NOTHING = ModelStatistics(0, {}, 0, 0)
PORT = PortChange("input", "x", "", "float", "", "removed")
TENSOR = TensorChange("", ("renamed", "dtype"), "a", "b", "float[1]", "double[1]", 4, 8)
PLACE = DifferingPlace("", (RELU,), (NEG,), (NodeChange(RELU, NEG, ("attribute axis: 1 -> 2",)),))
RENAMED = Renamed("", "node", "a", "b")

EACH: dict[str, tuple[dict[str, Any], str]] = {
    "properties": ({"settings": (Setting("opset", "1", "2"),)}, "1 property"),
    "interface": ({"ports": (PORT, PORT)}, "2 inputs and outputs"),
    "functions": ({"functions": (("f", "added"),)}, "1 function"),
    "constants": ({"tensors": (TENSOR, TENSOR)}, "2 constants"),
    "nodes": ({"places": (PLACE,)}, "1 place in the graph"),
    "names": ({"renamed": (RENAMED,) * 3}, "3 names"),
    "texts": ({"texts": 2}, "2 texts of nodes"),
}


def difference(**more: Any) -> Difference:
    given: dict[str, Any] = {
        "files": ("one", "two"), "before": NOTHING, "after": NOTHING, "settings": (), "ports": (),
        "functions": (), "tensors": (), "places": (), "renamed": (), "texts": 0, "same_nodes": 0,
        "same_tensors": 0, "matchings": (),
    }  # fmt: skip
    return Difference(**{**given, **more})


def test_nothing_that_differs_is_the_same() -> None:
    found = difference(same_nodes=3)
    assert found.is_same
    assert found.differs_in() == ()
    assert str(found) == "one and two are the same"


@pytest.mark.parametrize("part", PARTS)
def test_each_part_counts_and_may_be_ignored(part: str) -> None:
    given, words = EACH[part]
    found = difference(**given)
    assert not found.is_same
    assert found.differs_in() == (words,)
    assert found.differs_in([part]) == ()
    assert found.differs_in([other for other in PARTS if other != part]) == (words,)
    assert str(found) == f"one and two differ in {words}"


def test_all_parts_are_in_one_order() -> None:
    everything: dict[str, Any] = {}
    for given, _ in EACH.values():
        everything.update(given)
    found = difference(**everything)
    assert list(found.differs_in()) == [words for _, words in EACH.values()]
    assert tuple(EACH) == PARTS


def test_operators_whose_number_differs() -> None:
    found = difference(
        before=ModelStatistics(0, {"Relu": 2, "Conv": 1, "Add": 1}, 0, 0),
        after=ModelStatistics(0, {"Relu": 1, "Conv": 1, "Mul": 4}, 0, 0),
    )
    assert found.operators == (("Relu", 2, 1), ("Add", 1, 0), ("Mul", 0, 4))


def test_places_that_look_alike_are_together_the_most_frequent_first() -> None:
    other = DifferingPlace("", (ABS,), (), ())
    found = difference(places=(other, PLACE, PLACE))
    assert found.kinds == (
        PlaceKind(*PLACE.kind, (PLACE, PLACE)),
        PlaceKind(*other.kind, (other,)),
    )
    assert (found.kinds[0].before, found.kinds[0].after) == ("Relu", "Neg")


def test_a_constant_may_be_of_several_kinds() -> None:
    removed = TensorChange("", ("removed",), "a", "", "float[1]", "", 4, 0)
    found = difference(tensors=(TENSOR, removed, removed))
    assert found.tensor_kinds == Counter(renamed=1, dtype=1, removed=2)


def test_the_data_are_plain() -> None:
    matching: Any = SimpleNamespace()
    found = difference(
        settings=(Setting("opset", "1", "2"),), ports=(PORT,), functions=(("f", "added"),),
        tensors=(TENSOR,), places=(PLACE,), renamed=(RENAMED,), texts=2, same_nodes=3,
        same_tensors=4, matchings=(matching,), before=ModelStatistics(1, {"Relu": 1}, 2, 3),
    ).to_dict()  # fmt: skip
    label = RELU.label, NEG.label
    assert found == {
        "files": ["one", "two"], "same": False,
        "differs_in": ["1 property", "1 input or output", "1 function", "1 constant",
                       "1 place in the graph", "1 name", "2 texts of nodes"],
        "before": {"nodes": 1, "operators": {"Relu": 1}, "parameters": 2, "nbytes": 3},
        "after": {"nodes": 0, "operators": {}, "parameters": 0, "nbytes": 0},
        "settings": [{"what": "opset", "before": "1", "after": "2"}],
        "interface": [{"kind": "input", "before": "x", "after": "", "type_before": "float",
                       "type_after": "", "note": "removed"}],
        "functions": [{"name": "f", "what": "added"}],
        "tensors": [{"graph": "", "what": ["renamed", "dtype"], "before": "a", "after": "b",
                     "type_before": "float[1]", "type_after": "double[1]", "bytes_before": 4,
                     "bytes_after": 8}],
        "places": [{"graph": "", "before": [{"name": label[0], "op_type": "Relu"}],
                    "after": [{"name": label[1], "op_type": "Neg"}],
                    "changes": [{"before": label[0], "after": label[1],
                                 "notes": ["attribute axis: 1 -> 2"]}]}],
        "renamed": [{"graph": "", "kind": "node", "before": "a", "after": "b"}],
        "texts": 2, "same_nodes": 3, "same_tensors": 4,
    }  # fmt: skip
