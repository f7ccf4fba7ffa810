"""Each kind of edit is undone: the same objects, and the bytes of before."""

import pytest

from tests.graph.each_edit import EDITS
from tests.graph.editor import fresh, serialized, structure
from tiered.graph.core.edit import Edit
from tiered.graph.edits.undo import undo_table


def test_every_kind_of_edit_can_be_undone_and_is_tried() -> None:
    assert set(undo_table(fresh())) == set(Edit) == set(EDITS)


@pytest.mark.parametrize("has_dag", [True, False])
@pytest.mark.parametrize("kind", EDITS, ids=lambda kind: kind.name)
def test_an_undo_brings_back_the_same_objects_and_bytes(kind: Edit, has_dag: bool) -> None:
    model = fresh()
    if has_dag:
        assert all(graph.dag is not None for graph in model.graphs())
    model.refresh_types()
    values = {value: value.type for graph in model.graphs() for value in graph.values.values()}
    nodes = [node for graph in model.graphs() for node in graph.nodes]
    # The annotation itself is added by hand.
    before = None if kind is Edit.SET_ANNOTATIONS else serialized(model)
    EDITS[kind](model, model.main)
    assert kind in {entry[0] for entry in model.journal.entries}
    model.check_view()
    if kind is Edit.SET_ANNOTATIONS:
        annotated, _ = model.main.annotations[0]
        assert annotated[0] is not model.main.values["a"]
    model.undo_to(0)
    if kind is Edit.SET_ANNOTATIONS:
        annotated, _ = model.main.annotations[0]
        assert annotated[0] is model.main.values["a"]
        model.main.annotations.clear()
    else:
        assert serialized(model) == before
    model.check_view()
    assert [node for graph in model.graphs() for node in graph.nodes] == nodes
    again = {value: value.type for graph in model.graphs() for value in graph.values.values()}
    assert again == values
    assert structure(model) == structure(fresh())
