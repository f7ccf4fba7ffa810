"""Relay expressions: functions that are built, visited and mutated as TVM's tutorials do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from tests.recorded import assert_values
from tests.small import parsed
from tiered import Model
from tiered.compat import tvm
from tiered.compat.tvm import relay
from tiered.compat.tvm.expressions import expr
from tiered.compat.tvm.expressions.functors import ExprMutator, ExprVisitor
from tiered.graph import Graph
from tiered.runtime import run
from tiered.support.errors import UsageError
from tiered.testing import parse

NESTED = """(float[n,2] x, bool k) => (float[n,2] y, float[n,2] z) <float[2] w = {1, 2}> {
    a = Add(x, w) b = Identity(a) y = Relu(b) d = Neg(x)
    z = If(k) <then_branch = t () => (float[n,2] p) { p = Exp(b) },
               else_branch = e () => (float[n,2] q) { q = Abs(a) }> }"""


def ops(model: Model) -> list[str]:
    return [node.op_type for node in model.main.topological_order()]


def module(text: str) -> Any:
    return relay.frontend.from_onnx(parse(text))[0]


def example() -> Any:
    """Return the function of TVM's tutorial "How to use TVM pass infra", with smaller tensors."""
    shape = (1, 4, 4, 4)
    c_data = np.ones(shape).astype("float32")
    c = relay.const(c_data)
    weight = relay.var("weight", shape=(4, 4, 3, 3))
    x = relay.var("x", relay.TensorType((1, 4, 6, 6), "float32"))
    conv = relay.nn.conv2d(x, weight)
    y = relay.add(c, c)
    y = relay.multiply(y, relay.const(2, "float32"))
    y = relay.add(conv, y)
    z = relay.add(y, c)
    z1 = relay.add(y, c)
    z2 = relay.add(z, z1)
    return relay.Function([x, weight], z2)


def result(model: Model, **feeds: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    onnx.checker.check_model(model.to_proto(), full_check=True)
    (found,) = run(model.to_proto(), feeds).values()
    return np.asarray(found)


def test_the_tutorial_of_the_pass_infrastructure() -> None:
    mod = tvm.IRModule.from_expr(example())
    assert ops(mod) == ["Add", "Mul", "Conv", "Add", "Add", "Add", "Add"]
    feeds = {
        "x": np.random.default_rng(0).random((1, 4, 6, 6), np.float32),
        "weight": np.random.default_rng(1).random((4, 4, 3, 3), np.float32),
    }
    expected = result(mod, **feeds)
    seq = tvm.transform.Sequential(
        [
            relay.transform.FoldConstant(),
            relay.transform.EliminateCommonSubexpr(),
            relay.transform.FuseOps(fuse_opt_level=2),
        ]
    )
    with tvm.transform.PassContext(opt_level=3):
        fused = seq(tvm.IRModule.from_expr(example()))
    assert [len(function.nodes) for function in fused.functions] == [4]
    np.testing.assert_array_equal(result(fused, **feeds), expected)

    @relay.transform.function_pass(opt_level=1)
    class CustomPipeline:
        """The class of the tutorial."""

        def __init__(self, multiplier: Any) -> None:
            self.multiplier = multiplier

        def transform_function(self, func: Any, mod: Any, ctx: Any) -> Any:
            obj = self

            class ReplaceConstant(ExprMutator):
                def visit_constant(self, c: Any) -> Any:
                    return relay.multiply(obj.multiplier, c)

            return ReplaceConstant().visit(func)

    construct: Any = CustomPipeline
    custom_pass = construct(multiplier=relay.const(3, "float32"))
    assert custom_pass.info.name == "CustomPipeline"
    mod3 = custom_pass(tvm.IRModule.from_expr(example()))
    zero = {**feeds, "weight": feeds["weight"] * 0}
    assert result(mod, **zero).flat[0] == 2 * (2 * 2 + 1)
    assert result(mod3, **zero).flat[0] == 2 * ((3 + 3) * 6 + 3)


def test_a_large_constant_is_folded_as_in_tvm() -> None:
    """The tutorial's own constant is of 746 KB; a share of the model is the limit elsewhere."""
    c = relay.const(np.ones((1, 64, 54, 54), np.float32))
    x = relay.var("x", shape=(1, 64, 54, 54))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(x, relay.add(c, c)) + c))
    assert ops(relay.transform.FoldConstant()(mod)) == ["Add", "Add"]


class Counts(ExprVisitor):
    """Counts calls by the name of the operator."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.leaves: list[str] = []

    def visit_call(self, call: Any) -> Any:
        self.names.append(call.op.name)
        super().visit_call(call)

    def visit_var(self, var: Any) -> Any:
        self.leaves.append(var.name_hint)

    def visit_constant(self, const: Any) -> Any:
        self.leaves.append(str(const.data.numpy().tolist()))


def test_a_visitor_sees_each_expression_that_an_output_needs_once() -> None:
    for given in (module(NESTED)["main"], module(NESTED)):
        visitor = Counts()
        visitor.visit(given)
        assert sorted(visitor.names) == ["If", "abs", "add", "copy", "exp", "nn.relu"]
        assert set(visitor.leaves) == {"[1.0, 2.0]", "k", "x", "a", "b"}
    visitor = Counts()
    visitor.visit(example())
    assert sorted(visitor.names) == ["add"] * 5 + ["multiply", "nn.conv2d"]
    seen: list[str] = []
    relay.analysis.post_order_visit(
        module(NESTED)["main"], lambda expr: seen.append(type(expr).__name__)
    )
    assert seen.count("Call") == 6
    assert seen[-1] == "Function"


def test_a_call_has_names_attributes_and_types() -> None:
    mod = module(
        "(float[1,2,4,4] x, float[2,2,3,3] w) => (float[1,2,2,2] y) {"
        " c = Conv<kernel_shape=[3,3], pads=[0,0,0,0]>(x, w) y = LeakyRelu<alpha=0.5>(c) }"
    )
    calls: list[Any] = []
    relay.analysis.post_order_visit(
        mod["main"], lambda expr: calls.append(expr) if isinstance(expr, relay.Call) else None
    )
    conv, leaky = calls
    assert (conv.op.name, leaky.op.name) == ("nn.conv2d", "nn.leaky_relu")
    assert conv.op == relay.op.get("nn.conv2d") != leaky.op
    assert list(conv.attrs.kernel_size) == [3, 3]
    assert list(conv.attrs["pads"]) == list(conv.attrs.padding) == [0, 0, 0, 0]
    assert leaky.attrs.alpha == 0.5
    with pytest.raises(AttributeError, match="no attribute 'alhpa'; did you mean 'alpha'"):
        leaky.attrs.alhpa  # noqa: B018  # raises
    assert conv.checked_type == relay.TensorType((1, 2, 2, 2), "float32")
    assert [arg.name_hint for arg in conv.args] == ["x", "w"]
    assert conv.args[0].type_annotation.shape == (1, 2, 4, 4)
    assert leaky.args[0] is conv


class AddToMul(ExprMutator):
    """A visit_call as TVM's passes write it."""

    def visit_call(self, call: Any) -> Any:
        new_fn = self.visit(call.op)
        new_args = [self.visit(arg) for arg in call.args]
        if call.op == relay.op.get("add"):
            return relay.Call(relay.op.get("multiply"), new_args, call.attrs)
        if call.op.name == "copy":
            return relay.tanh(new_args[0])
        if call.op.name == "If":
            return super().visit_call(call)
        return relay.Call(new_fn, new_args, call.attrs, call.type_args, call.span)


def test_a_mutator_makes_another_graph_and_bodies_read_it() -> None:
    mod = module(NESTED)
    before = mod.to_proto()
    made = AddToMul().visit(mod["main"])
    assert isinstance(made, Graph)
    assert isinstance(made.model, Model)
    assert mod.to_proto() == before
    proto = made.model.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    assert sorted(node.op_type for node in proto.graph.node) == ["If", "Mul", "Neg", "Relu", "Tanh"]
    x = np.array([[1, 3]], np.float32)
    for k in (True, False):
        y, z = run(proto, {"x": x, "k": np.array(k)}).values()
        np.testing.assert_allclose(y, np.tanh(x * [1, 2]), rtol=1e-6)
        product = x * np.array([1, 2], np.float32)
        np.testing.assert_allclose(z, np.exp(np.tanh(product)) if k else product, rtol=1e-6)


def test_operands_of_nodes_with_bodies_are_exchanged() -> None:
    class NotK(ExprMutator):
        def visit_var(self, var: Any) -> Any:
            return relay.logical_not(var) if var.name_hint == "k" else var

        def visit_function(self, fn: Any) -> Any:
            return relay.Function(fn.params, self.visit(fn.body))

    made = NotK().visit(module(NESTED)["main"]).model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    feeds = {"x": np.array([[1, 3]], np.float32), "k": np.array(True)}
    _, z = run(made, feeds).values()
    np.testing.assert_array_equal(z, [[2, 5]])


def test_local_functions_and_bodies_are_mutated_by_a_function_pass() -> None:
    source = """<ir_version: 10, opset_import: ["" : 21, "l" : 1]> g (float[2] x, bool k) =>
        (float[2] y) { a = l.F(x) y = If(k) <then_branch = t () => (float[2] p) { p = Add(a, x) },
        else_branch = e () => (float[2] q) { q = Identity(a) }> }
        <domain: "l", opset_import: ["" : 21]> F (s) => (r) { r = Add(s, s) }"""

    @relay.transform.function_pass(opt_level=0)
    class Mutates:
        def transform_function(self, func: Any, mod: Any, ctx: Any) -> Any:
            return AddToMul().visit(func)

    construct: Any = Mutates
    made = construct()(relay.frontend.from_onnx(onnx.parser.parse_model(source))[0])
    found = result(made, x=np.array([2, 3], np.float32), k=np.array(True))
    np.testing.assert_array_equal(found, [8, 27])


def test_what_is_unchanged_stays_as_it_is() -> None:
    mod = module(NESTED)
    assert relay.ExprMutator().visit(mod["main"]) is mod.main
    (body, _) = mod.main.nodes_of("If")[0].bodies
    assert AddToMul().visit(body) is body
    function = example()
    assert relay.ExprMutator().visit(function) is function


@pytest.mark.parametrize(
    ("mutate", "reason"),
    [
        (lambda self, call: 3, "returned 3: expected an expression"),
        (lambda self, call: relay.var("z", shape=(2,)), "variable 'z' is no input of the function"),
        (lambda self, call: relay.Call("add", call.args), "a call is of an operator"),
        (lambda self, call: relay.Call(call.op, ["x"]), "an operand is an expression or a number"),
    ],
)
def test_what_a_mutator_cannot_return(mutate: Callable[[Any, Any], Any], reason: str) -> None:
    mutator = type("Wrong", (ExprMutator,), {"visit_call": mutate})
    with pytest.raises(UsageError, match=reason):
        mutator().visit(module("(float[2] x) => (float[2] y) { y = Abs(x) }")["main"])
    with pytest.raises(UsageError, match="visits a graph or an expression, not 3"):
        relay.ExprVisitor().visit(3)


def _of(build: Callable[..., Any], *shapes: tuple[int, ...]) -> Model:
    params = [relay.var(f"v{at}", shape=shape) for at, shape in enumerate(shapes)]
    return tvm.IRModule.from_expr(relay.Function(params, build(*params)))


@pytest.mark.parametrize(
    ("build", "shapes", "expected"),
    [
        (lambda a, b: (a - b) / b * a + -b, ((2,), (2,)), lambda a, b: (a - b) / b * a - b),
        (lambda a: relay.nn.softmax(a, axis=0), ((2, 2),), None),
        (lambda a: relay.transpose(a, axes=(1, 0)), ((2, 3),), lambda a: a.T),
        (lambda a: relay.reshape(a, newshape=(3, -1)), ((2, 3),), lambda a: a.reshape(3, 2)),
        (relay.nn.batch_flatten, ((2, 3, 2),), lambda a: a.reshape(2, 6)),
        (lambda a, b: relay.concatenate((a, b), axis=1), ((2, 1), (2, 2)), None),
        (lambda a: relay.expand_dims(a, axis=1), ((2, 3),), lambda a: a[:, None]),
        (lambda a: relay.squeeze(a, axis=[1]), ((2, 1),), lambda a: a[:, 0]),
        (lambda a: relay.sum(a, axis=1), ((2, 3),), lambda a: a.sum(axis=1)),
        (lambda a: relay.op.mean(a, axis=[0], keepdims=True), ((2, 3),), None),
        (lambda a: relay.clip(a, a_min=0.5, a_max=1), ((4,),), lambda a: a.clip(0.5, 1)),
        (lambda a: relay.cast(relay.cast(a, "int32"), dtype="float32"), ((4,),), np.trunc),
        (relay.nn.dense, ((2, 3), (4, 3)), lambda a, w: a @ w.T),
        (
            lambda a, w, b: relay.nn.bias_add(relay.nn.dense(a, w), b),
            ((2, 3), (4, 3), (4,)),
            lambda a, w, b: a @ w.T + b,
        ),
        (lambda a: relay.nn.leaky_relu(a, alpha=0.5), ((4,),), None),
        (lambda a: relay.take(a, relay.const([1], "int64"), axis=0), ((2,),), lambda a: a[1:]),
        (
            lambda a: relay.nn.max_pool2d(a, pool_size=(2, 2), strides=(2, 2)),
            ((1, 1, 4, 4),),
            lambda a: a.reshape(1, 1, 2, 2, 2, 2).max(axis=(3, 5)),
        ),
        (
            lambda a: relay.nn.avg_pool2d(a, pool_size=(2, 2), strides=(2, 2)),
            ((1, 1, 4, 4),),
            lambda a: a.reshape(1, 1, 2, 2, 2, 2).mean(axis=(3, 5)),
        ),
        (
            lambda a, w, b: relay.nn.bias_add(
                relay.nn.conv2d(a, w, padding=1, kernel_size=(3, 3), channels=2), b
            ),
            ((1, 1, 4, 4), (2, 1, 3, 3), (2,)),
            None,
        ),
        (
            lambda a, g, b, m, v: relay.nn.batch_norm(a, g, b, m, v)[0],
            ((1, 2, 2), (2,), (2,), (2,), (2,)),
            None,
        ),
    ],
)
def test_functions_of_relay_make_operators_of_onnx(
    build: Callable[..., Any], shapes: Any, expected: Callable[..., Any] | None
) -> None:
    source = np.random.default_rng(3)
    feeds = {f"v{at}": source.random(shape, np.float32) + 0.5 for at, shape in enumerate(shapes)}
    found = result(_of(build, *shapes), **feeds)
    if expected is not None:
        np.testing.assert_allclose(found, expected(*feeds.values()), rtol=1e-5)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda a: relay.nn.conv2d(a, a, data_layout="NHWC"), "data_layout is NCHW in ONNX"),
        (lambda a: relay.add(a, a, axis=1), r"relay\.add takes no axis"),
        (relay.nn.lrn, r"relay\.nn\.lrn makes no call here: relay\.Call\("),
        (lambda a: relay.nn.bias_add(a, a, axis=1), "takes the last axis"),
        (lambda a: relay.mean(a, axis=0, exclude=True), "name the axes to reduce"),
        (lambda a: relay.cast(a, "float31"), "there is no dtype 'float31'"),
        (lambda a: relay.var("b"), "variable 'b' is no input"),
    ],
)
def test_what_relay_functions_cannot_make(build: Callable[..., Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        _of(build, (2, 2))


def test_names_that_relay_has_not() -> None:
    with pytest.raises(AttributeError, match="no operator 'nn\\.rleu'; did you mean"):
        relay.nn.rleu  # noqa: B018  # raises
    with pytest.raises(UsageError, match="the input 'x' needs a shape"):
        tvm.IRModule.from_expr(relay.Function([relay.var("x")], relay.const(1)))
    with pytest.raises(UsageError, match="a type or a shape, not both"):
        relay.var("x", relay.TensorType((1,)), shape=(1,))


def test_a_callback_makes_nodes_by_functions_of_relay() -> None:
    pattern_module = relay.dataflow_pattern

    class ReluToTanh(pattern_module.DFPatternCallback):  # type: ignore[misc, name-defined]  # a module
        def __init__(self) -> None:
            super().__init__()
            self.x = pattern_module.wildcard()
            self.pattern = pattern_module.is_op("nn.relu")(self.x)

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            return relay.multiply(relay.tanh(node_map[self.x][0]), relay.const(2.0))

    made = pattern_module.rewrite(ReluToTanh(), module(NESTED))
    assert sorted(ops(made)) == ["Add", "Identity", "If", "Mul", "Neg", "Tanh"]


def test_expressions_are_recorded() -> None:
    view = parsed(
        "(float[2,n] x, own, int64[k] i) => (float[2,n] y, float[1] p, float[1] q)"
        " <float[2] w = {1, 2}> { a = Softmax<axis = 1>(x) y = Relu(a) p, q = Split(w)"
        " r = own.f(x) g = Reshape(x, i) o = Neg(r) }"
    )
    names = {
        **vars(expr),
        "np": np,
        "nodes": list(view.main.nodes),
        "values": view.main.values,
    }
    assert_values(__file__, names)
