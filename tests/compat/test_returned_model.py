"""Passes that return another model or graph: its content is taken over."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.recorded import assert_values
from tests.small import content, model, named, ops, parsed, proto
from tiered import Model, PassContext, module_pass
from tiered.compat.returned_model import checked, output_of, take_over, take_over_graph
from tiered.support.errors import ModelError, PassError, UsageError

TEXT = "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { a = Neg(x)  y = Add(a, w) }"
OTHER = (
    "g (float[2] x) => (float[2] y) <float[2] w = {3,4}> { a = Abs(x)  b = Exp(a)  y = Mul(b, w) }"
)


def context() -> PassContext:
    return PassContext.isolated()


# --- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [model, proto])
def test_another_model_becomes_the_content(make: Any) -> None:
    given = model(TEXT)
    assert take_over(given, make(OTHER), context()) is None
    assert content(given) == content(model(OTHER))
    given.check_view()


def test_the_model_itself_and_nothing_change_nothing() -> None:
    given = model(TEXT)
    mark = given.mark()
    for outcome in (None, given, model(TEXT), proto(TEXT)):
        assert take_over(given, outcome, context()) is None
    assert not given.changed_since(mark)


def test_what_is_no_model_is_returned() -> None:
    given = model(TEXT)
    for outcome in (3, "text", given.main):
        assert take_over(given, outcome, context()) is outcome


def test_a_model_that_is_not_valid_is_refused() -> None:
    wrong = proto(OTHER)
    wrong.graph.node[0].op_type = "NoSuchOperator"
    with pytest.raises(ModelError):
        take_over(model(TEXT), wrong, context())


def test_a_checked_pass_ends_with_the_final_check() -> None:
    @module_pass(opt_level=None)
    def breaks(model: Model, ctx: PassContext) -> None:
        """Write an operator that nobody knows."""
        model.main.set_operator(model.main.nodes[0], "NoSuchOperator", "")

    assert [each.name for each in checked(breaks).leaves()] == ["breaks", "final_check"]  # type: ignore[attr-defined]  # a pipeline
    with pytest.raises((ModelError, PassError)):
        checked(breaks).apply(model(TEXT))


# --- graphs ---------------------------------------------------------------------------------------


def taken(before: str, after: str, change: Any = None) -> Model:
    given, made = model(before), model(after)
    if change is not None:
        change(made.main)
    take_over_graph(given.main, made.main)
    given.check_view()
    return given


def test_a_graph_has_the_nodes_and_constants_of_another_one() -> None:
    given = taken(TEXT, OTHER)
    assert ops(given) == ["Abs", "Exp", "Mul"]
    assert [info.name for info in given.to_proto().graph.output] == ["y"]
    np.testing.assert_array_equal(named(given, "w").const, [3, 4])
    assert len(given.main.initializers) == 1


def test_the_interface_keeps_its_names_and_declarations() -> None:
    after = "g (float[2] p) => (float[2] q) { x = Neg(p)  y = Exp(x)  q = Abs(y) }"
    given = taken("g (float[n] x) => (float[n] y) { y = Neg(x) }", after)
    proto_ = given.to_proto()
    assert [
        (each.name, each.type.tensor_type.shape.dim[0].dim_param)
        for each in (*proto_.graph.input, *proto_.graph.output)
    ] == [("x", "n"), ("y", "n")]
    names = [name for node in proto_.graph.node for name in node.output]
    assert len(set(names)) == 3
    assert "x" not in names


def test_the_other_graph_stays() -> None:
    made = model(OTHER)
    before = content(made)
    take_over_graph(model(TEXT).main, made.main)
    assert content(made) == before


def test_an_output_twice_an_input_and_a_constant_become_values_of_their_own() -> None:
    three = """g (float[2] x) => (float[2] a, float[2] b, float[2] c, float[2] d)
        <float[2] w = {1,2}> { a = Neg(x)  b = Neg(x)  c = Neg(x)  d = Abs(w) }"""

    def change(graph: Any) -> None:
        a, x, w = (graph.value(name) for name in "axw")
        graph.set_graph_outputs([a, a, x, w], graph.output_infos)

    given = taken(three, three, change)
    outputs = given.main.outputs
    assert [value.name for value in outputs] == ["a", "b", "c", "d"]
    assert [value.producer and value.producer.op_type for value in outputs] == [
        "Neg",
        "Identity",
        "Identity",
        None,
    ]


def test_outputs_are_exchanged() -> None:
    text = "g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }"
    given = taken(
        text,
        text,
        lambda graph: graph.set_graph_outputs(graph.outputs[::-1], graph.output_infos[::-1]),
    )
    assert [
        (value.name, value.producer and value.producer.op_type) for value in given.main.outputs
    ] == [("y", "Abs"), ("z", "Neg")]


def test_an_output_that_is_an_input_stays_that_input() -> None:
    text = "g (float[2] x) => (float[2] x, float[2] y) { y = Neg(x) }"
    given = taken(text, text)
    assert given.main.outputs[0] is given.main.inputs[0]
    with pytest.raises(
        UsageError, match="output 'x' is an input of graph 'g': another function must"
    ):
        taken(
            text,
            text,
            lambda graph: graph.set_graph_outputs(graph.outputs[::-1], graph.output_infos),
        )


def test_defaults_of_inputs_stay() -> None:
    text = "g (float[2] x, float[2] d) => (float[2] y) <float[2] d = {1,2}> { y = Add(x, d) }"
    given = taken(text, text.replace("Add", "Mul"))
    (d,) = given.main.initializers
    assert (d.name, d.is_overridable, ops(given)) == ("d", True, ["Mul"])


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (
            "g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }",
            "has 1 input, and the returned one 2: expected the same",
        ),
        (
            "g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }",
            "has 1 output, and the returned one 2",
        ),
    ],
)
def test_the_interface_has_as_many_inputs_and_outputs(after: str, message: str) -> None:
    given = model(TEXT)
    before = content(given)
    with pytest.raises(UsageError, match=message):
        take_over_graph(given.main, model(after).main)
    assert content(given) == before


# --- outputs --------------------------------------------------------------------------------------


def test_a_value_may_be_an_output_by_any_name_or_its_identity_is() -> None:
    given = model(
        """g (float[2] x, float[2] d) => (float[2] y)
        <float[2] w = {1,2}, float[2] d = {1,2}> {
        a = Neg(x)  y = Add(a, w)  z = Mul(x, d) }"""
    )
    graph = given.main
    a, w = graph.value("a"), graph.value("w")
    assert a is not None
    assert w is not None
    assert output_of(graph, a) is a
    assert output_of(graph, w) is w
    again = output_of(graph, a, [a])
    assert again.producer is not None
    assert (again.producer.op_type, again.producer.inputs) == ("Identity", (a,))
    for name in ("x", "d", "y"):
        value = graph.value(name)
        assert value is not None
        made = output_of(graph, value).producer
        assert made is not None
        assert made.op_type == "Identity"


def test_contents_that_are_taken_over_are_recorded() -> None:
    def taken(mine: str, other: str) -> object:
        given, made = parsed(mine), parsed(other)
        take_over_graph(given.main, made.main)
        given.check_view()
        nodes = [
            f"{n.op_type}{[v and v.name for v in n.inputs]}{[v and v.name for v in n.outputs]}"
            for n in given.main.topological_order()
        ]
        weights = {v.name: v.const.tolist() for v in given.main.initializers if v.const is not None}
        return nodes, weights, [f"{v.name} {v.type}" for v in given.main.outputs]

    def output(name: str, others: Any = ()) -> object:
        of = parsed(
            "(float[2] x, float[2] d) => (float[2] y) <float[2] w = {1,2}, float[2] d = {3,4}>"
            " { a = Neg(x) y = Abs(a) }"
        )
        value = of.main.value(name)
        assert value is not None
        found = output_of(of.main, value, [of.main.values[each] for each in others])
        return found is value or getattr(found.producer, "op_type", None)

    def body(made: bool = False) -> object:
        """Return the reason against a body, for either graph."""
        inner = next(each for each in parsed(IF).graphs() if not each.is_main)
        both = inner, parsed("(float[2] x) => (float[2] y) { y = Neg(x) }").main
        with pytest.raises(UsageError) as found:
            take_over_graph(*(both[::-1] if made else both))
        return str(found.value)

    def calls(mine: str, other: str) -> object:
        """Return the node of a graph that takes over a call or an operator."""
        texts = [f"{CALL} {FUNCTION}" if name == "F" else CALL.replace("l.F", name)
                 for name in (mine, other)]  # fmt: skip
        given, made = (Model.from_proto(onnx.parser.parse_model(text)) for text in texts)
        take_over_graph(given.main, made.main)
        return [node.operator for node in given.main.nodes]

    def captured() -> object:
        """Return what an outer value becomes as an output of a body."""
        of = parsed(IF)
        inner, outer = next(each for each in of.graphs() if not each.is_main), of.main
        made = [output_of(inner, outer.values[name]) for name in ("w", "a", "x")]
        assert all(value.owner is inner for value in made)
        return [value.producer and value.producer.op_type for value in made]

    names = {"taken": taken, "output": output, "body": body, "calls": calls, "captured": captured}
    assert_values(__file__, names)


IF = """(float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}> { a = Neg(x) y = If(c) <
    then_branch = t () => (float[2] p) { p = Add(a, w) },
    else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
CALL = """<ir_version: 10, opset_import: ["" : 21, "l" : 1]> g (float[2] x) => (float[2] y)
    { y = l.F(x) }"""
FUNCTION = """ <domain: "l", opset_import: ["" : 21]> F (p) => (q) { q = Tanh(p) }"""
