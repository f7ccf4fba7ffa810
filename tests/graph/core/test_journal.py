"""The journal: moments stay valid over undos, and edits name the nodes that they touch."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.editor import fresh
from tests.small import FOUR, made_by, model, named, parsed, proto
from tiered.graph import Graph, Model, Tensor, TensorType
from tiered.graph.core.journal import Snapshot, dirty_nodes
from tiered.graph.edits.content import exchange_content
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


EVERYTHING = """(float[2] x, bool p) => (float[2] y, float[2] r) <float[2] w = {1,2}, float[2] k = {1,2}> {
    a = Neg(x)  b = Add(a, w)  c = Mul(a, k)  y = Add(b, c)
    r = If(p) <then_branch = t () => (float[2] u) {
                   i = If(p) <then_branch = tt () => (float[2] h) { h = Neg(b) },
                              else_branch = te () => (float[2] g) { g = Abs(x) }>  u = Exp(i) },
               else_branch = e () => (float[2] v) { v = Abs(c) }>
    s, t2 = Split<num_outputs=2>(c)  d = Neg(s)  o = Exp(w) }"""
TENSOR = Tensor.of(np.ones(2, np.float32))
TOUCHES: dict[str, tuple[Callable[[Graph], object], str]] = {
    "add a node": (lambda g: g.add_node("Neg", (named(g, "a"),), ["new"]), "a new"),
    "remove a node": (lambda g: g.remove_node(made_by(g, "d")), "s"),
    "remove a node with bodies": (
        lambda g: (g.remove_output(named(g, "r")), g.remove_node(made_by(g, "r"))),
        "b c y",
    ),
    "set an input": (lambda g: g.set_input(made_by(g, "y"), 1, named(g, "x")), "c y"),
    "set an input of an input": (lambda g: g.set_input(made_by(g, "a"), 0, named(g, "w")), "a"),
    "leave an input out": (lambda g: g.set_input(made_by(g, "y"), 1, None), "c y"),
    "set an input that was left out": (
        lambda g: g.set_inputs(made_by(g, "y"), (named(g, "a"), None)),
        "a b c y",
    ),
    "set all inputs": (
        lambda g: g.set_inputs(made_by(g, "y"), (named(g, "a"), named(g, "x"))),
        "a b c y",
    ),
    "drop outputs": (lambda g: g.drop_outputs(made_by(g, "s"), [1]), "c s"),
    "set an attribute": (lambda g: g.set_attribute(made_by(g, "b"), "k", 1), "a b"),
    "set metadata": (lambda g: g.set_metadata(made_by(g, "b"), {"k": "1"}), "a b"),
    "rename a node": (lambda g: g.rename_node(made_by(g, "b"), "named"), "a b"),
    "rename a value": (lambda g: g.rename_value(named(g, "b"), "named"), ""),
    "add a constant": (lambda g: g.constant(TENSOR.numpy()), ""),
    "remove a constant": (
        lambda g: (
            g.set_input(made_by(g, "o"), 0, named(g, "x")),
            g.set_input(made_by(g, "b"), 1, named(g, "x")),
            g.remove_constant(named(g, "w")),
        ),
        "b o",
    ),
    "set a constant": (lambda g: g.set_constant(named(g, "w"), TENSOR), "b o"),
    "set a type": (lambda g: g.set_type(named(g, "b"), TensorType(1, None)), "b h y"),
    "set a type of an input": (lambda g: g.set_type(named(g, "s"), TensorType(1, None)), "d s"),
    "exchange outputs": (
        lambda g: g.exchange_outputs(made_by(g, "b"), 0, made_by(g, "c"), 0),
        "a b c",
    ),
    "exchange outputs of one node": (
        lambda g: g.exchange_outputs(made_by(g, "s"), 0, made_by(g, "s"), 1),
        "c t2",
    ),
    "fold": (lambda g: g.fold_to_initializer(made_by(g, "c"), 0, TENSOR), "a s v y"),
    "add an input": (lambda g: g.add_input("new", TensorType(1, (2,))), "a g i r"),
    "feed a constant": (lambda g: g.mark_input(named(g, "w")), "a b g i o r"),
    "remove an output": (lambda g: g.remove_output(named(g, "y")), "r y"),
    "add an output": (lambda g: g.add_output(named(g, "a")), "a r y"),
    "exchange an output": (lambda g: g.exchange_output(named(g, "y"), named(g, "b")), "b y"),
    "exchange an output of a body": (
        lambda g: (
            made_by(g, "r")
            .bodies[1]
            .exchange_output(made_by(g, "r").bodies[1].outputs[0], named(g, "b"))
        ),
        "b r v",
    ),
    "outputs of a body": (
        lambda g: (
            made_by(g, "r")
            .bodies[1]
            .set_graph_outputs([named(g, "b")], made_by(g, "r").bodies[1].output_infos)
        ),
        "b r v",
    ),
    "order": (lambda g: g.order_nodes([g.nodes[at] for at in (0, 2, 1, *range(3, len(g)))]), ""),
    "move a node": (
        lambda g: (body := made_by(g, "r").bodies[0]).move_node(made_by(body, "i"), g),
        "i",
    ),
    "move a constant": (
        lambda g: (
            g.set_input(made_by(g, "c"), 1, named(g, "x")),
            g.move_constant(named(g, "k"), made_by(g, "r").bodies[1]),
        ),
        "c",
    ),
}


def test_each_edit_touches_the_nodes_that_may_match_now() -> None:
    for name, (edit, expected) in TOUCHES.items():
        of = parsed(EVERYTHING)
        mark = of.mark()
        edit(of.main)
        assert " ".join(sorted(touched(of, mark))) == expected, name


def test_a_stamp_knows_what_was_undone_since() -> None:
    of = four()
    journal = of.journal
    for name in ("one", "two", "three"):
        rename(of, name)
    stamp = journal.stamp()
    of.undo_to(2)
    of.undo_to(1)
    assert journal._lows == [(2, 1)]
    rename(of, "four")
    rename(of, "five")
    of.undo_to(2)
    assert journal._lows == [(2, 1), (3, 2)]
    assert (journal.kept_since(stamp), journal.undos) == (1, 3)
    later = journal.stamp()
    assert (later.length, later.undos) == (2, 3)
    rename(of, "six")
    of.undo_to(2)
    assert not journal.moved_since(later)
    assert journal.moved_since(stamp)
    of.main.set_input(made_by(of, "y"), 0, named(of, "b"))
    assert sorted(journal.note_touched().values()) == [3, 3, 3]
    assert journal.note_touched() is journal._touched
    of.undo_to(0)
    assert sorted(journal._touched.values()) == [0, 0, 0]
    assert journal._noted == 0


def test_other_content_touches_all_nodes() -> None:
    of = fresh()
    exchange_content(of, fresh())
    found = dirty_nodes(of.journal.entries)
    assert found == [node for graph in of.graphs() for node in graph.nodes]


def test_moments_of_one_length_are_told_apart() -> None:
    of = four()
    journal = of.journal
    for name in ("one", "two"):
        rename(of, name)
    first = journal.stamp()
    of.undo_to(1)
    rename(of, "three")
    second = journal.stamp()
    assert first != second
    assert (journal.kept_since(first), journal.kept_since(second)) == (1, 2)
    for name in ("four", "five"):
        rename(of, name)
    of.undo_to(3)
    assert (journal.kept_since(first), journal.kept_since(second)) == (1, 2)
    assert [journal.moved_since(each) for each in (first, second)] == [True, True]


def test_nodes_that_were_touched_early_were_not_touched_by_an_undo() -> None:
    of = four()
    a, b, c, y = (made_by(of, name) for name in "abcy")
    of.main.set_attribute(y, "k", 1)
    of.journal.note_touched()
    of.main.set_attribute(c, "k", 1)
    of.main.set_attribute(b, "k", 1)
    of.journal.note_touched()
    of.undo_to(2)
    touched_at = of.journal.note_touched()
    assert touched_at == {y: 1, c: 2, b: 2, a: 2}
