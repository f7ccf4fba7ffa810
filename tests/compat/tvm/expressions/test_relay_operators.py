"""The operators of relay as functions, over those of ONNX, in graphs of every opset."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from tests.recorded import assert_values
from tests.small import parsed
from tiered import Model, Node
from tiered.compat.tvm import relay
from tiered.compat.tvm.expressions.building import ExpressionReader
from tiered.compat.tvm.expressions.expr import Call, Constant, Op, Tuple
from tiered.compat.tvm.expressions.relay_operators import PREFIXES, Namespace, function_of, get
from tiered.compat.tvm.patterns.operator_names import OPERATORS
from tiered.graph.opset.newest_form import NoEquivalentForm
from tiered.runtime import Session
from tiered.support.errors import UsageError

X = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4) - 40


def built(make: Callable[[Any], Any], opset: int = 21) -> tuple[Model, Node]:
    """Return a model with the node of a function of relay as its output."""
    model = parsed("(float[2,3,4,4] x) => (float[2,3,4,4] n) { n = Neg(x) }", opset=opset)
    value = make(model.main.inputs[0])
    model.main.add_output(value)
    onnx.checker.check_model(model.to_proto(), full_check=True)
    return model, value.producer


def computed(make: Callable[[Any], Any], opset: int = 21) -> Any:
    """Return what a function of relay computes of X."""
    model, node = built(make, opset)
    return Session(model.to_proto()).run({"x": X})[node.outputs[0].name]  # type: ignore[union-attr]  # it is there


@pytest.mark.parametrize("opset", [11, 13, 17, 21])
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x: relay.mean(x, axis=[1], keepdims=True), X.mean(1, keepdims=True)),
        (lambda x: relay.sum(x, axis=(1, 2)), X.sum((1, 2))),
        (lambda x: relay.max(x, axis=-1), X.max(-1)),
        (relay.min, X.min()),
        (lambda x: relay.squeeze(relay.expand_dims(x, 0), 0), X),
        (lambda x: relay.clip(x, -1.0, 2.5), X.clip(-1, 2.5)),
        (lambda x: relay.reshape(x, (0, -1)), X.reshape(2, 48)),
        (lambda x: relay.transpose(x, (0, 2, 3, 1)), X.transpose(0, 2, 3, 1)),
        (relay.transpose, X.transpose()),
        (lambda x: relay.concatenate((x, x), axis=1), np.concatenate([X, X], 1)),
        (lambda x: relay.nn.leaky_relu(x, alpha=0.25), np.where(X < 0, X * 0.25, X)),
        (lambda x: relay.cast(x, "int32"), X.astype(np.int32)),
        (lambda x: relay.take(x, np.array([1, 0]), axis=2), X[:, :, [1, 0]]),
        (lambda x: relay.add(x, 2.0), X + 2),
        (relay.nn.batch_flatten, X.reshape(2, 48)),
    ],
)  # fmt: skip
def test_a_function_has_the_form_of_the_opset(make: Any, expected: Any, opset: int) -> None:
    np.testing.assert_allclose(computed(make, opset), expected, rtol=1e-6)


@pytest.mark.parametrize("opset", [13, 21])
def test_a_softmax_is_over_one_axis(opset: int) -> None:
    raised = np.exp(X / 10)
    found = computed(lambda x: relay.nn.softmax(relay.multiply(x, 0.1), axis=1), opset)
    np.testing.assert_allclose(found, raised / raised.sum(1, keepdims=True), rtol=1e-4)


def test_a_softmax_of_an_old_opset_is_refused_where_it_would_flatten() -> None:
    with pytest.raises(NoEquivalentForm, match="Softmax would flatten the dims after its axis"):
        built(lambda x: relay.nn.softmax(x, axis=1), 11)
    built(relay.nn.softmax, 11)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -3])
def test_slopes_belong_to_an_axis(axis: int) -> None:
    count = X.shape[axis]
    slopes = np.arange(1, count + 1, dtype=np.float32)
    found = computed(lambda x: relay.nn.prelu(x, slopes, axis=axis))
    shape = [1] * 4
    shape[axis] = count
    np.testing.assert_array_equal(found, np.where(X < 0, X * slopes.reshape(shape), X))


def test_slopes_belong_to_axis_1_by_default_and_to_data_of_known_rank() -> None:
    x = relay.var("x", shape=(2, 3, 4))
    data, slopes = relay.nn.prelu(x, relay.var("s", shape=(3,))).args
    assert (data, slopes.op.name) == (x, "expand_dims")
    last = relay.const(np.ones(3, np.float32))
    assert relay.nn.prelu(relay.var("x", shape=(2, 3)), last).args[1] is last
    whole = relay.const(np.ones((3, 1), np.float32))
    assert relay.nn.prelu(x, whole).args[1] is whole
    with pytest.raises(UsageError, match="needs data of a known rank"):
        relay.nn.prelu(relay.add(x, x), whole)
    for axis in (3, -4):
        with pytest.raises(UsageError, match=f"data of 3 dims has no axis {axis}"):
            relay.nn.prelu(x, whole, axis)


@pytest.mark.parametrize(
    ("padding", "pads"),
    [(1, [1, 1, 1, 1]), ((1,), [1, 1, 1, 1]), ((1, 0), [1, 0, 1, 0]), ((1, 2, 0, 3), [1, 2, 0, 3])],
)
def test_padding_is_for_both_ends_or_each(padding: Any, pads: list[int]) -> None:
    weight = np.ones((2, 3, 2, 2), np.float32)
    conv = relay.nn.conv2d(relay.var("x", shape=X.shape), weight, padding=padding)
    assert conv.attrs == {"strides": [1, 1], "pads": pads, "dilations": [1, 1], "group": 1}
    assert relay.nn.max_pool2d(relay.var("x", shape=X.shape), padding=padding).attrs["pads"] == pads


@pytest.mark.parametrize("padding", [(), (1, 1, 1), (1,) * 5])
def test_padding_has_no_other_number_of_ends(padding: Any) -> None:
    with pytest.raises(UsageError, match=r"padding is one number, one for each axis or all four"):
        relay.nn.max_pool2d(relay.var("x", shape=X.shape), padding=padding)


def test_a_convolution_has_its_attributes() -> None:
    x, w = relay.var("x", shape=X.shape), relay.var("w", shape=(3, 1, 3, 3))
    conv = relay.nn.conv2d(x, w, strides=2, dilation=(1, 2), groups=3, kernel_size=3, channels=3)
    assert conv.op == Op("Conv")
    assert conv.attrs == {
        "strides": [2, 2], "pads": [0, 0, 0, 0], "dilations": [1, 2], "group": 3,
        "kernel_shape": [3, 3],
    }  # fmt: skip


@pytest.mark.parametrize("opset", [11, 18, 21])
def test_pools_are_those_of_tvm(opset: int) -> None:
    windows = np.lib.stride_tricks.sliding_window_view(X, (2, 2), axis=(2, 3))
    found = computed(lambda x: relay.nn.max_pool2d(x, (2, 2)), opset)
    np.testing.assert_array_equal(found, windows.max((-1, -2)))
    padded = computed(lambda x: relay.nn.avg_pool2d(x, 2, strides=2, padding=1), opset)
    assert padded[0, 0, 0, 0] == X[0, 0, 0, 0]  # padding is not counted
    counted = computed(
        lambda x: relay.nn.avg_pool2d(x, 2, 2, padding=1, count_include_pad=True), opset
    )
    assert counted[0, 0, 0, 0] == X[0, 0, 0, 0] / 4
    plain = {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0, 0, 0, 0], "ceil_mode": 0}
    assert relay.nn.max_pool2d(relay.var("x", shape=X.shape)).attrs == plain
    average = relay.nn.avg_pool2d(relay.var("x", shape=X.shape))
    assert average.attrs == {**plain, "count_include_pad": 0}
    wide = relay.nn.max_pool2d(relay.var("x", shape=X.shape), 2, dilation=2, ceil_mode=True)
    assert (wide.attrs["dilations"], wide.attrs["ceil_mode"]) == ([2, 2], 1)
    with pytest.raises(UsageError, match=r"relay.nn.max_pool2d takes no count_include_pad"):
        relay.nn.max_pool2d(relay.var("x", shape=X.shape), count_include_pad=True)


def test_a_bias_is_an_operand_of_a_new_convolution_or_a_sum_of_the_last_axis() -> None:
    x, b = relay.var("x", shape=X.shape), relay.const(np.ones(2, np.float32))
    conv = relay.nn.conv2d(x, np.ones((2, 3, 1, 1), np.float32))
    with_bias = relay.nn.bias_add(conv, b)
    assert (with_bias.op.name, len(with_bias.args), with_bias.attrs) == ("nn.conv2d", 3, conv.attrs)
    assert relay.nn.bias_add(conv, b, axis=-1).op == Op("Add")
    dense = relay.nn.dense(relay.var("d", shape=(2, 3)), np.ones((2, 3), np.float32))
    assert (dense.op, dense.attrs) == (Op("Gemm"), {"transB": 1})
    for axis in (1, -1):
        assert relay.nn.bias_add(dense, b, axis).op == Op("Add")
    for data, axis in ((with_bias, 1), (x, 1), (dense, 0)):
        with pytest.raises(
            UsageError, match=r"bias_add takes the last axis, or that of a new nn.co"
        ):
            relay.nn.bias_add(data, b, axis)


def test_a_batch_norm_has_its_epsilon() -> None:
    four = [relay.const(np.ones(3, np.float32))] * 4
    x = relay.var("x", shape=X.shape)
    assert relay.nn.batch_norm(x, *four, epsilon=0.5).attrs == {"epsilon": 0.5}
    assert relay.nn.batch_norm(x, *four).attrs == {"epsilon": 1e-5}
    for wrong in ({"axis": 3}, {"center": False}, {"scale": False}):
        with pytest.raises(UsageError, match="has axis 1, a scale and a centre in ONNX"):
            relay.nn.batch_norm(x, *four, **wrong)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda x: relay.nn.conv2d(x, x, data_layout="NHWC"),
            "data_layout is NCHW in ONNX, not 'NHWC'",
        ),
        (lambda x: relay.nn.conv2d(x, x, kernel_layout="HWIO"), "kernel_layout is OIHW"),
        (lambda x: relay.nn.conv2d(x, x, out_layout="NHWC"), "out_layout is NCHW"),
        (
            lambda x: relay.nn.conv2d(x, x, out_dtype="int32"),
            "conv2d: out_dtype='int32' has no equiv",
        ),
        (
            lambda x: relay.nn.dense(x, x, out_dtype="float16"),
            "dense: out_dtype='float16' has no equ",
        ),
        (lambda x: relay.nn.max_pool2d(x, layout="NHWC"), "layout is NCHW"),
        (lambda x: relay.nn.max_pool2d(x, out_layout="NHWC"), "out_layout is NCHW"),
        (
            lambda x: relay.sum(x, exclude=True),
            "relay.sum: name the axes to reduce, without exclude",
        ),
        (lambda x: relay.take(x, x), "relay.take needs an axis, and no mode"),
        (lambda x: relay.take(x, x, axis=0, mode="wrap"), "and no mode"),
        (lambda x: relay.add(x, x, axis=1), "relay.add takes no axis"),
        (lambda x: relay.reshape(x, (-2, 3)), r"relay.reshape takes dims, 0 and -1, not \(-2, 3\)"),
        (
            lambda x: relay.tile(x, (2, 2)),
            r"relay.tile makes no call here: .*relay.op.get\('Tile'\)",
        ),
        (lambda x: relay.nn.batch_matmul(x, x), "makes no call here"),
    ],
)
def test_what_onnx_has_otherwise_is_named(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(relay.var("x", shape=(2, 3)))


def test_a_function_has_the_name_of_the_operator() -> None:
    assert function_of("nn.relu").__name__ == "relu"
    assert Namespace("nn").relu.__qualname__ == "relu"
    assert get("nn.relu") == Op("Relu")
    with pytest.raises(
        AttributeError, match=r"relay has no operator 'nn.rleu'; did you mean 'nn.relu'"
    ):
        function_of("nn.rleu")
    assert sorted(PREFIXES) == ["image", "nn", "qnn"]


def test_without_values_of_a_graph_the_result_is_a_call() -> None:
    x = relay.var("x", shape=(2, 3))
    call = relay.concatenate(Tuple([x, x]), axis=0)
    assert isinstance(call, Call)
    assert (len(call.args), call.attrs, call.is_newest) == (2, {"axis": 0}, True)
    assert all(Op(name).operators == OPERATORS[name] for name in OPERATORS)
    model, node = built(relay.nn.relu)
    assert (node.op_type, node.owner) == ("Relu", model.main)


def written(of: Any) -> object:
    """Return a call as text: its operators, operands and attributes."""
    if isinstance(of, Call):
        return [*of.op.operators, [written(each) for each in of.args], dict(of.attrs)]
    if isinstance(of, Constant):
        return of.data.numpy().tolist()
    return of if of is None else getattr(of, "name_hint", str(type(of).__name__))


def test_calls_are_recorded() -> None:
    class Shown:
        """The functions of relay; a call is returned as text."""

        def __getattr__(self, name: str) -> Any:
            made = function_of(name.replace("__", "."))
            return lambda *args, **attrs: written(made(*args, **attrs))

    read = "(float[1,3,4,4] d, float[3,3,2,2] k) => (float[1,3,3,3] y) { y = Conv(d, k) }"
    (conv,) = ExpressionReader(parsed(read).main).calls.values()
    names = {
        "r": Shown(),
        "conv": conv,
        "x": relay.var("x", shape=(2, 3, 4, 4)),
        "w": relay.var("w", shape=(3, 3, 2, 2)),
        "v": relay.var("v", shape=(3,)),
        "u": relay.var("u"),
        "relay": relay,
        "Tuple": Tuple,
        "Namespace": Namespace,
        "function_of": function_of,
        "written": written,
        "np": np,
    }
    assert_values(__file__, names)
