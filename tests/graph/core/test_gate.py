"""The gate numbers rewrites, and undoes those that may not pass."""

import pytest

from tests.small import made_by, model, named, ops
from tiered.graph import Graph, Model, Node
from tiered.graph.core.gate import RewriteRecord

FOUR = "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  c = Neg(b)  y = Neg(c) }"


def to_abs(of: Model, name: str) -> None:
    node = made_by(of, name)
    with of.main.rewrite("Neg => Abs", node):
        of.main.replace(node, [of.main.op.Abs(node.inputs[0])])


def test_rewrites_are_numbered_from_1_and_reported() -> None:
    of = model(FOUR)
    records: list[RewriteRecord] = []
    of.gate.listeners.append(records.append)
    of.gate.pass_name = "mine"
    to_abs(of, "a")
    to_abs(of, "c")
    assert ops(of) == ["Abs", "Neg", "Abs", "Neg"]
    assert [(each.number, each.pass_name, each.law) for each in records] == [
        (1, "mine", "Neg => Abs"), (2, "mine", "Neg => Abs"),
    ]  # fmt: skip
    assert records[0].graph is of.main
    assert records[0].node_name == "node_a"
    assert records[0].edits


def test_a_block_without_edits_is_no_rewrite() -> None:
    of = model(FOUR)
    with of.main.rewrite("nothing", made_by(of, "a")):
        pass
    assert of.gate.count == 0
    assert of.gate.at == ""


def test_beyond_the_limit_rewrites_are_undone_and_counted() -> None:
    of = model(FOUR)
    of.gate.limit = 1
    assert (of.gate.is_open, of.gate.is_shut()) == (True, False)
    to_abs(of, "a")
    assert (of.gate.is_open, of.gate.is_shut()) == (False, True)
    to_abs(of, "b")
    assert ops(of) == ["Abs", "Neg", "Neg", "Neg"]
    assert (of.gate.count, of.gate.refused) == (1, 1)


def test_only_chosen_rewrites_are_made() -> None:
    of = model(FOUR)
    of.gate.pass_name = "mine"
    of.gate.chosen = lambda key: key == ("mine", "node_b")
    assert of.gate.lets("node_b")
    assert not of.gate.lets("node_a")
    to_abs(of, "a")
    to_abs(of, "b")
    assert ops(of) == ["Neg", "Abs", "Neg", "Neg"]
    assert (of.gate.count, of.gate.refused) == (1, 1)


def test_a_filter_rejects_by_anchor_and_edits_without_a_count() -> None:
    of = model(FOUR)
    seen: list[int] = []

    def accepts(anchor: object, edits: object) -> bool:
        assert isinstance(anchor, Node)
        assert isinstance(edits, list)
        seen.append(len(edits))
        return anchor.name == "node_b"

    of.gate.accepts = accepts
    to_abs(of, "a")
    to_abs(of, "b")
    assert ops(of) == ["Neg", "Abs", "Neg", "Neg"]
    assert (of.gate.count, of.gate.refused, len(seen)) == (1, 0, 2)
    assert all(seen)


def test_a_failure_undoes_the_block_and_says_where_it_was() -> None:
    of = model(FOUR)

    def fail() -> None:
        with of.main.rewrite("law", made_by(of, "b")):
            of.main.rename_value(named(of, "b"), "other")
            raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        fail()
    assert of.main.value("b") is not None
    assert of.gate.at == "node_b"
    assert of.gate.count == 0


def test_a_marked_node_is_left_alone_with_a_reason() -> None:
    of = model(FOUR)
    graph: Graph = of.main
    node = made_by(of, "b")
    graph.set_metadata(node, {"tiered.skip_optimization": "1"})
    said: list[tuple[object, str]] = []
    of.gate.on_mark = lambda anchor, reason: said.append((anchor, reason))
    to_abs(of, "b")
    assert ops(of) == ["Neg"] * 4
    ((anchor, reason),) = said
    assert anchor is node
    assert "tiered.skip_optimization" in reason
