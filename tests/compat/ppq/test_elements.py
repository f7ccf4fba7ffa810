"""Variable and Operation: a value and a node by PPQ's names."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx.parser import parse_model

from tests.compat.ppq.small_graphs import SPLIT, graph, model_of, quantized, state
from tests.recorded import assert_values
from tiered import Model
from tiered.compat.ppq import (
    BaseGraph,
    DataType,
    GraphReplacer,
    Operation,
    Opset,
    OpSocket,
    QuantableOperation,
    QuantableVariable,
    TargetPlatform,
    TorchExecutor,
    Variable,
)
from tiered.compat.ppq.elements import check_type
from tiered.support.errors import ModelError


def test_operands_are_set_one_by_one() -> None:
    ppq = graph()
    add = ppq.operations["node_b"]
    add.set_input(0, ppq.variables["x"])
    assert add.inputs[0] == ppq.variables["x"]
    made = ppq.create_variable("made")
    relu = ppq.operations["node_a"]
    relu.set_output(0, made)
    assert relu.outputs == (made,)
    with pytest.raises(ModelError, match="has 1 output, so no output 1"):
        relu.set_output(1, made)


def test_copies_are_in_no_graph_until_they_are_appended() -> None:
    ppq = graph()
    before = list(ppq.operations)
    copy = ppq.operations["node_a"].copy()
    assert list(ppq.operations) == before
    ppq.append_operation(copy)
    assert ppq.operations[copy.name].type == "Relu"
    twin = ppq.variables["w"].copy(copy_value=True)
    assert "w" in ppq.variables
    assert twin.name not in ppq.variables
    ppq.append_variable(twin)
    assert ppq.variables[twin.name].is_parameter
    typed = ppq.variables["a"].copy()
    assert (typed.shape, typed.dtype, typed.name in ppq.variables) == ((2, 3), 1, False)


def test_a_source_may_be_taken_away() -> None:
    ppq = graph()
    lone = ppq.create_operation("Neg", "lone", {}, [ppq.variables["x"]], [ppq.create_variable("n")])
    out = lone.outputs[0]
    assert out is not None
    out.source_op = None
    assert (out.source_op, out.src_idx) == (None, None)
    out.source_op = None
    read = ppq.variables["a"]
    assert (read.src_idx, ppq.variables["w"].src_idx, ppq.variables["x"].src_idx) == (0, None, None)
    assert ppq.variables["w"].dest_idx == (1,)


def test_an_operation_has_an_opset_and_a_socket() -> None:
    add = graph().operations["node_b"]
    assert add.opset == Opset("ai.onnx", 21)
    assert add.opset.onnx_opset_version() == 21
    assert Opset("d", 1).onnx_opset_version() == -1
    assert add.socket == OpSocket((True, True), (True,), ((0, 0), (1, 0)))
    text = """g (float[2,3] x) => (int64[2] y) <int64[2] s = {3,2}, float low = {0}> {
        a = Clip(x, low)  b = Reshape(a, s)  y = Shape(b) }"""
    clip, reshape, shape = graph(text).operations.values()
    assert clip.socket.inputs == (True, False)
    assert reshape.socket == OpSocket((True, False), (True,), ((0, 0),))
    assert shape.socket == OpSocket((False,), (False,), ())


def test_operations_and_variables_take_the_keywords_of_ppq() -> None:
    on = graph()
    made = Operation(name="free", op_type="Softmax", attributes={"axis": 0},
                     platform=TargetPlatform.TRT_INT8)  # fmt: skip
    on.append_operation(made)
    assert on.operations["free"].attributes["axis"] == 0
    assert on.operations["free"].platform == "TRT_INT8"
    shaped = Variable(name="later", shape=[2, None], dtype=DataType.FLOAT)
    on.append_variable(shaped)
    shaped.source_op = made
    assert (on.variables["later"].shape, on.variables["later"].dtype) == ((2, None), 1)
    number = Variable(name="number", value=np.ones(2, np.float32), is_parameter=True)
    on.append_variable(number)
    assert on.variables["number"].is_parameter
    sine = on.create_operation(
        op_type="Sin", name="sine", platform=TargetPlatform.FP32, inputs=[on.variables["a"]],
        outputs=[on.create_variable("s")],
    )  # fmt: skip
    assert sine.platform == "FP32"
    assert on.create_variable("k", np.ones(3, np.float32), is_parameter=True).is_parameter
    with pytest.raises(ModelError, match="parameter 'p' needs a value"):
        Variable("p", is_parameter=True)
    with pytest.raises(ModelError, match="parameter 'p' needs a value"):
        on.create_variable("p", is_parameter=True)


def test_a_quantised_operation_is_a_quantable_one_wherever_it_is_found() -> None:
    on, quantable, made = quantized()
    found = on.operations["node_b"]
    assert isinstance(found, QuantableOperation)
    assert found == made
    assert found == Operation(found._node)
    assert hash(found) == hash(made)
    assert found.platform == "TRT_INT8"
    assert isinstance(on.variables["b"].source_op, QuantableOperation)
    assert isinstance(on.variables["w"].dest_ops[0], QuantableOperation)
    assert not isinstance(on.operations["node_a"], QuantableOperation)
    assert quantable.dequantize_operation("node_a") == on.operations["node_a"]


def test_a_quantable_variable_knows_its_configs() -> None:
    on, _, made = quantized()
    a, w, b = (on.variables[name] for name in "awb")
    assert isinstance(a, QuantableVariable)
    assert isinstance(w, QuantableVariable)
    assert isinstance(b, QuantableVariable)
    assert not isinstance(on.variables["y"], QuantableVariable)
    assert a.source_op_config is None
    assert a.source_op_platform is None
    assert a.dest_op_configs == [made.input_quant_config[0]]
    assert a.dest_op_platforms == ["TRT_INT8"]
    assert b.source_op_config is made.output_quant_config[0]
    assert b.source_op_platform == "TRT_INT8"
    assert b.dest_op_configs == [None]
    pairs = made.config_with_variable
    assert [variable and variable.name for _, variable in pairs] == ["a", "w", "b"]


def test_types_and_numbers_of_operands_are_checked() -> None:
    on = graph()
    add = on.operations["node_b"]
    with pytest.raises(ModelError, match="no such operator; did you mean 'Add'"):
        add.type = "Addd"
    with pytest.raises(ModelError, match="cannot have the dtype 99"):
        on.variables["a"].dtype = 99
    before = on.graph.model.mark()
    with pytest.raises(ModelError, match="'node_b' has 2 inputs, which Relu does not take"):
        GraphReplacer(on).replace_op("node_b", Operation("one", "Relu"))
    assert on.graph.model.mark() == before
    add.platform = "INT8"
    add.platform = None
    assert not add._node.metadata


def test_a_source_is_exchanged() -> None:
    on = graph()
    a, c = on.variables["a"], on.variables["c"]
    other = on.create_operation("Sin", "other", {}, [on.variables["x"]], [on.create_variable("s")])
    a.source_op = other
    assert (a.source_op, a.src_idx, other.num_of_output) == (other, 0, 1)
    assert [value.name for value in on.operations["node_a"].outputs if value] != ["a"]
    a.source_op = other
    c.source_op = None
    assert c.source_op is None
    made = on.create_operation("Cos", "made", {}, [on.variables["b"]])
    c.source_op = made
    assert [each.type for each in on.topological_sort()][-2:] == ["Cos", "Abs"]
    relu = on.operations["node_y"]
    with pytest.raises(ModelError, match="'node_y' has 1 output, and Abs no more: all are used"):
        c.source_op = relu
    with pytest.raises(ModelError, match="'w' is an input or a parameter"):
        on.variables["w"].source_op = made
    model_of(on).check_view()


def test_an_output_that_is_read_is_exchanged() -> None:
    on = graph()
    relu, fresh = on.operations["node_a"], on.create_variable("fresh")
    a = relu.outputs[0]
    assert a is not None
    relu.set_output(0, fresh)
    assert (list(relu.outputs), a.source_op) == ([fresh], None)
    assert [operation.name for operation in a.dest_ops] == ["node_b"]
    relu.set_output(0, a)
    assert (list(relu.outputs), a.source_op) == ([a], relu)
    relu.set_output(0, a)
    with pytest.raises(ModelError, match="'c' has a source already"):
        relu.set_output(0, on.variables["c"])
    assert all(not node.domain for node in on.graph.nodes)
    model_of(on).check_view()
    (y,) = TorchExecutor(on).forward(np.zeros((2, 3), np.float32))
    np.testing.assert_allclose(y, [[1, 2, 3]] * 2)


# --- variables ------------------------------------------------------------------------------------


def test_a_new_variable_has_the_shape_that_is_given() -> None:
    later = Variable("later", shape=[2, "n"], dtype=DataType.INT64)
    assert (later.name, later.dtype, later.shape) == ("later", DataType.INT64, (2, "n"))
    with pytest.raises(ModelError, match="needs a dtype before it has a shape"):
        Variable("later", shape=[2, "n"])
    wrongs: list[dict[str, Any]] = [{"shape": [3]}, {"dtype": DataType.INT64}, {"shape": [2, 1]}]
    for wrong in wrongs:
        with pytest.raises(ModelError, match="by its contents, it cannot be stated as"):
            Variable("v", np.ones(2, np.float32), **wrong)
    assert Variable("v", np.ones(2, np.float32), shape=[2]).shape == (2,)
    assert Variable("v").shape is None


def test_contents_and_names_are_assigned() -> None:
    on = graph()
    w = on.variables["w"]
    w.value = np.array([4, 5, 6], np.float32)
    np.testing.assert_array_equal(on.variables["w"].value, [4, 5, 6])
    w.name = "weight"
    assert (w.name, "w" in on.variables) == ("weight", False)
    assert on.variables["a"].value is None
    assert repr(w) == "Variable('weight')"


def test_a_default_is_no_parameter_until_it_is_marked() -> None:
    text = "g (float[3] x, float[3] w) => (float[3] y) <float[3] w = {1,2,3}> { y = Add(x, w) }"
    w = graph(text).variables["w"]
    assert not w.is_parameter
    w.is_parameter = True
    assert w.is_parameter
    w.is_parameter = False
    assert not w.is_parameter


def test_readers_and_their_places_are_in_one_order() -> None:
    on = graph("g (float[2] x) => (float[2] y, float[2] z) { y = Mul(x, x)  z = Neg(x) }")
    x = on.variables["x"]
    assert [each.name for each in x.dest_ops] == ["node_y", "node_y", "node_z"]
    assert x.dest_idx == (0, 1, 0)
    split = graph("g (float[2] x) => (float[1] y, float[1] z) { y, z = Split<num_outputs=2>(x) }")
    assert [split.variables[name].src_idx for name in "yz"] == [0, 1]


def test_a_copy_has_contents_only_on_request() -> None:
    on = graph()
    for copied, expected in ((False, None), (True, [1, 2, 3])):
        twin = on.variables["w"].copy(copied)
        value = twin.value
        assert (value if value is None else value.tolist()) == expected
        assert (twin.shape, twin.dtype) == ((3,), 1)
    assert on.variables["a"].copy(copy_value=True).value is None


# --- operations -----------------------------------------------------------------------------------


def test_the_numbers_of_operands_are_counted() -> None:
    add = graph().operations["node_b"]
    assert (add.num_of_input, add.num_of_output, add.num_of_parameter) == (2, 1, 1)
    assert [each.name for each in add.parameters] == ["w"]
    text = "g (float[2] x, float h) => (float[2] y) { y = Clip(x, , h) }"
    clip = graph(text).operations["node_y"]
    assert [each and each.name for each in clip.inputs] == ["x", None, "h"]
    assert (clip.num_of_input, clip.num_of_parameter) == (3, 0)


@pytest.mark.parametrize("index", [-1, 2])
def test_an_input_has_a_place_of_the_operation(index: int) -> None:
    on = graph()
    add = on.operations["node_b"]
    message = f"operation 'node_b' has 2 inputs, so no input {index}"
    with pytest.raises(ModelError, match=message):
        add.set_input(index, on.variables["x"])
    with pytest.raises(ModelError, match="has 1 output, so no output -1"):
        add.set_output(-1, on.create_variable("made"))
    add.set_input(1, on.variables["x"])
    assert add.inputs[1] == on.variables["x"]


def test_all_inputs_are_set_at_once() -> None:
    on = graph()
    add = on.operations["node_b"]
    add.inputs = [on.variables["w"], on.variables["x"]]
    assert [each and each.name for each in add.inputs] == ["w", "x"]


def test_a_type_and_a_name_are_changed() -> None:
    on = graph()
    neg = on.operations["node_c"]
    neg.type, neg.name = "Exp", "exp"
    assert (on.operations["exp"].type, neg.type) == ("Exp", "Exp")
    assert repr(neg) == "Operation('exp', 'Exp')"


def test_a_function_of_the_model_is_a_type() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[2] x) => (float[2] y) { y = f.Twice(x) }
        <domain: "f", opset_import: ["" : 21]> Twice (a) => (b) { b = Add(a, a) }
        <domain: "f", opset_import: ["" : 21]> Once (a) => (b) { b = Neg(a) }"""
    on = BaseGraph(Model.from_proto(parse_model(text)).main)
    (call,) = on.topological_sort()
    call.type = "Once"
    assert (call.type, call.opset) == ("Once", Opset("f", 1))


def test_attributes_are_exchanged_and_set() -> None:
    on = graph("g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis=0>(x) }")
    soft = on.operations["node_y"]
    soft.set_attribute("axis", 1)
    assert dict(soft.attributes) == {"axis": 1}
    soft.attributes = {}
    assert dict(soft.attributes) == {}


def test_a_platform_is_a_name_beside_other_metadata() -> None:
    add = graph().operations["node_b"]
    add._node.owner.set_metadata(add._node, {"note": "kept"})
    for given, name in (("DSP", "DSP"), (TargetPlatform.FP32, "FP32"), (None, None)):
        add.platform = given
        assert add.platform == name
        assert add._node.metadata.get("note") == "kept"


def test_products_are_computing_operations() -> None:
    on = graph("g (float[2,2] x) => (float[2,2] y) { a = MatMul(x, x)  y = Relu(a) }")
    assert [each.is_computing_op for each in on.topological_sort()] == [True, False]


def test_a_copy_of_an_operation_has_no_operands() -> None:
    on = graph("g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis=0>(x) }")
    copy = on.operations["node_y"].copy()
    assert (copy.type, copy.num_of_input, copy.num_of_output) == ("Softmax", 0, 0)
    assert copy.attributes["axis"] == 0
    assert len(on.operations) == 1


def test_a_variable_between_is_quantable_where_either_side_is() -> None:
    on, _, made = quantized()
    sources = [on.variables[name] for name in ("a", "b", "c", "x")]
    assert [isinstance(each, QuantableVariable) for each in sources] == [True, True, False, False]
    c = on.variables["b"].copy()
    assert not isinstance(c, QuantableVariable)
    w = on.variables["w"]
    assert isinstance(w, QuantableVariable)
    np.testing.assert_array_equal(w.stored_value, [1, 2, 3])
    assert (w.source_op_config, w.source_op_platform) == (None, None)
    assert made.config.input_quantization_config == made.input_quant_config


CALLED = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 1]>
    g (float[2] x) => (float[2] y) { y = ai.onnx.ml.Own(x) }
    <domain: "ai.onnx.ml", opset_import: ["" : 21]> Own (p) => (q) { q = Neg(p) }"""


def test_elements_are_recorded() -> None:
    def changed(edit: Callable[[Any], object]) -> list[str]:
        of = graph(SPLIT)
        edit(of)
        return state(of)

    names = {
        "g": graph(SPLIT),
        "changed": changed,
        "Operation": Operation,
        "Variable": Variable,
        "np": np,
        "TargetPlatform": TargetPlatform,
        "both": quantized()[0],
        "check_type": check_type,
        "called": Model.from_proto(parse_model(CALLED)).main,
        "v": lambda g, name: g.variables[name],
        "o": lambda g, name: g.operations[name],
    }
    assert_values(__file__, names)
