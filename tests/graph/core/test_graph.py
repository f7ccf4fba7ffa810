"""The queries of a graph: its place among the others, and its contents without a scan."""

import pytest
from onnx import parser

from tests.small import made_by, model, named
from tiered import Graph, Model, Value
from tiered.support.errors import ModelError

NESTED = """g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
    a = Neg(x)
    b = If (c) <
        then_branch = one () => (float[2] t) {
            h = If (c) <then_branch = two () => (float[2] u) { u = Add(a, w) },
                        else_branch = three () => (float[2] v) { v = Identity(a) }>
            t = Neg(h) },
        else_branch = four () => (float[2] s) { s = Neg(a) }>
    y = Abs(b) }"""
CALLS = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[2] x) => (float[2] y) { y = own.twice(x) }
<domain: "own", opset_import: ["" : 18]>
twice (p) => (q) { q = Add(p, p) }"""


def bodies(of: Model) -> dict[str, Graph]:
    """Return the graphs below the main graph by their names."""
    return {body.name: body for node in of.main.walk() for body in node.bodies}


def with_function() -> tuple[Graph, Graph]:
    """Return a main graph and a local function that it calls."""
    from onnx import parser

    of = Model.from_proto(parser.parse_model(CALLS))
    twice = of.function("own", "twice", "")
    assert twice is not None
    return of.main, twice


def test_the_place_of_a_body_is_known_from_the_node_around_it() -> None:
    of = model(NESTED)
    found = bodies(of)
    assert list(found) == ["one", "four", "two", "three"]
    assert [(found[name].depth, found[name].is_main) for name in ("one", "two")] == [
        (1, False),
        (2, False),
    ]
    assert of.main.is_main
    assert of.main.depth == 0
    assert found["two"].parent is found["one"]
    assert found["two"].root is of.main.root is of.main
    assert found["two"].is_within(found["one"])
    assert found["two"].is_within(of.main)
    assert of.main.is_within(of.main)
    assert not found["one"].is_within(found["two"])
    assert not found["four"].is_within(found["one"])


def test_a_local_function_is_a_root_but_not_the_main_graph() -> None:
    main, twice = with_function()
    assert twice.root is twice
    assert not twice.is_main
    assert twice.parent is None
    assert twice.depth == 0
    assert (main.opset(), twice.opset(), twice.opset("other")) == (21, 18, 0)


def test_a_body_has_the_opset_of_its_root() -> None:
    assert bodies(model(NESTED))["two"].opset() == 21


def test_a_node_sees_the_values_of_its_graph_and_of_those_around_it() -> None:
    of = model(NESTED)
    found = bodies(of)
    assert found["two"].sees(named(of, "a"))
    assert found["two"].sees(named(found["one"], "h"))
    assert not of.main.sees(named(found["one"], "h"))
    assert not found["four"].sees(named(found["one"], "h"))
    assert found["two"].value("w") is named(of, "w")
    assert found["four"].value("h") is None


def test_a_function_sees_none_of_the_values_of_the_main_graph() -> None:
    main, twice = with_function()
    assert not twice.sees(named(main, "x"))
    assert twice.value("x") is None


def test_names_of_a_body_matter_only_where_its_operator_may_ask_for_them() -> None:
    of = model(NESTED)
    assert not of.main.names_matter
    assert not bodies(of)["one"].names_matter


def test_nodes_are_found_by_operator_and_walked_with_their_bodies() -> None:
    of = model(NESTED)
    assert of.main.nodes_of("Neg") == (made_by(of, "a"),)
    assert of.main.nodes_of("Neg", "own") == ()
    assert set(of.main.operators) == {("", "Neg"), ("", "If"), ("", "Abs")}
    assert of.main.body_nodes == (made_by(of, "b"),)
    assert len(of.main) == 3
    walked = [node.output.name for node in of.main.walk()]
    assert walked == ["a", "b", "y", "h", "t", "u", "v", "s"]


def test_an_operator_without_nodes_left_is_not_counted() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x) y = Abs(x) }")
    of.main.prune([made_by(of, "a")])
    assert of.main.operators == (("", "Abs"),)
    assert of.main.nodes_of("Neg") == ()


def test_an_order_of_a_part_has_producers_first() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x) b = Abs(a) y = Exp(b) }")
    a, b, y = (made_by(of, name) for name in ("a", "b", "y"))
    assert of.main.topological_order() == (a, b, y)
    assert of.main.topological_order([y, a]) == (a, y)
    assert set(of.main.subgraph([a, b]).edges) == {(a, b)}


def test_what_is_unused_is_discarded_with_what_only_it_needed() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] k = {3, 4}> "
        "{ a = Add(x, w) b = Neg(a) y = Abs(x) }"
    )
    of.main.discard(named(of, "a"))
    assert of.main.value("a") is not None, "a value with users stays"
    of.main.discard(named(of, "b"))
    assert [node.op_type for node in of.main.nodes] == ["Abs"]
    assert of.main.value("w") is None
    of.main.discard(named(of, "k"))
    assert of.main.initializers == ()
    of.main.discard(named(of, "x"))
    of.main.discard(None)
    assert [value.name for value in of.main.inputs] == ["x"]


def test_an_unused_overridable_initializer_stays() -> None:
    of = model("g (float[2] x, float[2] k) => (float[2] y) <float[2] k = {3, 4}> { y = Abs(x) }")
    of.main.discard(named(of, "k"))
    assert [value.name for value in of.main.inputs] == ["x", "k"]
    assert [value.name for value in of.main.initializers] == ["k"]


def test_a_frozen_model_is_not_edited() -> None:
    of = model()
    of.journal.frozen = "it is being written"
    with pytest.raises(ModelError, match="may not be edited now: it is being written"):
        of.main.op.Neg(named(of, "x"))


def test_defaults_of_a_function_are_by_name() -> None:
    from onnx import helper, parser

    made = parser.parse_model(CALLS)
    made.functions[0].attribute_proto.append(helper.make_attribute("alpha", 0.5))
    twice = Model.from_proto(made).function("own", "twice", "")
    assert twice is not None
    assert {name: each.f for name, each in twice.defaults.items()} == {"alpha": 0.5}
    assert twice.id == ("own", "twice", "")


SEARCH = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[2] x, bool c) => (float[2] y, float[2] z) {
    y = own.Search(x) <body = b (float[2] s, float[2] t) => (float[2] r, float[2] t) { r = Neg(s) }>
    z = own.If(c) <then_branch = t () => (float[2] p) { p = Neg(x) },
                   else_branch = e () => (float[2] q) { q = Abs(x) }> }"""


def test_names_of_bodies_of_unknown_operators_matter() -> None:
    of = Model.from_proto(parser.parse_model(SEARCH))
    assert [body.names_matter for body in bodies(of).values()] == [True, True, True]
    body = bodies(of)["b"]
    s, t = body.inputs
    body.keep_file_name(s, "s")
    assert body.file_names == {}
    body.keep_file_name(s, "first")
    body.keep_file_name(s, "second")
    body.keep_file_name(named(of, "x"), "third")
    assert body.file_names == {"s": "first"}
    assert of.names.fresh("first") != "first"
    assert of.names.fresh("second") == "second"
    body.keep_file_name(t, "x")
    assert not body.sees(named(of, "x"))
    assert body.sees(named(of, "c"))
    assert body.sees(t)
    assert not body.sees(Value(0, None, "x"))


def test_an_order_is_found_once() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x) b = Abs(a) y = Exp(b) }")
    assert of.main.topological_order() is of.main.topological_order()


def test_graphs_are_alike_but_for_names() -> None:
    one, other, third = (
        model(f"g (float[2] x) => (float[2] y) {{ {nodes} }}").main
        for nodes in ("a = Neg(x) y = Abs(a)", "b = Neg(x) y = Abs(b)", "b = Exp(x) y = Abs(b)")
    )
    assert [one.is_isomorphic(each) for each in (one, other, third)] == [True, True, False]


def test_a_target_refuses_operators_for_its_reasons() -> None:
    of = model()
    assert of.main.refusal("Neg") is None
    of.gate.refusal = lambda graph, op_type, domain: f"{graph.name} {domain}.{op_type}"
    assert of.main.refusal("Neg", "own") == "g own.Neg"


def test_a_constant_that_is_read_is_not_discarded() -> None:
    of = model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    of.main.discard(named(of, "w"))
    assert of.main.initializers == (named(of, "w"),)


def test_domains_of_functions_stay_as_they_are_spelt() -> None:
    made = parser.parse_model(CALLS)
    for domain in ("ai.onnx", "", None):
        (entry,) = made.functions[0].opset_import
        entry.ClearField("domain")
        if domain is not None:
            entry.domain = domain
        function = Model.from_proto(made).function("own", "twice", "")
        assert function is not None
        assert (function.spellings, function.opset()) == ({"": domain}, 18)
