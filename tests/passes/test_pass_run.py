"""One run of one pass: what it notes, and what is left of that when nodes are removed."""

import pytest

from tests.small import fuse_relu, look, made_by, model, named
from tiered import Skip
from tiered.passes.interface.pass_info import NodeNote, Place
from tiered.passes.pass_run import Memory, PassRun, memory_of
from tiered.rewriter import Unable
from tiered.support.errors import UsageError


def run() -> PassRun:
    return PassRun(fuse_relu, Place())


def test_a_run_without_notes_has_none() -> None:
    assert run().notes() == {}


def test_nodes_that_are_gone_were_not_missed() -> None:
    of, made = model(), run()
    first, last = made_by(of, "a"), made_by(of, "y")
    made.missed(first, Skip("{} is first", "a"))
    made.missed(last, Skip("{} is last", "y"))
    assert [note.reason for note in made.notes()["missed"]] == ["a is first", "y is last"]
    assert [(note.op_type, note.label) for note in made.notes()["missed"]] == [
        ("Relu", first.label), ("Abs", last.label),
    ]  # fmt: skip
    of.main.replace(last, [named(of, "c")])
    assert [note.reason for note in made.notes()["missed"]] == ["a is first"]
    made.missed(first, Skip("again"))
    assert [note.reason for note in made.notes()["missed"]] == ["again"]


def test_a_rewrite_that_was_undone_is_missed_at_its_node() -> None:
    of, made = model(), run()
    made.marked(made_by(of, "a"), "at a node")
    made.marked(named(of, "y"), "at what a node computes")
    made.marked(named(of, "x"), "at an input")
    assert [(note.op_type, note.reason) for note in made.notes()["missed"]] == [
        ("Relu", "at a node"), ("Abs", "at what a node computes"), ("", "at an input"),
    ]  # fmt: skip


def test_notes_are_told_apart_by_their_kind() -> None:
    made = run()
    made.note("found", "something")
    made.note("missed", Skip("nothing"))
    made.applied.append(("a", "Relu(Relu(x)) => Relu(x)"))
    notes = made.notes()
    assert list(notes) == ["missed", "found", "applied"]
    assert [note.reason for note in notes["found"]] == ["something"]
    law = "Relu(Relu(x)) => Relu(x)"
    assert notes["applied"] == (NodeNote("", "a", law, law),)


def test_what_a_pass_is_unable_to_do_is_kept_apart() -> None:
    made = run()
    made.note("missed", Skip("no matter"))
    assert "unable" not in made.notes()
    made.note("missed", Unable("never"))
    made.note("missed", Unable("not all", despite_edits=True))
    assert made.notes()["unable"] == ("never", "not all")
    assert made.notes()["unmet"] == ("not all",)


class Held:
    """A result that holds the graph, as that of ExecuTorch."""

    def __init__(self, graph: object) -> None:
        self.graph_module = graph


def test_a_pass_returns_nothing_a_skip_or_its_argument() -> None:
    of, made = model(), PassRun(look, Place())
    for outcome in (None, of, Held(of)):
        made.returned(outcome, of)
    assert made.notes() == {}
    made.returned(Skip("too small"), of)
    assert [note.reason for note in made.notes()["missed"]] == ["too small"]
    for other in (3, model(), Held(None)):
        with pytest.raises(
            UsageError, match=f"look returned an object of type {type(other).__name__}: a pass"
        ):
            made.returned(other, of)


def test_a_model_has_one_memory() -> None:
    of, other = model(), model()
    assert memory_of(of) is memory_of(of)
    assert len({memory_of(of).serial, memory_of(other).serial, Memory().serial}) == 3
