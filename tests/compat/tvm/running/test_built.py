"""`relay.build`: the optimised model, its parts, and its weights."""

import json
from typing import Any

import numpy as np
import onnx
import pytest

from tests.recorded import assert_values
from tests.small import ops, parsed
from tiered import Model
from tiered.compat import tvm
from tiered.compat.tvm import relay
from tiered.compat.tvm.running.built import Built, build
from tiered.support.errors import ModelError, UsageError
from tiered.testing import parse

TEXT = """(float[2,2] x) => (float[2,2] y, float[2,2] z) <float[2,2] w = {1,2,3,4}> {
    a = Identity(x)  y = MatMul(a, w)  z = Neg(y) }"""


def test_a_model_is_optimised_in_place_and_a_proto_is_copied() -> None:
    proto = parse(TEXT)
    made = build(proto)
    assert isinstance(made.module, onnx.ModelProto)
    assert (ops(made.module), ops(proto)) == (["MatMul", "Neg"], ["Identity", "MatMul", "Neg"])
    model = parsed(TEXT)
    assert build(model).module is model
    assert ops(model) == ["MatMul", "Neg"]
    graph = parsed(TEXT).main
    of_graph = build(graph)
    assert isinstance(of_graph.module, Model)
    assert ops(of_graph.module) == ["MatMul", "Neg"]
    assert len(graph.nodes) == 3


def test_a_built_model_is_a_triple_and_has_what_the_model_has() -> None:
    made = build(parse(TEXT))
    graph, lib, params = made
    assert (lib, made.get_lib(), made["default"](tvm.cpu())) == (made, made, made)
    assert list(params) == ["w"]
    np.testing.assert_array_equal(params["w"], [[1, 2], [3, 4]])
    assert json.loads(graph) == json.loads(made.get_graph_json())
    assert made.graph.name == parse(TEXT).graph.name
    assert made == made.module
    assert made == Built(made.module)
    assert made != build(parse(TEXT.replace("Neg", "Abs")))
    with pytest.raises(UsageError, match="a built model has one function, 'default', not 'main'"):
        made["main"]
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


def test_the_graph_has_inputs_and_weights_before_the_nodes() -> None:
    text = """(float[4] x, float h, float[4] d) => (float[2] z, float[2] y)
        <float[4] w = {1,2,3,4}, float[4] d = {1,2,3,4}> {
        a = Mul(x, w)  c = Clip(a, , h)  s = Add(c, d)  y, z = Split<num_outputs=2>(s) }"""
    nodes = json.loads(Built(parse(text)).get_graph_json())
    assert [(node["op"], node["name"]) for node in nodes["nodes"][:4]] == [
        ("null", "x"), ("null", "h"), ("null", "d"), ("null", "w"),
    ]  # fmt: skip
    assert [(node["op"], node["inputs"]) for node in nodes["nodes"][4:]] == [
        ("Mul", [[0, 0, 0], [3, 0, 0]]),
        ("Clip", [[4, 0, 0], [1, 0, 0]]),
        ("Add", [[5, 0, 0], [2, 0, 0]]),
        ("Split", [[6, 0, 0]]),
    ]
    assert (nodes["arg_nodes"], nodes["heads"]) == ([0, 1, 2, 3], [[7, 1, 0], [7, 0, 0]])


def test_the_third_argument_is_a_host() -> None:
    for host in ("llvm", tvm.target.Target("llvm"), None):
        build(parse(TEXT), "llvm", host)
    wrong: Any = {"w": np.ones((2, 2), np.float32)}
    with pytest.raises(
        UsageError, match=r"the third argument of build is target_host, .*params=\{"
    ):
        build(parse(TEXT), "llvm", wrong)


def test_the_target_is_the_backend() -> None:
    text = """(float[2,3,4] x, float[2,3,4] s) => (float[2,3,4] y) <float[4] g = {1,2,3,4},
        float[4] b = {0,0,0,0}> { a = Add(x, s)  y = LayerNormalization<axis=-1>(a, g, b) }"""
    fuse: dict[str, Any] = {"passes": "fuse_skip_layernorm"}
    assert ops(build(parse(text), "llvm", **fuse).module) == ["SkipLayerNormalization"]
    with tvm.target.Target("llvm"):
        assert ops(build(parse(text), **fuse).module) == ["SkipLayerNormalization"]
        made = build(parse(text), "tensorrt", **fuse)  # it counts more than that of the context
    assert ops(made.module) == ["Add", "LayerNormalization"]
    assert ops(build(parse(TEXT), passes="eliminate_deadend").module) == [
        "Identity",
        "MatMul",
        "Neg",
    ]


def test_weights_get_other_numbers() -> None:
    new = np.array([[5, 6], [7, 8]], np.float32)
    np.testing.assert_array_equal(build(parse(TEXT), params={"w": new}).get_params()["w"], new)
    np.testing.assert_array_equal(
        build(parse(TEXT), params={"w": tvm.nd.array(new)}).get_params()["w"], new
    )


@pytest.mark.parametrize(
    ("params", "kind", "message"),
    [
        (
            {"v": np.ones((2, 2))},
            UsageError,
            "^build: the model has no weight 'v'$",
        ),
        ({"x": np.ones((2, 2))}, UsageError, "the model has no weight 'x'"),
        ({"y": np.ones((2, 2))}, UsageError, "the model has no weight 'y'"),
        ({"w": np.ones((2, 3), np.float32)}, ModelError, "w"),
        ({"w": np.array([1, 2, 3, 4], np.float32)}, ModelError, "w"),
        ({"w": np.array([[1, 2], [3, 4]])}, ModelError, "w"),
    ],
)
def test_a_weight_is_there_and_keeps_its_type(params: Any, kind: Any, message: str) -> None:
    model = parsed(TEXT)
    before = model.to_proto()
    with pytest.raises(kind, match=message):
        build(model, params=params)
    assert model.to_proto() == before


def test_a_function_of_relay_is_built() -> None:
    x = relay.var("x", shape=(2, 2))
    assert ops(build(relay.Function([x], relay.nn.relu(x))).module) == ["Relu"]


def test_what_is_built_is_recorded() -> None:
    def view(of: Any) -> Any:
        model = of.module if isinstance(of.module, Model) else Model.from_proto(of.module)
        weights = {v.name: v.const.tolist() for v in model.main.initializers if v.const is not None}
        return [node.op_type for node in model.main.topological_order()], weights

    names = {
        "build": build, "view": view, "TEXT": TEXT, "parse": parse, "parsed": parsed, "np": np,
        "made": build(parse(TEXT)), "Built": Built, "tvm": tvm,
        "DEFAULTS": "(float[2] x, float[2] d) => (float[2] y, float[2] k, float[1] q) "
        "<float[2] d = {1,2}> { c = Constant<value_floats = [3.0, 4.0]>() y = Add(x, d) "
        "k = Mul(x, c) a, q = Split<num_outputs = 2>(k) }",
    }  # fmt: skip
    assert_values(__file__, names)
