"""Ranges follow edits: after each they are those of a new run."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.conformance.random_graphs import random_model
from tests.graph.editor import Editor, fresh
from tiered import Model, Value, ranges
from tiered.graph import Node
from tiered.graph.intervals.propagation import Propagation
from tiered.support.errors import CycleError, ModelError, OperatorError
from tiered.testing import parse


def values(model: Model) -> Iterator[Value]:
    for graph in model.graphs():
        yield from graph.inputs
        for node in graph.nodes:
            yield from (value for value in node.outputs if value is not None)


def differences(model: Model) -> list[str]:
    new, kept = ranges(model), model.analysis(ranges)
    return [value.name for value in values(model) if kept[value] != new[value]]


@pytest.mark.parametrize("seed", range(40))
def test_ranges_after_random_edits_are_those_of_a_new_run(seed: int) -> None:
    rng = random.Random(seed)
    model = fresh() if seed % 2 else Model.from_proto(random_model(rng))

    editor = Editor(model, lambda choices, _: rng.choice(choices))
    for _ in range(25):
        try:
            ranges(model)
        except (ArithmeticError, LookupError, ValueError):
            return  # a node has not the operands that its operator needs
        assert differences(model) == []
        try:
            editor.step()
        except (ModelError, OperatorError, CycleError):
            return  # undoing it forgets elements that the ranges before it went by


CHAIN = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[4] x, bool c, int64[2] at) => (float[N] y)
{
    a = Sigmoid(x)
    b = Neg(a)
    i = If(c) <
        then_branch = t () => (float[4] p) { p = Add(b, b) },
        else_branch = e () => (float[4] q) { q = Identity(x) }
    >
    j = Identity(at)
    y = Gather(i, j)
}
"""


def chain() -> Model:
    return Model.from_proto(parse(CHAIN))


def node_of(model: Model, name: str) -> Node:
    value = model.main.value(name)
    assert value is not None
    assert value.producer is not None
    return value.producer


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs of the whole analysis."""
    found: list[str] = []
    run = Propagation.run

    def counted(self: Propagation, **options: Any) -> None:
        found.append("run")
        run(self, **options)

    monkeypatch.setattr(Propagation, "run", counted)
    return found


def test_an_edit_is_followed_without_a_new_run(runs: Sequence[str]) -> None:
    model = chain()
    model.analysis(ranges)
    x = model.main.inputs[0]
    model.main.set_input(node_of(model, "b"), 0, model.main.add_node("Abs", (x,)).output)
    found = model.analysis(ranges)
    assert runs == ["run"]
    b = model.main.value("b")
    assert b is not None
    assert (found[b].low, found[b].high) == (float("-inf"), 0)
    assert differences(model) == []


def test_a_new_name_changes_nothing(runs: Sequence[str]) -> None:
    model = chain()
    first = model.analysis(ranges)
    model.main.rename_node(node_of(model, "b"), "other")
    assert model.analysis(ranges) is first
    assert runs == ["run"]


def test_a_new_name_may_have_a_declared_range(runs: Sequence[str]) -> None:
    model, named = chain(), ranges.with_inputs({"x": ranges(chain())[chain().main.inputs[0]]})
    model.analysis(named)
    model.main.rename_node(node_of(model, "b"), "other")
    model.analysis(named)
    assert runs == ["run"] * 3


@pytest.mark.parametrize("name", ["y", "j"])
def test_what_decides_an_index_takes_a_new_run(runs: Sequence[str], name: str) -> None:
    model = chain()
    model.analysis(ranges)
    node = node_of(model, name)
    before = node.inputs[0]
    model.main.set_input(node, 0, model.main.add_node("Identity", (before,)).output)
    assert differences(model) == []
    assert len(runs) == 3  # the first, the one after the edit, and the one to compare with


def test_undone_edits_take_a_new_run(runs: Sequence[str]) -> None:
    model = chain()
    model.analysis(ranges)
    mark = model.mark()
    model.main.set_input(node_of(model, "b"), 0, model.main.inputs[0])
    model.analysis(ranges)
    model.undo_to(mark)
    model.analysis(ranges)
    assert runs == ["run"] * 2


def test_edits_of_types_take_a_new_run(runs: Sequence[str]) -> None:
    model = chain()
    model.analysis(ranges)
    model.forget_types()
    model.analysis(ranges)
    assert runs == ["run"] * 2


def test_another_output_of_a_body_reaches_the_node_around_it(runs: Sequence[str]) -> None:
    text = """(float[2] x, bool c) => (float[2] y) { i = If(c) <
        then_branch = t () => (float[2] p) { r = Tanh(x)  p = Sigmoid(r) },
        else_branch = e () => (float[2] q) { q = Sigmoid(x) }>  y = Neg(i) }"""
    model = Model.from_proto(parse(text))
    assert model.analysis(ranges)[model.main.outputs[0]].high < 0.1
    body = node_of(model, "i").bodies[0]
    first, last = body.topological_order()
    body.replace(last, [first.output])
    assert model.analysis(ranges)[model.main.outputs[0]].high > 0.9
    assert runs == ["run"]
    assert differences(model) == []
