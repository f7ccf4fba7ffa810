"""Graphs as expressions, and expressions as graphs."""

from typing import Any

import numpy as np
import pytest

from tests.recorded import assert_values
from tests.small import ops, parsed
from tiered.compat.tvm import relay
from tiered.compat.tvm.expressions.building import Builder, ExpressionReader, model_of
from tiered.compat.tvm.expressions.expr import (
    Call,
    Constant,
    Function,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from tiered.runtime import Session
from tiered.support.errors import UsageError

TEXT = """(float[2,4] x, float h) => (float[2,2] y, float[2,2] z) <float[4] w = {1,2,3,4}> {
    k = Constant<value_float = 2.0>()  a = Mul(x, w)  c = Clip(a, , h)
    y, z = Split<axis=1, num_outputs=2>(c)  dead = Neg(k) }"""


def test_a_graph_is_read_with_one_expression_for_each_value() -> None:
    graph = parsed(TEXT).main
    reader = ExpressionReader(graph)
    assert [call.op.name for call in reader.calls.values()] == [
        "multiply",
        "clip",
        "split",
        "negative",
    ]
    mul, clip, split, neg = reader.calls.values()
    x, w = mul.args
    assert isinstance(x, Var)
    assert isinstance(w, Constant)
    np.testing.assert_array_equal(w.data.numpy(), [1, 2, 3, 4])
    assert (clip.args[0], clip.args[1]) == (mul, None)
    assert isinstance(neg.args[0], Constant)  # a Constant node is no call
    function = reader.function()
    assert [param.name_hint for param in function.params] == ["x", "h"]
    y, z = function.results
    assert isinstance(y, TupleGetItem)
    assert isinstance(z, TupleGetItem)
    assert (y.tuple_value, y.index, z.index) == (split, 0, 1)
    assert reader.expr(graph.outputs[1]) is z
    assert [call.op.name for _, call in reader.reached()] == ["multiply", "clip", "split"]


def test_a_graph_of_one_output_is_its_expression() -> None:
    function = ExpressionReader(
        parsed("(float[2] x) => (float[2] y) { y = Neg(x) }").main
    ).function()
    assert isinstance(function.body, Call)
    assert function.results == (function.body,)


def test_a_default_is_a_variable() -> None:
    text = "(float[2] x, float[2] d) => (float[2] y) <float[2] d = {1,2}> { y = Add(x, d) }"
    function = ExpressionReader(parsed(text).main).function()
    assert [param.name_hint for param in function.params] == ["x", "d"]


def test_a_function_of_new_expressions_is_a_model() -> None:
    x = relay.var("x", shape=(2, "n"))
    shared = relay.nn.relu(x)
    split = Call(Op("Split", outputs=2), (shared,), {"axis": 0, "num_outputs": 2})
    model = model_of(
        Function([x], Tuple([split[1], shared, x, relay.const(np.ones(2, np.float32))]))
    )
    proto = model.to_proto()
    assert (proto.opset_import[0].version, proto.ir_version) == (21, 10)
    assert sorted(ops(proto)) == ["Identity", "Relu", "Split"]
    given = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    found = list(Session(proto).run({"x": given}).values())
    np.testing.assert_array_equal(found[0], [[0, 5, 0]])
    np.testing.assert_array_equal(found[1], [[1, 0, 3], [0, 5, 0]])
    np.testing.assert_array_equal(found[2], given)
    np.testing.assert_array_equal(found[3], [1, 1])


def test_one_result_twice_is_two_outputs() -> None:
    x = relay.var("x", shape=(2,))
    y = relay.nn.relu(x)
    model = model_of(Function([x], Tuple([y, y])))
    assert len({value.name for value in model.main.outputs}) == 2


def test_an_expression_that_is_used_twice_is_one_node() -> None:
    x = relay.var("x", shape=(2,))
    y = relay.nn.relu(x)
    model = model_of(Function([x], relay.add(relay.multiply(y, y), y)))
    assert sorted(ops(model)) == ["Add", "Mul", "Relu"]


def test_deep_expressions_take_no_stack() -> None:
    x = relay.var("x", shape=(2,))
    y: Any = x
    for _ in range(1500):
        y = relay.nn.relu(y)
    assert len(model_of(Function([x], y)).main.nodes) == 1500


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x: relay.add(x, relay.var("z", shape=(2,))), "the variable 'z' is no input of the"),
        (
            lambda x: Call(Op("Split", outputs=2), (x,), {"num_outputs": 2}),
            "has 2 values: take one by",
        ),
        (
            lambda x: Call(Op("Split", outputs=2), (x,), {"num_outputs": 2})[5],
            "has 0 values: take one",
        ),
        (lambda x: Function([x], x), "cannot be a part of a graph"),
    ],
)
def test_what_is_no_value_is_refused(body: Any, message: str) -> None:
    x = relay.var("x", shape=(2,))
    with pytest.raises(UsageError, match=message):
        model_of(Function([x], body(x)))


def test_an_input_has_a_shape() -> None:
    x = relay.var("x")
    with pytest.raises(UsageError, match=r"the input 'x' needs a shape: relay.var\(name, shape="):
        model_of(Function([x], x))


def test_a_builder_adds_only_what_is_new() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Relu(x) }")
    graph = model.main
    builder, reader = Builder(graph), ExpressionReader(graph)
    (relu,) = reader.calls.values()
    assert builder.value(relu) is graph.outputs[0]
    assert builder.values(None) == (None,)
    assert builder.value(graph.inputs[0]) is graph.inputs[0]
    made = builder.value(Call(Op("nn.relu"), (relu,)))
    assert made.producer is not None
    assert made.producer.inputs == (graph.outputs[0],)
    again = Call(Op("nn.relu"), (relu,))
    assert builder.value(again) is builder.value(again)
    assert len(graph.nodes) == 3


def test_a_node_that_was_removed_is_made_again() -> None:
    graph = parsed("(float[2] x) => (float[2] y) { y = Relu(x) z = Abs(x) }").main
    builder, (_, call) = Builder(graph), ExpressionReader(graph).calls.values()
    (_, node) = graph.nodes
    assert builder.values(call) == node.outputs
    graph.remove_node(node)
    (made,) = builder.values(call)
    assert made is not None
    assert made.producer is graph.nodes[-1]
    assert [each.op_type for each in graph.nodes] == ["Relu", "Abs"]


def test_a_value_of_another_graph_is_made_again() -> None:
    other = ExpressionReader(
        parsed("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }").main
    )
    graph = parsed("(float[2] x) => (float[2] y) { y = Relu(x) }").main
    (add,) = other.calls.values()
    builder = Builder(graph)
    made = builder.value(Call(add.op, (graph.inputs[0], add.args[1])))
    assert made.producer is not None
    weight = made.producer.inputs[1]
    assert weight is not None
    assert weight.owner is graph
    np.testing.assert_array_equal(weight.const, [1, 2])
    with pytest.raises(UsageError, match="the variable 'x' is no input of the function"):
        builder.value(add)


def test_operators_of_other_domains_are_named_whole() -> None:
    graph = parsed("(float[2] x) => (float[2] y) { y = Relu(x) }").main
    made = Builder(graph).value(Call(Op("com.microsoft::Gelu"), (graph.inputs[0],)))
    assert made.producer is not None
    assert (made.producer.domain, made.producer.op_type) == ("com.microsoft", "Gelu")


def test_a_call_that_is_read_keeps_the_form_of_its_opset() -> None:
    text = "(float[2,3] x) => (float[2,1] y) { y = ReduceMean<axes=[1]>(x) }"
    graph = parsed(text, opset=13).main
    (call,) = ExpressionReader(graph).calls.values()
    made = Builder(graph).value(Call(call.op, call.args, call.attrs))
    assert made.producer is not None
    assert (len(made.producer.inputs), made.producer.attributes["axes"]) == (1, (1,))


def nodes_of(model: Any) -> object:
    """Return the nodes of a model, its constants and its outputs."""
    main = model.main
    found = [
        f"{node.operator}{[v and v.name for v in node.inputs]}{dict(node.attributes)}"
        for node in main.topological_order()
    ]
    values = {v.name: v.const.tolist() for v in main.initializers if v.const is not None}
    outputs = [f"{value.name} {value.type}" for value in main.outputs]
    return found, values, outputs, model.opset(), model.ir_version


def test_models_of_functions_are_recorded() -> None:
    def made(*results: Any, params: Any = None) -> object:
        body = results[0] if len(results) == 1 else Tuple(results)
        return nodes_of(model_of(Function((x, z) if params is None else params, body)))

    def renamed(call: Any, name: str) -> Any:
        call.op = Op(name)
        return call

    def again(text: str) -> object:
        """Return the nodes of a graph to which a call of the first call is added, and the items."""
        model = parsed(f"(float[2,4] x) => (y, v) <float[4] w = {{1,2,3,4}}> {{ {text} }}")
        builder, reader = Builder(model.main), ExpressionReader(model.main)
        (call,) = reader.calls.values()
        builder.values(Call(Op("Abs"), (call,)))
        nodes = [
            f"{node.op_type}{[v and v.name for v in node.inputs]}" for node in model.main.nodes
        ]
        return nodes, [
            builder.value(TupleGetItem(call, at)).name for at in (0, len(call.values) - 1)
        ]

    def absent() -> object:
        model = parsed("(float[4] x) => (y, v) { y, , v = LayerNormalization(x, x) }")
        (call,) = ExpressionReader(model.main).calls.values()
        return Builder(model.main).value(TupleGetItem(call, 1))

    x, z = relay.var("x", shape=(2, "n")), relay.var("z", shape=(2, 4), dtype="int8")
    names = {
        "renamed": renamed, "again": again, "absent": absent,
        "made": made, "x": x, "z": z, "relay": relay, "Call": Call, "Op": Op, "Tuple": Tuple,
        "TupleGetItem": TupleGetItem, "Var": Var,
    }  # fmt: skip
    assert_values(__file__, names)
