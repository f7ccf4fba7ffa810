"""The invariants of the view are proved on demand, and after each pass with `debug.check_view`."""

from collections.abc import Callable

import pytest

from tests.small import RELUS, made_by, model, named
from tiered import Graph, Model, PassContext, PassError, TensorType, function_pass
from tiered.graph.queries.view_invariants import violations


@function_pass(opt_level=0, name="write_past_the_primitives")
def write_past_the_primitives(graph: Graph, ctx: PassContext) -> None:
    """Break an invariant, which no pass may do."""
    graph.nodes[0].proto.input[0] = "somewhere else"


def test_a_proto_that_was_written_to_breaks_the_view() -> None:
    broken = model(RELUS)
    broken.main.nodes[0].proto.input[0] = "somewhere else"
    with pytest.raises(AssertionError, match="'node_a' differs from its NodeProto"):
        broken.check_view()


def test_an_order_that_is_out_of_date_breaks_the_view() -> None:
    broken = model(RELUS)
    broken.main._order = broken.main.nodes[::-1]
    with pytest.raises(AssertionError, match="topological order"):
        broken.check_view()


def test_the_debug_switch_names_the_pass_that_broke_the_view() -> None:
    with (
        PassContext(config={"debug.check_view": True}),
        pytest.raises(PassError, match=r"write_past_the_primitives failed .* differs from its"),
    ):
        write_past_the_primitives(model(RELUS))


def test_without_the_option_nothing_is_checked() -> None:
    with PassContext():
        write_past_the_primitives(model(RELUS))


def test_a_type_that_contradicts_the_operands_is_found() -> None:
    broken = model("g (float[2,3] x) => (float[2,3] y) { a = Relu(x)  b = Neg(a)  y = Abs(b) }")
    broken.check_view(types=True)
    broken.main.set_type(broken.main.values["b"], TensorType(1, (3, 2)))
    broken.check_view()
    with pytest.raises(AssertionError, match=r"output 'b' .* is float\[2,3\], not float\[3,2\]"):
        broken.check_view(types=True)


NESTED = """(float[2] x, bool p) => (float[2] y) <float[2] w = {1,2}> {
    a = Neg(x)  b = Add(a, w)
    y = If(p) <then_branch = t () => (float[2] u) { u = Neg(b) },
               else_branch = e () => (float[2] v) { v = Abs(x) }> }"""


def forget_users(of: Model) -> None:
    named(of, "a")._users.clear()


def forget_outputs(of: Model) -> None:
    named(of, "y").output_of = ()


def forget_captures(of: Model) -> None:
    captures = named(of, "b")._captures
    assert captures is not None
    captures.clear()


def take_a_name(of: Model) -> None:
    of.names.take("nobody")


def take_a_node_name(of: Model) -> None:
    of.node_names.take("nobody")


def forget_an_operator(of: Model) -> None:
    of.main._by_op["", "Neg"].clear()


def forget_a_body(of: Model) -> None:
    of.main._body_nodes.clear()


def cut_an_edge(of: Model) -> None:
    _ = of.main.dag
    assert of.main._dag is not None
    of.main._dag.remove_edge(made_by(of, "a"), made_by(of, "b"))


def lose_a_node(of: Model) -> None:
    _ = of.main.dag
    assert of.main._dag is not None
    of.main._dag.remove_node(made_by(of, "a"))


def lose_contents(of: Model) -> None:
    named(of, "w")._tensor = None


def not_an_input(of: Model) -> None:
    named(of, "x").input_of = None


def lose_a_producer(of: Model) -> None:
    named(of, "a").producer = None


def other_index(of: Model) -> None:
    named(of, "a").index = 1


def more_exact_input(of: Model) -> None:
    named(of, "x")._type = TensorType(7, (2,))


def other_constant(of: Model) -> None:
    named(of, "w")._type = TensorType(1, (3,))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (forget_users, "users of 'a' differ from the inputs that read it"),
        (forget_outputs, "output_of of 'y' does not match the outputs of the graphs"),
        (forget_captures, "captures of 'b' differ from the bodies that read it"),
        (take_a_name, "the names that are taken differ from those of the values"),
        (take_a_node_name, "the node names that are taken differ from those of the nodes"),
        (forget_an_operator, "the operator index of graph 'g' is wrong"),
        (forget_a_body, "the index of nodes with bodies of graph 'g' is wrong"),
        (cut_an_edge, "the networkx view of graph 'g' has other edges"),
        (lose_a_node, "the networkx view of graph 'g' has other nodes"),
        (lose_contents, "'w' is an initializer for itself or for its graph only"),
        (not_an_input, "'x' is an input for itself or for its graph only"),
        (lose_a_producer, "'a' has no producer"),
        (other_index, "the producer of 'a' is not 'node_a'"),
        (more_exact_input, "graph input 'x' is declared"),
        (other_constant, "initializer 'w' is"),
    ],
)
def test_each_broken_invariant_is_said(damage: Callable[[Model], None], said: str) -> None:
    of = model(f"g {NESTED}")
    assert list(violations(of)) == []
    damage(of)
    assert any(said in text for text in violations(of))
