"""Records of rewrites: pass, place and nodes of each; and models rebuilt after any of them."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.small import FOUR, drop_neg, neg_to_abs, ops, proto
from tiered import Graph, Model, Pass, PassContext, Sequential, function_pass
from tiered.extensions.debug.pipeline_runs import Subject
from tiered.extensions.debug.recorder import History, Recorder
from tiered.testing import parse


def recorded(subject: Subject) -> Recorder:
    found = Recorder()
    subject.run(instruments=[found])
    return found


def test_each_rewrite_has_its_number_pass_law_and_anchor() -> None:
    found = recorded(Subject(proto(FOUR), [neg_to_abs])).by_number
    assert sorted(found) == [1, 2, 3, 4]
    second = found[2]
    assert (second.number, second.pass_text, second.anchor) == (2, "neg_to_abs", "node_b")
    assert second.info is not None
    assert second.info.name == "neg_to_abs"
    assert second.graph == "g"
    assert second.law
    assert not second.is_open


def test_the_text_of_a_pass_has_its_options() -> None:
    source = parse("(float[2] x) => (float[2] y) { a = Identity(x)  y = Relu(a) }")
    found = recorded(Subject(source, ["fold_constant{max_growth=7}", "eliminate_identity"]))
    assert [each.pass_text for each in found.by_number.values()] == ["eliminate_identity"]
    text = "(float[2] x) => (float[2] y) <float[2] w = {1,2}> { a = Neg(w)  y = Add(x, a) }"
    found = recorded(Subject(parse(text), ["fold_constant{max_growth=1MB}"]))
    (folded,) = found.by_number.values()
    assert folded.pass_text == "fold_constant{max_growth=1MB}"


def test_nodes_are_text_before_and_after() -> None:
    facts = recorded(Subject(proto(FOUR), [neg_to_abs])).by_number[2]
    assert len(facts.before) == len(facts.after) >= 1
    assert any("= Neg" in line for line in facts.before)
    assert any("= Abs" in line for line in facts.after)


def test_places_are_values_around_the_rewrite() -> None:
    facts = recorded(Subject(proto(FOUR), [neg_to_abs])).by_number[2]
    assert "b" in facts.places
    assert "y" not in facts.places
    assert len(set(facts.places)) == len(facts.places)


def test_a_removed_node_has_the_place_of_its_reader() -> None:
    facts = recorded(Subject(proto(FOUR), [drop_neg])).by_number[1]
    assert "a" in facts.places
    assert "b" in facts.places


BODIES = """(float[2] x, bool c) => (float[2] y, float[2] z) {
    y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) },
               else_branch = e () => (float[2] q) { q = Abs(x) }>
    z = Relu(x) }"""
CALLS = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
    g (float[2] x) => (float[2] y, float[2] z) { y = own.f(x)  z = Relu(x) }
    <domain: "own", opset_import: ["" : 21, "own" : 1]> f (x) => (y) { a = own.h(x)  y = Abs(a) }
    <domain: "own", opset_import: ["" : 21]> h (x) => (y) { y = Neg(x) }"""


NESTED = """(float[2] x, bool c) => (float[2] y, float[2] z) {
    y = If(c) <then_branch = t () => (float[2] p) {
        p = If(c) <then_branch = u () => (float[2] r) { r = Neg(x) },
                   else_branch = v () => (float[2] s) { s = Abs(x) }> },
        else_branch = e () => (float[2] q) { q = Abs(x) }>
    z = Relu(x) }"""


@pytest.mark.parametrize("text", [BODIES, CALLS, NESTED], ids=["bodies", "calls", "nested"])
def test_a_rewrite_inside_of_a_node_is_at_its_outputs(text: str) -> None:
    facts = recorded(Subject(parse(text), [neg_to_abs])).by_number[1]
    assert "y" in facts.places
    assert "z" not in facts.places


def test_a_type_that_is_stated_is_a_place() -> None:
    @function_pass(opt_level=1)
    def states(graph: Graph, ctx: PassContext) -> None:
        """State a type."""
        with graph.rewrite("a type", graph.nodes[0]):
            graph.set_type(graph.values["a"], graph.values["x"].type)

    source = parse("(float[2] x) => (float[2] y) { a = com.acme.F(x)  y = Neg(a) }")
    found = recorded(Subject(source, [states])).by_number
    assert [each.places for each in found.values()] == [["a"]]


# --- histories ------------------------------------------------------------------------------------


def history(*passes: Pass, source: str = FOUR) -> History:
    found = History()
    Subject(proto(source), Sequential(list(passes))).run(instruments=[found])
    return found


def kinds(of: History, number: int) -> list[str]:
    return ops(Model.from_proto(of.model_after(number).proto))


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 3, 1]])
def test_the_model_after_any_rewrite_is_rebuilt(order: list[int]) -> None:
    of = history(neg_to_abs)
    assert of.is_whole
    for number in order:
        assert kinds(of, number) == ["Abs"] * number + ["Neg"] * (4 - number)


def test_a_model_that_was_rebuilt_stays_as_it_is() -> None:
    of = history(neg_to_abs)
    early = of.model_after(1).proto
    of.model_after(3)
    assert ops(Model.from_proto(early)) == ["Abs", "Neg", "Neg", "Neg"]


def test_rewrites_of_several_passes_follow_each_other() -> None:
    of = history(neg_to_abs, drop_neg)
    last = Subject(proto(FOUR), Sequential([neg_to_abs, drop_neg])).run()
    assert kinds(of, last.rewrites) == ops(last.model)


def test_a_history_with_an_undone_rewrite_is_not_whole() -> None:
    @function_pass(opt_level=1)
    def undoes(graph: Graph, ctx: PassContext) -> None:
        """Rewrite, undo, and rewrite again."""
        for _ in range(2):
            mark = graph.model.mark()
            node = graph.nodes_of("Neg")[0]
            with graph.rewrite("rename", node):
                graph.rename_node(node, "other")
            graph.model.undo_to(mark)
        with graph.rewrite("rename", graph.nodes[0]):
            graph.rename_node(graph.nodes[0], "last")

    assert not history(undoes).is_whole


def test_a_history_that_began_with_no_pass_or_is_not_whole_records_nothing() -> None:
    made = Model.from_proto(proto(FOUR))
    of = History()
    record: Any = SimpleNamespace()
    of.on_rewrite(made, record, record)
    assert (of.is_whole, of._steps) == (True, [])
    of.run_before_pass(made, record)
    start = of._start
    of.run_before_pass(made, record)
    assert of._start is start
    of.is_whole = False
    of.on_rewrite(made, record, record)
    assert of._steps == []
