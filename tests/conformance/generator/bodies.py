"""Steps with bodies, and local functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import onnx
from onnx import GraphProto, helper

from tests.conformance.generator.scope import Known, Scope, declared


def body_of(
    scope: Scope, name: str, inputs: Sequence[Known], results: Sequence[Known]
) -> tuple[GraphProto, list[Known]]:
    """Return a graph that gives values of the dtypes and shapes of `results`, then one more value.

    What it gives is returned too; the last is what the graph has computed last.
    """
    inner = replace(
        scope, seen=[*scope.seen, *inputs], nodes=[], initializers=[], depth=scope.depth + 1
    )
    for _ in range(scope.random.randint(1, 3)):
        scope.grow(inner)
    made = [value for value in inner.seen[len(scope.seen) :] if not value.const]
    sources = [_source(inner, result, made) for result in results]
    sources.append(made[-1] if made else sources[-1])
    outputs = [inner.add("Identity", [source], source.dtype, source.shape) for source in sources]
    takes, gives = ([declared(scope, v) for v in values] for values in (inputs, outputs))
    return helper.make_graph(inner.nodes, name, takes, gives, inner.initializers), outputs


def _source(inner: Scope, result: Known, made: Sequence[Known]) -> Known:
    """Return a value of the type of `result`, if possible one that the body computes."""
    kind = (result.dtype, result.shape)
    fitting = [value for value in made if (value.dtype, value.shape) == kind]
    outer = [value for value in inner.seen if (value.dtype, value.shape) == kind]
    return inner.random.choice(fitting or outer)


def _without_last(body: GraphProto) -> GraphProto:
    del body.output[-1]
    return body


def branches(scope: Scope) -> None:
    x = scope.some(scope.dtypes)
    condition = _condition(scope)
    if condition is not None:
        bodies = {
            f"{side}_branch": _without_last(body_of(scope, side, [], [x])[0])
            for side in ("then", "else")
        }
        scope.add("If", [condition], x.dtype, x.shape, **bodies)


def _condition(scope: Scope) -> Known | None:
    found = [value for value in scope.seen if (value.dtype, value.shape) == ("bool", ())]
    if found and scope.random.random() < 0.5:
        return scope.random.choice(found)
    # The largest of numbers and NaN is one thing to onnxruntime and another to onnx.reference.
    if scope.is_simple or scope.random.random() < 0.5:
        return scope.constant(np.array(scope.random.random() < 0.5))
    number = scope.some(["float32"])
    if not all(number.shape):
        return None
    total = scope.add("ReduceMax", [number], "float32", (), keepdims=0)
    zero = scope.constant(np.array(0, np.float32))
    return scope.add("Less", [total, zero], "bool", ())


def loop(scope: Scope) -> None:
    """Add a Loop of some iterations, which may end early, and may collect what it computes.

    onnx.reference joins what is collected along an axis that is there, and does not begin without
    a condition. Rows of no turns have the dims that onnxruntime happens to infer of them.
    """
    if scope.opset < 11:
        return
    random = scope.random
    x = scope.some(scope.dtypes)
    count = random.randint(0, 3)
    number = Known(scope.fresh("i"), "int64", ())
    goes_on = Known(scope.fresh("k"), "bool", ())
    state = Known(scope.fresh("s"), x.dtype, x.shape)
    inputs = [number, goes_on, state]
    body, outputs = body_of(scope, "body", inputs, [Known("", "bool", ()), state])
    source = next(node for node in body.node if node.output[0] == body.output[0].name)
    if random.random() < 0.3:
        last = random.randint(0, 3)
        limit, test = scope.constant(np.array(last, np.int64)), scope.fresh()
        body.node.insert(0, helper.make_node("Less", [number.name, limit.name], [test]))
        source.input[0] = test
        count = min(count, last + 1)
    else:
        # A body that goes on as long as it is told to, so that it ends.
        source.input[0] = goes_on.name
    most = count if random.random() < 0.5 or source.input[0] == goes_on.name else 10
    trips = scope.constant(np.array(most, np.int64))
    has_condition = scope.is_simple or random.random() < 0.7
    condition = scope.constant(np.array(True)) if has_condition else None
    kinds = [(x.dtype, x.shape)]
    if not scope.is_simple and random.random() < 0.4 and count:
        kinds.append((outputs[-1].dtype, (count, *outputs[-1].shape)))
    else:
        _without_last(body)
    scope.add_many("Loop", [trips, condition, x], kinds, body=body)


def scan(scope: Scope) -> None:
    """Add a Scan over the rows of something, with one state."""
    if scope.opset < 9:
        return
    x, rows = scope.some(scope.dtypes), scope.some(scope.dtypes, least=1)
    if not rows.shape[0]:
        return
    state = Known(scope.fresh("s"), x.dtype, x.shape)
    row = Known(scope.fresh("r"), rows.dtype, rows.shape[1:])
    body, outputs = body_of(scope, "body", [state, row], [state])
    collected = (outputs[-1].dtype, (rows.shape[0], *outputs[-1].shape))
    scope.add_many("Scan", [x, rows], [(x.dtype, x.shape), collected], body=body, num_scan_inputs=1)


# --- local functions ------------------------------------------------------------------------------


def functions(random: Random, opset: int) -> list[onnx.FunctionProto]:
    """Return functions of float matrices of any shape: one that computes, one that calls it."""
    return [_chain(random, opset), _choice(opset)]


def _chain(random: Random, opset: int) -> onnx.FunctionProto:
    """Return a function with an attribute that it passes on."""
    ops = [random.choice(("Relu", "Neg", "Abs", "Sigmoid", "Identity")) for _ in range(3)]
    nodes, last = [], "a"
    for index, op in enumerate(ops):
        nodes.append(helper.make_node(op, [last], [f"t{index}"]))
        last = f"t{index}"
    leaky = helper.make_node("LeakyRelu", [last], ["b"])
    attribute = leaky.attribute.add()
    attribute.name, attribute.ref_attr_name = "alpha", "slope"
    attribute.type = onnx.AttributeProto.FLOAT
    nodes.append(leaky)
    imports = [helper.make_opsetid("", opset)]
    return helper.make_function("local", "F", ["a"], ["b"], nodes, imports, attributes=["slope"])


def _choice(opset: int) -> onnx.FunctionProto:
    """Return a function whose body has bodies, one of which calls a function."""
    gives = [helper.make_empty_tensor_value_info(name) for name in ("p", "q")]
    for info in gives:
        info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    call = helper.make_node("F", ["a"], ["p"], domain="local", slope=0.5)
    negate = helper.make_node("Neg", ["a"], ["q"])
    bodies = [
        helper.make_graph([node], side, [], [info])
        for node, side, info in zip((call, negate), ("then", "else"), gives, strict=True)
    ]
    choice = helper.make_node("If", ["c"], ["b"], then_branch=bodies[0], else_branch=bodies[1])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_function("local", "G", ["a", "c"], ["b"], [choice], imports)


def call(scope: Scope) -> None:
    if not scope.functions:
        return
    x = scope.some(["float32"])
    if scope.random.random() < 0.7:
        slope = {"slope": 0.25} if scope.random.random() < 0.7 else {}
        scope.add_many("F", [x], [(x.dtype, x.shape)], domain="local", **slope)
        return
    condition = _condition(scope)
    if condition is not None:
        scope.add_many("G", [x, condition], [(x.dtype, x.shape)], domain="local")
