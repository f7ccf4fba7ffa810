"""Analyses: a result is kept through the edits that it survives, and no others."""

from collections.abc import Sequence

import pytest

from tests.graph.editor import fresh
from tiered.graph import Model
from tiered.graph.core.analysis import Analysis, analysis
from tiered.graph.core.edit import KEEPS_OPERATORS, RENAMES, Edit, Entry


class Counted(Analysis[int]):
    """The number of times that it was computed, and of those that it was renewed."""

    def __init__(self, *, renews: bool = False) -> None:
        self.computed = self.renewals = 0
        self.renews = renews
        self.edits: list[Edit] = []

    @property
    def survives(self) -> frozenset[Edit]:
        return RENAMES

    def __call__(self, model: Model) -> int:
        self.computed += 1
        return self.computed

    def renewed(self, model: Model, result: int, edits: Sequence[Entry]) -> int | None:
        self.renewals += 1
        self.edits = [entry[0] for entry in edits]
        return result + 10 if self.renews else None


def rename(model: Model) -> None:
    model.main.rename_node(model.main.nodes[0], "other")


def add(model: Model) -> None:
    model.main.add_node("Abs", (model.main.inputs[0],))


def test_a_result_survives_the_edits_that_are_named() -> None:
    model, counted = fresh(), Counted()
    assert [model.analysis(counted), model.analysis(counted)] == [1, 1]
    rename(model)
    assert model.analysis(counted) == 1
    assert counted.renewals == 0


def test_another_edit_is_followed_or_takes_a_new_run() -> None:
    for renews, expected in ((True, 11), (False, 2)):
        model, counted = fresh(), Counted(renews=renews)
        model.analysis(counted)
        rename(model)
        add(model)
        assert model.analysis(counted) == expected
        assert counted.edits == [Edit.ADD_NODE]
        assert model.analysis(counted) == expected
        assert counted.renewals == 1


def test_undoing_what_a_result_knows_of_takes_a_new_run() -> None:
    model, counted = fresh(), Counted(renews=True)
    add(model)
    model.analysis(counted)
    model.undo_to(0)
    add(model)
    assert model.analysis(counted) == 2
    assert counted.renewals == 0


def test_undoing_later_edits_does_not() -> None:
    model, counted = fresh(), Counted()
    model.analysis(counted)
    mark = model.mark()
    add(model)
    model.undo_to(mark)
    assert model.analysis(counted) == 1


def test_the_result_of_a_plain_function_survives_no_edit() -> None:
    model = fresh()

    def computed(_: Model) -> object:
        return object()

    first = model.analysis(computed)
    assert model.analysis(computed) is first
    rename(model)
    assert model.analysis(computed) is not first


@pytest.mark.parametrize("edit", [rename, add])
def test_a_decorated_function_is_an_analysis(edit: object) -> None:
    model, runs = fresh(), []

    @analysis(survives=KEEPS_OPERATORS)
    def operators(model: Model) -> list[str]:
        runs.append("run")
        return sorted(node.op_type for node in model.main.nodes)

    before = model.analysis(operators)
    assert callable(edit)
    edit(model)
    after = model.analysis(operators)
    assert after == operators(model)
    assert (after is before) == (edit is rename)
