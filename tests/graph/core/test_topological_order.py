"""The order of nodes: stable, producers first, and a cycle is named."""

from collections.abc import Iterable

import pytest

from tests.small import made_by, model, named
from tiered.graph import Model, Node
from tiered.graph.core.topological_order import producers, sort_nodes, sort_part
from tiered.support.errors import CycleError

TEXT = """g (float[2] x, bool p) => (float[2] y) {
    a = Neg(x)  b = Abs(x)  c = Add(a, b)
    y = If(p) <then_branch = t () => (float[2] u) { u = Neg(c) },
               else_branch = e () => (float[2] v) { v = Add(b, x) }> }"""


def outputs(nodes: Iterable[Node]) -> list[str]:
    return [node.output.name for node in nodes]


def test_a_sorted_list_stays_as_it_is() -> None:
    assert outputs(sort_nodes(model(TEXT).main)) == ["a", "b", "c", "y"]


def test_a_new_producer_comes_directly_before_its_first_consumer() -> None:
    of = model(TEXT)
    graph = of.main
    made = graph.op.Relu(named(of, "a"))
    graph.set_input(made_by(of, "c"), 0, made)
    assert outputs(sort_nodes(graph)) == ["a", "b", made.name, "c", "y"]


def test_nodes_that_only_a_body_reads_come_before_its_node() -> None:
    of = model(TEXT)
    graph = of.main
    body = made_by(of, "y").bodies[0]
    made = graph.op.Relu(named(of, "x"))
    inner = body.outputs[0].producer
    assert inner is not None
    body.set_input(inner, 0, made)
    assert outputs(sort_nodes(graph)) == ["a", "b", "c", made.name, "y"]
    assert outputs(producers(graph, made_by(of, "y"))) == ["b", made.name]


def _with_a_cycle() -> Model:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  b = Abs(a)  y = Neg(b) }")
    of.main.set_input(made_by(of, "a"), 0, named(of, "b"))
    return of


def test_a_cycle_is_named_from_its_first_node_back_to_it() -> None:
    with pytest.raises(CycleError, match="has a cycle: node_a <- node_b <- node_a"):
        sort_nodes(_with_a_cycle().main)


def test_a_part_is_sorted_without_its_surroundings() -> None:
    of = model(TEXT)
    part = [made_by(of, name) for name in ("y", "c", "b")]
    assert outputs(sort_part(part)) == ["b", "c", "y"]
    graph = of.main
    made = graph.op.Relu(named(of, "a"))
    graph.set_input(made_by(of, "c"), 0, made)
    new = made_by(of, made.name)
    assert outputs(sort_part([made_by(of, "c"), new])) == [made.name, "c"]
    assert outputs(sort_part([made_by(of, "y"), new])) == ["y", made.name]


def test_a_long_chain_needs_no_recursion() -> None:
    of = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    value = named(of, "x")
    for _ in range(3000):
        value = of.main.op.Neg(value)
    of.main.set_input(made_by(of, "y"), 0, value)
    order = sort_nodes(of.main)
    assert order[-1].output.name == "y"
    assert [each.id for each in sort_part(order)[:3]] == [each.id for each in order[:3]]
