"""Dataflow patterns of TVM: match, partition, rewrite, and pattern tables."""

import importlib
from typing import Any

import numpy as np
import onnx
import pytest

from tests.recorded import assert_values
from tests.small import model, ops, parsed, proto
from tiered import Model, Value
from tiered.compat import tvm
from tiered.compat.tvm.patterns import dataflow_pattern
from tiered.compat.tvm.patterns.dataflow_pattern import (
    DFPattern,
    DFPatternCallback,
    has_attr,
    has_dtype,
    has_shape,
    is_constant,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    rewrite,
    wildcard,
)
from tiered.runtime import run
from tiered.support.errors import ModelError, PassError, UsageError
from tiered.testing import parse

CONV = """(float[1,3,4,4] x) => (float[1,2,4,4] y)
    <float[2,3,1,1] w = {1,2,3,4,5,6}, float[2,1,1] b = {1,2}> {
    a = Conv<pads=[0,0,0,0], strides=[1,1], group=1>(x, w) c = Add(a, b) y = Relu(c) }"""


def test_the_module_is_found_at_the_place_of_tvm() -> None:
    module = importlib.import_module("tiered.compat.tvm.relay.dataflow_pattern")
    assert module.is_op is is_op
    assert tvm.relay.dataflow_pattern is dataflow_pattern


def conv_bias_relu() -> tuple[DFPattern, DFPattern]:
    conv = is_op("nn.conv2d")(wildcard(), is_constant())
    return conv, is_op("nn.relu")(is_op("nn.bias_add")(conv, wildcard()))


def test_patterns_match_expressions() -> None:
    conv, relu = conv_bias_relu()
    given = parse(CONV)
    view = Model.from_proto(given)
    assert relu.match(given)
    assert relu.match(view)
    assert relu.match(view.main)
    assert relu.match(view.main.outputs[0])
    assert not conv.match(given)
    assert conv.match(view.main.nodes[0])
    assert dataflow_pattern.match(wildcard(), view.main.inputs[0])
    assert is_var("x").match(view.main.inputs[0])
    assert is_var().match(view.main.inputs[0])
    assert not is_var("z").match(view.main.inputs[0])
    assert is_constant().match(view.main.values["w"])
    assert not is_constant().match(view.main.inputs[0])
    assert not is_op("nn.relu")(is_constant()).match(given)
    assert is_op("Relu")(wildcard()).match(given)


@pytest.mark.parametrize(
    ("attrs", "matches"),
    [
        ({"strides": [1, 1], "groups": 1, "data_layout": "NCHW"}, True),
        ({"padding": (0, 0)}, True),
        ({"padding": [0, 0, 0, 0]}, True),
        ({"dilation": (1, 1)}, True),
        ({"kernel_size": [1, 1]}, True),
        ({"kernel_size": [3, 3]}, False),
        ({"strides": [2, 2]}, False),
        ({"groups": 2}, False),
        ({"data_layout": "NHWC"}, False),
    ],
)
def test_attributes_have_the_names_of_tvm_or_onnx(attrs: dict[str, Any], matches: bool) -> None:
    node = Model.from_proto(parse(CONV)).main.nodes[0]
    conv, _ = conv_bias_relu()
    assert conv.has_attr(attrs).match(node) == matches
    assert has_attr(attrs, conv).match(node) == matches


def test_an_attribute_that_no_operator_has_is_an_error() -> None:
    conv, _ = conv_bias_relu()
    with pytest.raises(UsageError, match=r"has_attr: Conv has no attribute 'stride'.*'strides'"):
        conv.has_attr({"stride": 1}).match(Model.from_proto(parse(CONV)).main.nodes[0])
    with pytest.raises(UsageError, match="has_attr is of a call"):
        is_op("nn.conv2d").has_attr({})


def test_types_alternatives_and_options() -> None:
    given = parse(CONV)
    _, relu = conv_bias_relu()
    assert relu.has_shape((1, 2, None, 4)).has_dtype("float32").match(given)
    assert not relu.has_shape((1, 2, 4)).match(given)
    assert not has_dtype("float16", relu).match(given)
    assert has_shape((1, 2, 4, 4)).match(given)
    assert (is_op("sigmoid")(wildcard()) | relu).match(given)
    assert (is_op("sigmoid") | is_op("nn.relu"))(wildcard()).match(given)
    add = is_op("add")(wildcard(), wildcard())
    option = add.optional(is_op("nn.relu"))
    assert option.match(given)
    assert option.match(Model.from_proto(given).main.values["c"])
    assert not option.match(Model.from_proto(given).main.values["a"])
    with pytest.raises(UsageError, match="there is no dtype 'float'"):
        has_dtype("float")


def test_arithmetic_and_several_operands_and_outputs() -> None:
    x, y = wildcard(), wildcard()
    text = "(float[2] x, float[2] z) => (float[2] y) { s = Sub(x, z) m = Mul(s, x) y = Div(m, z) }"
    assert (((x - y) * x) / y).match(parse(text))
    assert not (((x - y) * y) / y).match(parse(text))
    assert not (x + y).match(parse(text))
    concat = "(float[2] x, float[2] z) => (float[4] y) { y = Concat<axis=0>(x, z) }"
    assert is_op("concatenate")(is_tuple([wildcard(), wildcard()])).match(parse(concat))
    assert is_op("concatenate")(is_tuple(None)).match(parse(concat))
    assert not is_op("concatenate")(is_tuple([wildcard()])).match(parse(concat))
    assert is_op("concatenate")(None).match(parse(concat))
    split = "(float[4] x) => (float[2] y) { a, b = Split<num_outputs=2>(x) y = Neg(b) }"
    first = is_op("split")(wildcard())
    assert is_op("negative")(is_tuple_get_item(first, 1)).match(parse(split))
    assert not is_op("negative")(is_tuple_get_item(first, 0)).match(parse(split))


def test_matches_become_functions() -> None:
    _, relu = conv_bias_relu()
    given = parse(CONV)
    made = relu.partition(given, {"Composite": "conv_bias_relu"})
    assert ops(made) == ["pattern_Conv_Add_Relu"]
    metadata = {entry.key: entry.value for entry in made.functions[0].metadata_props}
    assert metadata == {
        "PartitionedFromPattern": "Conv_Add_Relu_", "Composite": "conv_bias_relu",
    }  # fmt: skip
    assert given == parse(CONV)
    onnx.checker.check_model(made, full_check=True)
    assert ops(dataflow_pattern.partition(relu, given, check=lambda value: False)) == ops(given)
    old = parse(CONV)
    old.ir_version = 8
    assert ops(relu.partition(old)) == ["pattern_Conv_Add_Relu"]
    with pytest.raises(ModelError, match="metadata of functions and nodes need IR 10"):
        relu.partition(old, {"Composite": "c"})
    shared = CONV.replace("y = Relu(c)", "y = Relu(c) z = Neg(a)").replace(
        "(float[1,2,4,4] y)", "(float[1,2,4,4] y, float[1,2,4,4] z)"
    )
    assert ops(relu.partition(parse(shared))) == ["Conv", "Add", "Relu", "Neg"]


def test_functions_of_matches_have_names_that_no_operator_has() -> None:
    """onnxruntime crashes on a function that is called Mul and has one input."""
    text = "(float[2] x) => (float[2] y) { y = Mul(x, x) }"
    made = is_op("multiply")(wildcard(), wildcard()).partition(parse(text))
    assert ops(made) == ["pattern_Mul"]
    (y,) = run(made, {"x": np.array([2, 3], np.float32)}).values()
    assert y.tolist() == [4, 9]


class ToSigmoid(DFPatternCallback):
    """relu(x)  =>  sigmoid(x), unless x is the input."""

    def __init__(self) -> None:
        super().__init__(require_type=True)
        self.x = wildcard()
        self.pattern = is_op("nn.relu")(self.x)

    def callback(self, pre: Value, post: Value, node_map: Any) -> Value:
        (x,) = node_map[self.x]
        assert node_map[self.pattern] == [post]
        return post if x.is_graph_input else post.owner.op.Sigmoid(x)


def test_callbacks_rewrite_until_nothing_matches() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Relu(x) b = Relu(a) y = Relu(b) }"
    assert ops(dataflow_pattern.rewrite(ToSigmoid(), proto(text))) == ["Relu", "Sigmoid", "Sigmoid"]
    view = model(text)
    assert dataflow_pattern.rewrite([ToSigmoid()], view.main) is view.main
    view.check_view()
    assert ops(ToSigmoid().rewrite(proto(text))) == ["Relu", "Sigmoid", "Sigmoid"]


def test_a_callback_may_run_once() -> None:
    class Twice(DFPatternCallback):
        def __init__(self, *, once: bool) -> None:
            super().__init__(rewrite_once=once)
            self.x = wildcard()
            self.pattern = is_op("negative")(self.x)

        def callback(self, pre: Value, post: Value, node_map: Any) -> Value:
            return post.owner.op.Neg(post.owner.op.Neg(node_map[self.x][0]))

    text = "g (float[2] x) => (float[2] y) { y = Neg(x) }"
    assert ops(Twice(once=True).rewrite(proto(text))) == ["Neg", "Neg"]
    view = model(text)
    with pytest.raises(PassError, match="Twice does not terminate"):
        Twice(once=False).rewrite(view)
    assert ops(view) == ["Neg"]


def test_wrong_patterns_and_expressions_are_named() -> None:
    with pytest.raises(UsageError, match=r"named 'nn\.rellu'; did you mean 'nn\.relu'"):
        is_op("nn.rellu")
    with pytest.raises(UsageError, match="WildcardPattern is no operator"):
        wildcard()(wildcard())
    with pytest.raises(UsageError, match="redirect_to makes a recursive pattern"):
        wildcard().redirect_to(wildcard())
    with pytest.raises(UsageError, match="this has 2 outputs"):
        wildcard().match(parse("(float[2] x) => (float[2] y, float[2] z) { y=Neg(x) z=Neg(x) }"))
    with pytest.raises(UsageError, match="an expression is a Model"):
        wildcard().match("model.onnx")  # type: ignore[arg-type]  # on purpose

    class Wrong(DFPatternCallback):
        pattern = is_op("negative")(wildcard())

        def callback(self, pre: Value, post: Value, node_map: Any) -> Any:
            return "nothing"

    with pytest.raises(UsageError, match=r"Wrong\.callback returned 'nothing'"):
        Wrong().rewrite(proto("g (float[2] x) => (float[2] y) { y = Neg(x) }"))


def test_pattern_tables_hold_dataflow_patterns() -> None:
    """TVM's standard flow: composites, targets, regions, functions."""
    dense = is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))
    seen: list[str] = []

    def check(extract: Value) -> bool:
        seen.append(extract.name)
        return True

    text = """(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> {
        a = MatMul(x, w) y = Relu(a) }"""
    merge = tvm.transform.MergeComposite([("npu.dense_relu", dense, check)])
    made = merge(parse(text))
    assert ops(made) == ["npu.dense_relu"]
    assert seen == ["y"]
    for target, marked in (("npu", ["tiered.compiler"]), ("other", [])):
        tvm.ir.register_op_attr("sigmoid", f"target.{target}", True)
        (node,) = tvm.AnnotateTarget([target])(made).graph.node
        keys = [entry.key for entry in node.metadata_props if entry.key == "tiered.compiler"]
        assert keys == marked
    assert ops(tvm.MergeComposite([("d", dense, lambda extract: False)])(parse(text))) == [
        "MatMul", "Relu",
    ]  # fmt: skip
    assert ops(tvm.MergeComposite([("d", dense)])(parse(text))) == ["d"]


WITH_BIAS = """(float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}, float[1] b = {1}> {
    c = Conv<kernel_shape = [1,1]>(x, w, b) y = Relu(c) }"""
WITH_ADD = """(float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}, float[1] b = {1}> {
    a = Conv<kernel_shape = [1,1]>(x, w) c = Add(a, b) y = Relu(c) }"""


@pytest.mark.parametrize("text", [WITH_BIAS, WITH_ADD])
def test_a_bias_is_added_or_an_operand_of_the_product(text: str) -> None:
    """TVM reads a Conv of ONNX with a bias as nn.conv2d and nn.bias_add."""
    x, w, b = wildcard(), is_constant(), is_constant()
    conv = is_op("nn.conv2d")(x, w)
    bias = is_op("nn.bias_add")(conv, b)
    relu = is_op("nn.relu")(bias)
    assert relu.match(parse(text))
    named = {"x": x, "w": w, "b": b}
    seen: list[tuple[dict[str, str], list[Any]]] = []

    class Notes(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__(rewrite_once=True)
            self.pattern = relu

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            found = {name: node_map[part][0].name for name, part in named.items()}
            seen.append((found, [node_map[part][0].producer.op_type for part in (conv, bias)]))
            return post

    rewrite(Notes(), parse(text))
    sum_of = "Conv" if text is WITH_BIAS else "Add"
    assert seen == [({"x": "x", "w": "w", "b": "b"}, ["Conv", sum_of])]
    for size, fits in (((1, 1), True), ((2, 2), False)):
        sized = is_op("nn.bias_add")(conv.has_attr({"kernel_size": size}), b)
        assert is_op("nn.relu")(sized).match(parse(text)) is fits
    optional = conv.optional(lambda each: is_op("nn.bias_add")(each, wildcard()))
    assert optional.optional(is_op("nn.relu")).match(parse(text))
    (made,) = relu.partition(Model.from_proto(parse(text))).functions
    assert len(made.nodes) == len(parse(text).graph.node)


def test_a_dense_with_a_bias_is_a_gemm_of_three() -> None:
    text = "(float[1,2] x) => (float[1,2] y) <float[2,2] w = {1,2,3,4}, float[2] b = {1,2}> {"
    dense = is_op("nn.bias_add")(is_op("nn.dense")(wildcard(), is_constant()), is_constant())
    assert dense.match(parse(f"{text} y = Gemm(x, w, b) }}"))
    assert dense.match(parse(f"{text} a = MatMul(x, w) y = Add(a, b) }}"))
    assert not dense.match(parse(f"{text} y = Gemm(x, w) }}"))
    assert not dense.match(parse(f"{text} a = Abs(x) y = Add(a, b) }}"))


def test_all_names_are_imported_at_once() -> None:
    names: dict[str, Any] = {}
    exec("from tiered.compat.tvm.relay.dataflow_pattern import *", names)
    assert {"wildcard", "is_op", "DFPatternCallback", "rewrite"} <= names.keys()


def test_matches_are_recorded() -> None:
    of = parsed(
        "(float[1,2,4,4] x, float[2] v) => (float[1,2,4,4] y, float[1,1,4,4] s, float[2] g) "
        "<float[2,2,1,1] w = {1,2,3,4}, float[2] b = {1,2}, float[2,2] m = {1,2,3,4}> {"
        " c = Conv(x, w) cb = Conv<strides = [1,1]>(x, w, b) r = Relu(c) q = Relu(cb)"
        " a = Add(r, q) e = Sub(a, x) f = Mul(e, a) y = Div(f, a)"
        " s, t = Split<axis = 1, num_outputs = 2>(y) k = Concat<axis = 1>(s, t)"
        " d = MatMul(v, m) h = Add(d, b) g = Gemm(m, m, b) }"
    )

    def matched(pattern: Any) -> list[str]:
        return [name for name, value in of.main.values.items() if pattern.match(value)]

    names = {**vars(dataflow_pattern), "matched": matched, "of": of}
    assert_values(__file__, names)
