"""The journal: moments stay valid over undos, and edits name the nodes that they touch."""

import pytest

from tests.small import FOUR, made_by, model, named, proto
from tiered.graph import Model
from tiered.graph.core.journal import Snapshot, dirty_nodes
from tiered.support.errors import ModelError


def four() -> Model:
    return model(FOUR)


def rename(of: Model, name: str) -> None:
    of.main.rename_node(made_by(of, "a"), name)


def test_a_stamp_counts_the_edits_before_it_that_were_not_undone() -> None:
    of = four()
    journal = of.journal
    start = of.mark()
    rename(of, "one")
    middle = of.mark()
    rename(of, "two")
    stamp = journal.stamp()
    assert stamp.length == journal.kept_since(stamp)
    of.undo_to(middle)
    assert journal.kept_since(stamp) == middle
    rename(of, "three")
    rename(of, "four")
    assert journal.kept_since(stamp) == middle
    of.undo_to(start)
    assert journal.kept_since(stamp) == start
    later = journal.stamp()
    rename(of, "five")
    assert journal.kept_since(later) == later.length


def test_edits_that_were_undone_again_moved_nothing() -> None:
    of = four()
    stamp = of.journal.stamp()
    assert not of.journal.moved_since(stamp)
    rename(of, "one")
    assert of.journal.moved_since(stamp)
    of.undo_to(stamp.length)
    assert not of.journal.moved_since(stamp)
    rename(of, "two")
    second = of.journal.stamp()
    of.undo_to(stamp.length)
    rename(of, "three")
    assert len(of.journal) == second.length
    assert of.journal.moved_since(second)


def test_the_same_moment_is_the_same_stamp() -> None:
    of = four()
    assert of.journal.stamp() is of.journal.stamp()


def test_undoing_nothing_is_no_undo() -> None:
    of = four()
    undos = of.journal.undos
    of.undo_to(of.mark())
    assert of.journal.undos == undos


def test_a_snapshot_is_restored_unless_edits_before_it_were_undone() -> None:
    of = four()
    start = of.mark()
    rename(of, "one")
    snapshot = of.snapshot()
    assert isinstance(snapshot, Snapshot)
    rename(of, "two")
    snapshot.restore()
    assert made_by(of, "a").name == "one"
    of.undo_to(start)
    rename(of, "three")
    with pytest.raises(ModelError, match="edits before it were undone"):
        snapshot.restore()
    assert made_by(of, "a").name == "three"


def touched(of: Model, mark: int) -> set[str]:
    return {node.output.name for node in dirty_nodes(of.journal.since(mark))}


def test_another_operand_touches_the_node_and_both_producers() -> None:
    of = four()
    mark = of.mark()
    of.main.set_input(made_by(of, "y"), 0, named(of, "a"))
    assert touched(of, mark) == {"y", "c", "a"}


def test_a_removed_node_touches_the_producers_of_its_operands() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  b = Abs(a)  y = Neg(a) }")
    mark = of.mark()
    of.main.remove_node(made_by(of, "b"))
    assert touched(of, mark) == {"a"}


def test_a_removed_node_touches_what_its_bodies_read() -> None:
    of = model(
        """g (float[2] x, bool p) => (float[2] y) { a = Neg(x)  y = Abs(a)
        r = If(p) <then_branch = t () => (float[2] u) { u = Neg(a) },
                   else_branch = e () => (float[2] v) { v = Neg(x) }> }"""
    )
    mark = of.mark()
    of.main.remove_node(made_by(of, "r"))
    assert touched(of, mark) == {"a"}


def test_another_output_touches_both_producers() -> None:
    of = four()
    mark = of.mark()
    of.main.set_graph_outputs([named(of, "b")], of.main.output_infos)
    assert touched(of, mark) == {"y", "b"}


def test_nodes_in_a_removed_body_are_not_among_them() -> None:
    of = model(
        """g (float[2] x, bool p) => (float[2] y) { y = Abs(x)
        r = If(p) <then_branch = t () => (float[2] u) { u = Neg(x) },
                   else_branch = e () => (float[2] v) { v = Neg(x) }> }"""
    )
    mark = of.mark()
    node = made_by(of, "r")
    inner = node.bodies[0].nodes[0]
    node.bodies[0].rename_node(inner, "other")
    assert dirty_nodes(of.journal.since(mark)) == [inner]
    of.main.remove_node(node)
    assert dirty_nodes(of.journal.since(mark)) == []


def test_a_node_was_touched_last_when_it_was_edited_last() -> None:
    of = four()
    of.main.set_input(made_by(of, "y"), 0, named(of, "b"))
    first = dict(of.journal.note_touched())
    assert first[made_by(of, "y")] == len(of.journal)
    rename(of, "another")
    assert dict(of.journal.note_touched()) == first
    mark = of.mark()
    of.main.set_input(made_by(of, "b"), 0, named(of, "x"))
    second = dict(of.journal.note_touched())
    assert second[made_by(of, "b")] == len(of.journal) > second[made_by(of, "y")]
    of.undo_to(mark)
    assert of.journal.note_touched()[made_by(of, "b")] == mark


def test_dropped_edits_cannot_be_undone() -> None:
    of = Model.from_proto(proto(FOUR))
    rename(of, "one")
    of.journal.clear()
    assert len(of.journal) == 0
    of.undo_to(0)
    assert made_by(of, "a").name == "one"
