"""The sets of kinds of edits are what their names say, by what edits of each kind do."""

import pytest

from tests.graph.each_edit import EDITS
from tests.graph.editor import fresh
from tiered.graph import Model
from tiered.graph.core.edit import (
    INTERFACE_EDITS,
    KEEPS_OPERATORS,
    NODE_EDITS,
    OPERATOR_EDITS,
    RENAMES,
    Edit,
)
from tiered.graph.core.node import Node


def operators(model: Model) -> list[object]:
    return [sorted(node.callee for node in graph.nodes) for graph in model.graphs()]


@pytest.mark.parametrize("kind", EDITS, ids=lambda kind: kind.name)
def test_an_edit_is_logged_as_its_kind_and_is_in_the_right_sets(kind: Edit) -> None:
    model = fresh()
    before = operators(model)
    shown = model.main.inputs + model.main.outputs
    EDITS[kind](model, model.main)
    entry = model.journal.entries[-1]
    if kind not in {Edit.MOVE_NODE, Edit.SET_ANNOTATIONS}:  # which need others before
        assert len(model.journal.entries) == 1
    assert entry[0] is kind
    assert isinstance(entry[1], Node) is (kind in NODE_EDITS)
    if operators(model) != before and kind is not Edit.SET_ANNOTATIONS:
        assert kind in OPERATOR_EDITS
    if kind is not Edit.EXCHANGE_CONTENT and model.main.inputs + model.main.outputs != shown:
        assert kind in INTERFACE_EDITS
    assert (kind in OPERATOR_EDITS) is not (kind in KEEPS_OPERATORS)


def test_moves_and_changes_of_operators_may_change_the_operators_of_a_graph() -> None:
    assert {Edit.MOVE_NODE, Edit.SET_PROTO, Edit.EXCHANGE_CONTENT} <= OPERATOR_EDITS
    assert Edit.MOVE_NODE in NODE_EDITS
    assert {Edit.RENAME_NODE, Edit.RENAME_VALUE} == RENAMES
