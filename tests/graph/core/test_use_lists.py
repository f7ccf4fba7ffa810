"""Values and nodes stay linked through edits: uses, captures, names, and the networkx view."""

from tests.small import made_by, named, parsed
from tiered.graph import Graph, Model
from tiered.graph.core.live_dag import Slot
from tiered.graph.core.use_lists import build_dag, unlinked

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
