"""Values and nodes stay linked through edits: uses, captures, names, and the networkx view."""

from collections.abc import Callable

import numpy as np

from tests.graph.editor import serialized
from tests.small import made_by, named, parsed
from tiered.graph import Graph, Model, Tensor, Value
from tiered.graph.core.live_dag import Slot
from tiered.graph.core.use_lists import build_dag, unlinked
from tiered.testing import parse

NESTED = """(float[2] x, bool p) => (float[2] y) {
    a = Neg(x)  b = Abs(a)
    y = If(p) <
        then_branch = t () => (float[2] u) {
            s = If(p) <then_branch = tt () => (float[2] w) { w = Add(a, b) },
                       else_branch = te () => (float[2] z) { z = Neg(a) }>
            u = Neg(s) },
        else_branch = e () => (float[2] v) { v = Neg(b) }> }"""


def edges(graph: Graph) -> dict[tuple[str, str], tuple[Slot, ...]]:
    return {
        (tail.output.name, head.output.name): tuple(data["slots"])
        for tail, head, data in build_dag(graph).edges(data=True)
    }


def kept(graph: Graph) -> dict[tuple[str, str], tuple[Slot, ...]]:
    return {
        (tail.output.name, head.output.name): tuple(data["slots"])
        for tail, head, data in graph.dag.edges(data=True)
    }


def test_a_value_that_a_deep_body_reads_has_a_slot_without_input() -> None:
    found = edges(parsed(NESTED).main)
    assert found == {
        ("a", "b"): (Slot(0, 0),),
        ("a", "y"): (Slot(0, None),),
        ("b", "y"): (Slot(0, None),),
    }


def test_each_node_around_captures_what_its_bodies_read() -> None:
    of = parsed(NESTED)
    outer = made_by(of, "y")
    inner = made_by(outer.bodies[0], "s")
    assert {value.name for value in outer.captured} == {"a", "b", "p"}
    assert {value.name for value in inner.captured} == {"a", "b"}


def test_the_last_reader_in_a_body_ends_the_capture() -> None:
    of = parsed(NESTED)
    _ = of.main.dag
    outer = made_by(of, "y")
    inner = made_by(outer.bodies[0], "s")
    first, second = inner.bodies
    second.set_input(made_by(second, "z"), 0, named(of, "x"))
    assert named(of, "a").is_captured
    assert kept(of.main) == edges(of.main)
    first.set_input(made_by(first, "w"), 0, named(of, "x"))
    assert not named(of, "a").is_captured
    assert {value.name for value in inner.captured} == {"b", "x"}
    assert (
        kept(of.main)
        == edges(of.main)
        == {
            ("a", "b"): (Slot(0, 0),),
            ("b", "y"): (Slot(0, None),),
        }
    )


def test_the_kept_view_follows_edits_of_operands_and_undo() -> None:
    of = parsed("(float[2] x) => (float[2] y) { a = Neg(x)  b = Abs(a)  y = Add(a, b) }")
    before = dict(kept(of.main))
    mark = of.mark()
    of.main.set_input(made_by(of, "y"), 1, named(of, "a"))
    assert kept(of.main)["a", "y"] == (Slot(0, 0), Slot(0, 1))
    assert ("b", "y") not in kept(of.main)
    assert kept(of.main) == edges(of.main)
    of.undo_to(mark)
    assert kept(of.main) == before


def test_a_removed_node_with_bodies_frees_what_they_read_and_their_names() -> None:
    of = parsed(NESTED.replace("(float[2] y)", "(float[2] b)"))
    mark = of.mark()
    names = set(of.main.values)
    of.main.remove_node(made_by(of, "y"))
    assert not named(of, "a").is_captured
    assert named(of, "a").n_users == 1
    assert named(of, "b").n_users == 0
    assert of.names.fresh("w") == "w"
    of.undo_to(mark)
    assert set(of.main.values) == names
    assert named(of, "a").n_users == 3
    assert named(of, "b").n_users == 2
    assert of.names.fresh("w") != "w"


def test_an_outer_value_may_be_the_output_of_a_body() -> None:
    of = parsed(NESTED)
    body = made_by(of, "y").bodies[1]
    body.set_graph_outputs([named(of, "a")], body.output_infos)
    assert named(of, "a").is_graph_output
    assert body in named(of, "a").output_of
    assert kept(of.main) == edges(of.main)
    body.remove_node(made_by(body, "v"))
    assert kept(of.main)["a", "y"] == (Slot(0, None),)


def uses(of: Model, name: str) -> list[tuple[int, int]]:
    return [(use.node.id, use.slot) for use in named(of, name).users]


def test_uses_that_are_set_aside_come_back() -> None:
    of = parsed(NESTED)
    before = {name: uses(of, name) for name in "ab"}
    with unlinked(named(of, "a"), named(of, "b")):
        assert uses(of, "a") == uses(of, "b") == []
        assert not named(of, "b").is_captured
    assert {name: uses(of, name) for name in "ab"} == before
    assert named(of, "b").is_captured


EVERYTHING = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
g (float[2] x, bool p, float[2] d) => (float[2] y, float[2] x) <float[2] d = {1,2}, float[2] w = {3,4}, float[2] stale> {
    [A] a = Neg(x)  [C] c = Clip(a, , )  b = Add(a, w)  t, , u = own.Two(a, , d)
    [I] y = If(p) <
        then_branch = one () => (float[2] f) <float[2] k = {5,6}, float[2] gone> {
            [K] h = Clip(a, , )  i = Mul(h, w)  s, , v = own.Two(i, , b)
            [N] f = If(p) <then_branch = tt () => (float[2] m) { [M] m = Add(a, v) },
                           else_branch = te () => (float[2] b) { }> },
        else_branch = two () => (float[2] a) { }>
    z = own.f(b)  e = Exp(u) }
<domain: "own", opset_import: ["": 21]> f (v) => (q) { [Q] r = Neg(v)  o = Greater(v, r)
    q = If(o) <then_branch = yes () => (n) { n = Abs(r) }, else_branch = no () => (v) { }> }"""


def everything() -> Model:
    of = Model.from_proto(parse(EVERYTHING))
    for graph in of.graphs():
        assert graph.dag is not None
        graph.topological_order()
    return of


def value_of(of: Model, name: str) -> Value:
    return next(graph.values[name] for graph in of.graphs() if name in graph.values)


def read_at(of: Model, name: str, slot: int, read: str | None) -> Model:
    """Set an operand of the node that makes a value; return the model."""
    node = value_of(of, name).producer
    assert node is not None
    node.owner.set_input(node, slot, None if read is None else value_of(of, read))
    return of


def returns(of: Model, graph: Graph, *names: str) -> None:
    infos = graph.output_infos
    graph.set_graph_outputs([value_of(of, name) for name in names], infos[: len(names)])


def remove(of: Model, name: str) -> Model:
    graph = value_of(of, name).owner
    if name == "y":
        returns(of, graph, "x")
    graph.remove_node(made_by(graph, name))
    return of


def moved_out(of: Model) -> None:
    body = value_of(of, "h").owner
    body.move_node(made_by(body, "h"), of.main)


def without_function(of: Model) -> None:
    remove(of, "z").remove(of.functions[0])


LINKED: dict[str, Callable[[Model], object]] = {
    "another operand": lambda of: read_at(of, "b", 0, "x"),
    "an operand of an initializer": lambda of: read_at(of, "b", 1, "x"),
    "an initializer for an operand": lambda of: read_at(of, "b", 0, "w"),
    "an absent operand": lambda of: read_at(of, "b", 0, None),
    "a present operand": lambda of: read_at(of, "t", 1, "w"),
    "the operand again": lambda of: read_at(of, "c", 1, "a"),
    "a capture of an initializer": lambda of: read_at(of, "i", 0, "w"),
    "a capture of an input": lambda of: read_at(of, "i", 1, "x"),
    "no capture": lambda of: read_at(of, "i", 1, "h"),
    "one capture less": lambda of: read_at(of, "h", 0, "x"),
    "one capture more": lambda of: read_at(of, "m", 0, "b"),
    "a capture that was not there": lambda of: read_at(of, "m", 0, "c"),
    "two captures less": lambda of: read_at(read_at(of, "h", 0, "x"), "m", 0, "x"),
    "an operand of a node with bodies": lambda of: read_at(of, "y", 0, "p"),
    "other outputs": lambda of: returns(of, of.main, "a", "b"),
    "fewer outputs": lambda of: returns(of, of.main, "x"),
    "an output of a body": lambda of: returns(of, made_by(of, "y").bodies[1], "c"),
    "an output of an inner body": lambda of: returns(
        of, value_of(of, "f").owner.nodes[-1].bodies[1], "h"
    ),
    "an output of its own": lambda of: returns(
        of, value_of(of, "f").owner.nodes[-1].bodies[0], "a"
    ),
    "no node with bodies": lambda of: remove(of, "y"),
    "no node of a body": lambda of: remove(read_at(of, "m", 1, "c"), "s"),
    "no last reader": lambda of: remove(of, "e"),
    "no function": without_function,
    "another name": lambda of: of.main.rename_value(named(of, "a"), "other"),
    "a folded value": lambda of: of.main.become_constant(
        named(of, "b"), Tensor.of(np.ones(2, np.float32))
    ),
    "a moved node": moved_out,
    "a new node": lambda of: of.main.add_node("If", [named(of, "p")], 1, bodies=["then_branch"]),
    "exchanged outputs": lambda of: of.main.exchange_outputs(
        made_by(of, "b"), 0, made_by(of, "c"), 0
    ),
}


def test_links_are_those_that_a_scan_finds() -> None:
    for name, edit in LINKED.items():
        of = everything()
        of.check_view()
        first = serialized(of)
        edit(of)
        assert serialized(of) != first or name.startswith("an operand of a node"), name
        of.check_view()
        of.undo_to(0)
        of.check_view()
        assert serialized(of) == first, name


def test_values_that_are_set_aside_are_linked_again() -> None:
    for names in ("a", "b", "ab", "w", "x", "v"):
        of = everything()
        with unlinked(*(value_of(of, name) for name in names)):
            assert not any(value_of(of, name).is_used for name in names)
        of.check_view()
