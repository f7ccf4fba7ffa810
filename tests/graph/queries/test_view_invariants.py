"""The invariants of the view are proved on demand, and after each pass with `debug.check_view`."""

from collections.abc import Callable

import pytest
from onnx import ValueInfoProto

from tests.small import RELUS, made_by, model, named
from tiered import Graph, Model, PassContext, PassError, TensorType, Value, function_pass
from tiered.graph.queries.view_invariants import type_violations, violations


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


NESTED = """(float[2] x, bool p, float[1] d, float[] z, seq(float[2]) sq) => (float[2] y) <float[2] w = {1,2}, float[1] d = {3}> {
    a = Neg(x)  b = Add(a, w)  k = Constant<value_float=1.0>()  m, , n = Vendor(a, , w)
    o = Loop(, p, x) <body = l (int64 i, bool c, float[N] s) => (bool g, float[N] h) {
        g = Identity(c)  h = Neg(s) }>
    y = If(p) <then_branch = t () => (float[2] u) { r = Neg(b)  u = If(p) <
                   then_branch = tt () => (float[2] q) { q = Add(b, b) },
                   else_branch = te () => (float[2] b) { }> },
               else_branch = e () => (float[2] v) { v = Mul(x, d) }> }"""


def put(name: str, attribute: str, value: object) -> Callable[[Model], None]:
    """Return the damage to an attribute of a value, or of the node that makes it."""
    node, _, of_node = attribute.rpartition(" ")
    return lambda of: setattr(made_by(of, name) if node else inner(of, name), of_node, value)


def inner(of: Model, name: str) -> Value:
    return next(graph.values[name] for graph in of.graphs() if name in graph.values)


def lose_an_edge(of: Model) -> None:
    assert list(of.main.dag)
    of.main._dag.remove_edge(made_by(of, "a"), made_by(of, "b"))  # type: ignore[union-attr]  # made


def lose_a_node(of: Model) -> None:
    assert list(of.main.dag)
    of.main._dag.remove_node(made_by(of, "a"))  # type: ignore[union-attr]  # made


def shadow(of: Model) -> None:
    """Give a name of the graph around to a value of a body."""
    inner(of, "r").owner._values["b"] = inner(of, "r")


def hide(of: Model) -> None:
    """Write a value of a body under the name of a value around it."""
    inner(of, "r").owner.file_names["r"] = "b"


def declare(name: str) -> Callable[[Model], None]:
    info = ValueInfoProto(name=name)
    return lambda of: of.main.declarations.append((None, info))


DAMAGE: dict[str, tuple[Callable[[Model], object], list[str]]] = {
    "forgotten users": (
        lambda of: named(of, "a")._users.clear(),
        ["users of 'a' differ from the inputs that read it"],
    ),
    "forgotten outputs": (
        put("y", "output_of", ()),
        ["output_of of 'y' does not match the outputs of the graphs"],
    ),
    "outputs of a body": (
        put("b", "output_of", ()),
        ["output_of of 'b' does not match the outputs of the graphs"],
    ),
    "forgotten captures": (
        lambda of: (named(of, "b")._captures or {}).clear(),
        ["captures of 'b' differ from the bodies that read it"],
    ),
    "one capture too few": (
        lambda of: (named(of, "b")._captures or {}).update({made_by(of, "y"): 3}),
        ["captures of 'b' differ from the bodies that read it"],
    ),
    "captures without any": (put("a", "_captures", {}), []),
    "captures of nobody": (
        lambda of: setattr(named(of, "a"), "_captures", {made_by(of, "y"): 1}),
        ["captures of 'a' differ from the bodies that read it"],
    ),
    "a name": (
        lambda of: of.names.take("nobody"),
        ["the names that are taken differ from those of the values"],
    ),
    "a node name": (
        lambda of: of.node_names.take("nobody"),
        ["the node names that are taken differ from those of the nodes"],
    ),
    "an operator": (
        lambda of: of.main._by_op["", "Neg"].clear(),
        ["the operator index of graph 'g' is wrong"],
    ),
    "a body": (
        lambda of: of.main._body_nodes.clear(),
        [
            "the index of nodes with bodies of graph 'g' is wrong",
            "users of 'd' differ from the inputs that read it",
            "captures of 'd' differ from the bodies that read it",
            "users of 'x' differ from the inputs that read it",
            "captures of 'x' differ from the bodies that read it",
            "users of 'p' differ from the inputs that read it",
            "captures of 'p' differ from the bodies that read it",
            "users of 'b' differ from the inputs that read it",
            "output_of of 'b' does not match the outputs of the graphs",
            "captures of 'b' differ from the bodies that read it",
            "the names that are taken differ from those of the values",
        ],
    ),
    "an edge": (lose_an_edge, ["the networkx view of graph 'g' has other edges"]),
    "a node of the DAG": (lose_a_node, ["the networkx view of graph 'g' has other nodes"]),
    "contents": (
        put("w", "_tensor", None),
        ["'w' is an initializer for itself or for its graph only", "'w' has no producer"],
    ),
    "an input": (
        put("x", "input_of", None),
        ["'x' is an input for itself or for its graph only", "'x' has no producer"],
    ),
    "an initializer of nobody": (
        put("d", "input_of", None),
        ["'d' is an input for itself or for its graph only"],
    ),
    "a producer": (
        put("a", "producer", None),
        ["the producer of 'a' is not 'node_a'", "'a' has no producer"],
    ),
    "an index": (put("a", "index", 1), ["the producer of 'a' is not 'node_a'"]),
    "an index of 0": (put("a", "index", -1), ["the producer of 'a' is not 'node_a'"]),
    "a graph": (
        lambda of: setattr(inner(of, "r"), "graph", of.main),
        ["value 'r' is not registered in graph 't'"],
    ),
    "the graph of a node": (
        lambda of: setattr(made_by(of, "a"), "graph", None),
        ["node 'node_a' is in a graph that is not its `graph`"],
    ),
    "a name of another value": (
        shadow,
        [
            "node 'r' reads 'b', which names another value here",
            "node 'q' reads 'b', which names another value here",
            "node 'q' reads 'b', which names another value here",
            "the names that are taken differ from those of the values",
        ],
    ),
    "a lost value": (
        lambda of: of.main._values.pop("a"),
        [
            "node 'node_b' reads 'a', which names another value here",
            "node 'node_m' reads 'a', which names another value here",
            "the names that are taken differ from those of the values",
        ],
    ),
    "the order": (
        lambda of: setattr(of.main, "_order", of.main.nodes[::-1]),
        ["the topological order of graph 'g' is out of date"],
    ),
    "the order of some nodes": (
        lambda of: setattr(of.main, "_order", of.main.nodes[1:]),
        ["the topological order of graph 'g' is out of date"],
    ),
    "inputs of a proto": (
        lambda of: of.main.nodes[0].proto.input.append(""),
        ["node 'node_a' differs from its NodeProto"],
    ),
    "outputs of a proto": (
        lambda of: of.main.nodes[0].proto.output.append(""),
        ["node 'node_a' differs from its NodeProto"],
    ),
    "an input type": (
        put("x", "_type", TensorType(7, (2,))),
        ["graph input 'x' is declared float[2], but is int64[2] in the view"],
    ),
    "a shape that is not declared": (put("x", "_type", TensorType(1, None)), []),
    "a constant": (
        put("w", "_type", TensorType(1, (3,))),
        ["initializer 'w' is float[2] by its contents, float[3] in the view"],
    ),
    "a default": (
        put("d", "_type", TensorType(1, (3,))),
        ["graph input 'd' is declared float[1], but is float[3] in the view"],
    ),
    "a name that hides another in the file": (
        hide,
        [
            "node 'r' reads 'b', which it cannot see",
            "node 'q' reads 'b', which it cannot see",
            "node 'q' reads 'b', which it cannot see",
            "the names that are taken differ from those of the values",
        ],
    ),
    "a declaration of nothing": (
        declare("nobody"),
        ["the names that are taken differ from those of the values"],
    ),
    "a declaration without a name": (declare(""), []),
    "an input of unknown rank": (
        put("z", "_type", TensorType(1, (2,))),
        ["graph input 'z' is declared float, but is float[2] in the view"],
    ),
    "an input of another dtype": (
        put("z", "_type", TensorType(7, None)),
        ["graph input 'z' is declared float, but is int64 in the view"],
    ),
    "a sequence": (
        put("sq", "_type", TensorType(1, (2,))),
        ["graph input 'sq' is declared sequence, but is float[2] in the view"],
    ),
    "an input of a body": (
        put("s", "_type", TensorType(7, ("N",))),
        ["graph input 's' is declared float[?], but is int64[N] in the view"],
    ),
    "a size of an input of a body": (put("s", "_type", TensorType(1, (2,))), []),
    "a name that is not taken": (
        put("k", "name", "kk"),
        [
            "node 'node_k' differs from its NodeProto",
            "value 'kk' is not registered in graph 'g'",
            "the names that are taken differ from those of the values",
        ],
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_each_broken_invariant_is_said(name: str) -> None:
    of = model(f"g {NESTED}")
    assert list(violations(of)) == []
    damage, said = DAMAGE[name]
    damage(of)
    assert list(violations(of)) == said


def test_types_that_contradict_operands_are_said_one_by_one() -> None:
    of = model(
        "g (float[2,3] x, float[3] v) => (float[2,3] y) <float[3] w = {1,2,3}, float[3] v = {1,2,3}, float[3] d>"
        " { a = Relu(x)  d = Neg(w)  e = Constant<value_int=1>()  f, g = Dropout(a)  y = Add(a, d)"
        " q = com.microsoft.QuickGelu(x)  t, , s = LSTM<hidden_size=1>(x, x, x) }"
    )
    assert list(type_violations(of)) == []
    for name in "awdefgqv":
        named(of, name)._type = TensorType(6, (1,))
    assert list(type_violations(of)) == [
        "initializer 'w' is 1 (3,), not int32[1]",
        "output 'a' of 'node_a' is float[2,3], not int32[1]",
        "output 'e' of 'node_e' is int64[], not int32[1]",
        "output 'q' of 'node_q' is float[2,3], not int32[1]",
    ]
