"""The anchors that edits affect are those whose matches they can change, and few more."""

import random

import pytest

from tests.small import made_by, named, parsed
from tiered.graph import Graph, Model, Node, Value
from tiered.graph.core.journal import dirty_nodes
from tiered.rewriter import Pattern, Rule, chain, op, var
from tiered.rewriter.worklist import _WIDE, Affected, Worklist


def rule(pattern: Pattern) -> Rule:
    def replacement(graph: Graph) -> Value:
        return graph.inputs[0]

    return Rule("law", pattern, replacement)


def labels(nodes: list[Node]) -> list[str]:
    return [node.output.name for node in nodes]


LINE = """(float[2] x) => (float[2] y) {
    a = Neg(x)  b = Abs(a)  c = Exp(b)  d = Abs(c)  e = Neg(d)  f = Abs(e)  y = Exp(f) }"""


def test_anchors_are_the_nodes_of_the_roots_operator() -> None:
    model = parsed(LINE)
    found = Worklist(rule(op.Abs(var.a)), model)
    assert labels(found.all_anchors()) == labels(found.in_topological_order()) == ["b", "d", "f"]
    assert found.candidates() == 3


def test_anchors_near_a_rare_operator_are_enough() -> None:
    text = " ".join(f"v{at + 1} = Abs(v{at})" for at in range(40))
    model = parsed(f"(float[2] v0) => (float[2] y) {{ {text}  n = Neg(v40)  y = Abs(n) }}")
    assert labels(Worklist(rule(op.Abs(op.Neg(var.a))), model).all_anchors()) == ["y"]
    assert len(Worklist(rule(op.Abs(op.Abs(var.a))), model).all_anchors()) == 41


def test_other_graphs_are_left_out_if_some_are_named() -> None:
    model = parsed(
        """(float[2] x, bool p) => (float[2] y) { a = Abs(x)
        y = If(p) <then_branch = t () => (float[2] u) { u = Abs(a) },
                   else_branch = e () => (float[2] v) { v = Neg(a) }> }"""
    )
    law = rule(op.Abs(var.a))
    assert labels(Worklist(law, model).all_anchors()) == ["a", "u"]
    body = made_by(model, "y").bodies[0]
    assert labels(Worklist(law, model, [body]).all_anchors()) == ["u"]
    assert labels(Worklist(law, model, [body]).in_topological_order()) == ["u"]


@pytest.mark.parametrize(
    ("pattern", "edited", "expected"),
    [
        (op.Abs(var.a), "d", ["d"]),
        (op.Abs(op.Exp(var.a)), "c", ["d"]),
        (op.Abs(op.Exp(var.a)), "b", ["b", "d"]),
        (op.Abs(op.Exp(var.a)), "a", ["b"]),
        (op.Abs(var.a), "a", ["b"]),
        (op.Abs(var.a), "c", ["d"]),
        (op.Abs(op.Exp(op.Abs(var.a))), "b", ["b", "d"]),
        (op.Abs(op.Exp(op.Abs(var.a))), "a", ["b", "d"]),
    ],
)
def test_an_edit_affects_anchors_within_the_depth_of_the_pattern(
    pattern: Pattern, edited: str, expected: list[str]
) -> None:
    model = parsed(LINE)
    found = Worklist(rule(pattern), model).affected_by([made_by(model, edited)])
    assert labels(found) == expected


def test_links_of_a_chain_are_no_step() -> None:
    text = "a = Neg(x)  b = Identity(a)  c = Identity(b)  d = Identity(c)  y = Abs(d)"
    model = parsed(f"(float[2] x) => (float[2] y) {{ {text} }}")
    law = rule(op.Abs(chain(op.Identity, op.Neg(var.a))))
    assert labels(Worklist(law, model).affected_by([made_by(model, "a")])) == ["y"]


def test_of_several_roots_the_others_are_affected_too() -> None:
    model = parsed(
        """(float[2] x) => (float[2] y) {
        s = Relu(x)  a = Neg(s)  b = Exp(s)  c = Neg(x)  y = Sum(a, b, c) }"""
    )
    law = rule(op.Neg(var.a) & op.Exp(var.a))
    assert "a" in labels(Worklist(law, model).affected_by([made_by(model, "b")]))
    single = rule(op.Neg(var.a))
    assert labels(Worklist(single, model).affected_by([made_by(model, "b")])) == []


def test_a_value_with_many_users_is_followed_once_for_all_edits() -> None:
    nodes = " ".join(f"v{at} = Abs(a)" for at in range(_WIDE + 1))
    model = parsed(f"(float[2] x) => (float[2] y) {{ a = Neg(x)  {nodes}  y = Sum(v0, v1) }}")
    found = Worklist(rule(op.Abs(op.Neg(var.a))), model)
    wide: dict[Value, None] = {}
    assert found.affected_by([made_by(model, "a")], wide) == []
    assert list(wide) == [named(model, "a")]
    assert len(found.around(wide)) == _WIDE + 1
    assert len(found.affected_by([made_by(model, "a")])) == _WIDE + 1


def test_an_operator_is_rare_if_a_quarter_of_the_anchors_are_more() -> None:
    for count, expected in ((2, 2), (3, 8)):
        negs = " ".join(f"n{at} = Neg(x)  a{at} = Abs(n{at})" for at in range(count))
        others = " ".join(f"b{at} = Abs(x)" for at in range(8 - count))
        model = parsed(f"(float[2] x) => (float[2] y) {{ {negs}  {others}  y = Exp(a0) }}")
        assert len(Worklist(rule(op.Abs(op.Neg(var.a))), model).all_anchors()) == expected
    both = rule(op.Abs(op.Neg(var.a)) & op.Exp(var.a))
    assert len(Worklist(both, model).all_anchors()) == 8


def test_removed_nodes_and_those_of_other_graphs_are_not_affected() -> None:
    model = parsed(
        """(float[2] x, bool p) => (float[2] y) { a = Abs(x)  r = Abs(x)
        y = If(p) <then_branch = t () => (float[2] u) { u = Abs(a) },
                   else_branch = e () => (float[2] v) { v = Neg(a) }> }"""
    )
    law = rule(op.Abs(op.Abs(var.a)))
    removed = made_by(model, "r")
    model.main.remove_node(removed)
    dirty = [made_by(model, "a"), removed]
    assert labels(Worklist(law, model).affected_by(dirty)) == ["a", "u"]
    body = made_by(model, "y").bodies[0]
    assert labels(Worklist(law, model, [body]).affected_by(dirty)) == ["u"]


def test_only_edits_after_the_last_run_count() -> None:
    model = parsed(LINE)
    found = Worklist(rule(op.Abs(var.a)), model)
    begin = model.journal.stamp()
    model.main.set_attribute(made_by(model, "d"), "k", 1)
    assert labels(found.affected_since(begin)) == ["d"]
    stamp = model.journal.stamp()
    assert found.affected_since(stamp) == []
    model.main.set_attribute(made_by(model, "f"), "k", 1)
    assert labels(found.affected_since(stamp)) == ["f"]


def test_each_touched_node_affects_what_a_search_from_it_finds() -> None:
    text = """(float[2] x, float m) => (float[2] y) { a = Neg(x)  b = Identity(a)
        c = Identity(b)  d = Abs(c)  e = Exp(d)  f = Clip(e, , m)  g = Abs(f)  h = Neg(g)
        i = Abs(h)  y = Add(i, d) }"""
    model = parsed(text)
    nodes = list(model.main.topological_order())
    patterns = (
        op.Abs(var.a),
        op.Abs(op.Neg(var.a)),
        op.Abs(op.Clip(op.Exp(var.a), ...)),
        op.Abs(chain(op.Identity, op.Neg(var.a))),
        op.Add(op.Abs(op.Neg(var.a)), var.b),
    )
    for pattern in patterns:
        law = rule(pattern)
        found = Worklist(law, model)
        for touched in nodes:
            near = Affected({touched: 6}, 5, law)
            held = [node for node in found.all_anchors() if near.holds(node)]
            assert held == found.affected_by([touched]), (str(pattern), touched.label)
            assert not any(Affected({touched: 5}, 5, law).holds(node) for node in nodes)


def test_after_an_undo_of_what_was_seen_every_anchor_is_looked_at() -> None:
    model = parsed(LINE)
    found = Worklist(rule(op.Abs(var.a)), model)
    mark = model.mark()
    model.main.rename_value(named(model, "a"), "other")
    stamp = model.journal.stamp()
    assert found.affected_since(stamp) == []
    model.undo_to(mark)
    assert labels(found.affected_since(stamp)) == ["b", "d", "f"]


def edited(model: Model, rng: random.Random, count: int) -> None:
    for _ in range(count):
        node = rng.choice(model.main.nodes)
        earlier = [each for each in model.main.topological_order() if each.id < node.id]
        value = rng.choice([named(model, "x"), *(each.output for each in earlier)])
        model.main.set_input(node, 0, value)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [1, 3, 30])
def test_few_and_many_edits_affect_what_a_search_from_them_finds(seed: int, count: int) -> None:
    rng = random.Random(seed)
    nodes = " ".join(f"v{at + 1} = {rng.choice(['Abs', 'Neg', 'Exp'])}(v{at})" for at in range(30))
    model = parsed(f"(float[2] x) => (float[2] v30) {{ v0 = Relu(x)  {nodes} }}")
    found = Worklist(rule(op.Abs(op.Neg(op.Exp(var.a)))), model)
    stamp = model.journal.stamp()
    edited(model, rng, count)
    dirty = dirty_nodes(model.journal.since(stamp.length))
    assert found.affected_since(stamp) == found.affected_by(dirty)
