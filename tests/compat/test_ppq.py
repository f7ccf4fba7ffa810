"""PPQ's names: what people type by habit works on a graph."""

from typing import Any

import numpy as np
import pytest
from onnx.parser import parse_model

from tests.small import model, ops
from tiered import Model, PassContext, UsageError
from tiered.compat.ppq import (
    BaseGraph,
    BaseQuantFunction,
    DataType,
    GraphDecomposer,
    GraphFormatter,
    GraphMerger,
    GraphPattern,
    GraphReplacer,
    Operation,
    OperationQuantizationConfig,
    OperationSet,
    Opset,
    OpSocket,
    Path,
    PatternTree,
    PPQLinearQuantFunction,
    QuantableGraph,
    QuantableOperation,
    QuantableVariable,
    QuantizationPolicy,
    QuantizationProperty,
    QuantizationStates,
    RoundingPolicy,
    SearchableGraph,
    TargetPlatform,
    TensorQuantizationConfig,
    TorchExecutor,
    TypeExpr,
    Variable,
    create_default_quant_config,
    format_graph,
)
from tiered.support.errors import ModelError, TargetError

TEXT = """g (float[2,3] x) => (float[2,3] y) <float[3] w = {1,2,3}> {
    a = Relu(x)  b = Add(a, w)  c = Neg(b)  y = Abs(c) }"""


def graph(text: str = TEXT) -> BaseGraph:
    return BaseGraph(model(text).main)


def model_of(on: BaseGraph) -> Model:
    found = on.graph.model
    assert isinstance(found, Model)
    return found


# --- searching ------------------------------------------------------------------------------------


def test_patterns_are_given_by_the_name_of_ppq() -> None:
    edges = [[0, 1]]
    pattern = PatternTree(patterns=[TypeExpr("Add"), lambda op: op.type == "Neg"], edges=edges)
    (found,) = pattern.match(SearchableGraph(graph().graph))
    assert [operation.type for operation in found] == ["Add", "Neg"]
    assert GraphPattern(["Add", "Neg"], edges).match(graph()) == [found] or found
    assert TypeExpr("Add")(found[0])
    assert not TypeExpr("Add")(found[1])


def test_a_path_grows_at_both_ends() -> None:
    add, neg, last = (graph().operations[f"node_{name}"] for name in "bcy")
    path = Path(neg)
    assert path.append(last).append_left(add) is path
    copy = path.copy()
    assert isinstance(copy, Path)
    assert copy.append(add).tolist() == [add, neg, last, add]
    assert path.tolist() == [add, neg, last]
    assert Path([add, neg]).tolist() == [add, neg]


def test_a_set_filters_in_place_and_holds_operations_only() -> None:
    found = OperationSet(graph().operations.values())
    assert found.filter(lambda operation: operation.type == "Neg") is found
    assert {operation.type for operation in found} == {"Relu", "Add", "Abs"}
    for wrong in (lambda: OperationSet(["Neg"]), lambda: found.add("x"), lambda: found.update([1])):  # type: ignore[list-item,arg-type]  # what is wrong
        with pytest.raises(TypeError, match="an OperationSet holds operations"):
            wrong()


# --- operations and variables ---------------------------------------------------------------------


def test_operands_are_set_one_by_one() -> None:
    ppq = graph()
    add = ppq.operations["node_b"]
    add.set_input(0, ppq.variables["x"])
    assert add.inputs[0] == ppq.variables["x"]
    made = ppq.create_variable("made")
    relu = ppq.operations["node_a"]
    relu.set_output(0, made)
    assert relu.outputs == (made,)
    with pytest.raises(ModelError, match="has 1 outputs, so no output 1"):
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


def test_free_operations_and_variables_enter_a_graph() -> None:
    ppq = graph()
    scale = Variable("scale", np.array([2, 2, 2], np.float32))
    out, mul = Variable("scaled"), Operation("scale_it", "Mul", {})
    for variable in (scale, out):
        ppq.append_variable(variable)
    ppq.append_operation(mul)
    assert ppq.operations["scale_it"] == mul
    ppq.create_link_with_op(None, mul, ppq.variables["x"])
    ppq.create_link_with_op(None, mul, scale)
    ppq.create_link_with_op(mul, None, out)
    ppq.outputs["scaled"] = out
    assert list(ppq.outputs) == ["y", "scaled"]
    assert isinstance(ppq.graph.model, Model)
    ppq.graph.model.check_view()
    with pytest.raises(ModelError, match="needs a type"):
        Operation("nameless")


def test_inputs_and_outputs_are_edited_through_their_tables() -> None:
    ppq = graph()
    ppq.outputs["a"] = ppq.variables["a"]
    assert [value.name for value in ppq.graph.outputs] == ["y", "a"]
    del ppq.outputs["y"]
    assert (list(ppq.outputs), len(ppq.outputs)) == (["a"], 1)
    fed = ppq.create_variable("fed")
    fed.dtype, fed.shape = DataType.FLOAT, (2,)
    ppq.inputs["fed"] = fed
    assert (list(ppq.inputs), len(ppq.inputs)) == (["x", "fed"], 2)
    del ppq.inputs["fed"]
    assert list(ppq.inputs) == ["x"]
    with pytest.raises(ModelError, match="the variable is called 'b', not 'p'; rename it first"):
        ppq.outputs["p"] = ppq.variables["b"]
    with pytest.raises(KeyError):
        del ppq.outputs["none"]


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


def test_the_table_of_operations_follows_the_edits() -> None:
    ppq = graph()
    operations = ppq.operations
    assert (len(operations), next(iter(operations))) == (4, "node_a")
    ppq.create_operation("Neg", "more")
    assert operations["more"].type == "Neg"
    with pytest.raises(KeyError):
        operations["none"]


def test_no_operation_of_a_taken_name_is_lost() -> None:
    ppq = graph()
    with pytest.raises(ModelError, match="another node of its graph has the name"):
        ppq.operations["node_a"].name = "node_b"
    assert len(ppq.operations) == 4
    text = "g (float[2] x) => (float[2] y) { b = Relu(x) a = Neg(b) y = Abs(a) }"
    proto = parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    proto.graph.node[1].name = "b"
    read = BaseGraph(Model.from_proto(proto).main).operations
    assert [(name, each.type) for name, each in read.items()] == [
        ("b#2", "Relu"), ("b", "Neg"), ("y", "Abs"),
    ]  # fmt: skip
    for node in proto.graph.node:
        node.name = "b"
    assert list(BaseGraph(Model.from_proto(proto).main).operations) == ["b", "b#2", "b#3"]


def test_variables_are_a_view_of_the_graph() -> None:
    ppq = graph()
    variables = ppq.variables
    assert set(variables) == {"x", "w", "a", "b", "c", "y"}
    ppq.create_variable("more", np.ones(2, np.float32), is_parameter=True)
    assert variables["more"].is_parameter
    for name in variables:
        if name == "more":
            ppq.remove_variable(variables[name])
    assert "more" not in variables


def test_the_mergers_see_the_backend_of_the_context() -> None:
    text = """g (float[2,3,4] x, float[2,3,4] s) => (float[2,3,4] y) <float[4] g = {1,2,3,4},
        float[4] b = {0,0,0,0}> {
        a = Add(x, s)  y = LayerNormalization<axis=-1>(a, g, b) }"""
    of = model(text)
    merger = GraphMerger(BaseGraph(of.main))
    with pytest.raises(TargetError, match="makes an operator of onnxruntime_cpu here: call it"):
        merger.fuse_skiplayernorm()
    assert ops(of) == ["Add", "LayerNormalization"]
    with PassContext(backend="portable"):
        merger.fuse_skiplayernorm()
    assert ops(of) == ["Add", "LayerNormalization"]
    with PassContext(backend="onnxruntime_cpu"):
        merger.fuse_skiplayernorm()
    assert ops(of) == ["SkipLayerNormalization"]
    merger.fuse_skiplayernorm()


def test_operations_of_another_graph_are_refused() -> None:
    foreign = graph().operations["node_b"]
    for ask in (graph().get_upstream_operations, graph().get_downstream_operations):
        with pytest.raises(ModelError, match="operation 'node_b' is not in graph 'g'"):
            ask(foreign)


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


# --- passes as methods ----------------------------------------------------------------------------


def test_formatters_run_passes() -> None:
    text = """g (float[2] x) => (float[2] y) <float[2] w = {1,2}> {
        a = Identity(x)  d = Neg(a)  b = Relu(a)  y = Abs(b) }"""
    ppq = graph(text)
    formatter = GraphFormatter(SearchableGraph(ppq.graph))
    formatter.remove_identity()
    formatter.delete_isolated()
    assert [operation.type for operation in ppq.operations.values()] == ["Relu", "Abs"]
    formatter.truncate_on_var(ppq.variables["b"])
    assert list(ppq.outputs) == ["b"]
    with pytest.raises(AttributeError, match="has no method 'remove_identities'"):
        formatter.remove_identities()


@pytest.mark.parametrize(
    ("method", "why"),
    [("format_gather", "axis of a Gather"), ("format_cast", "are numbers already")],
)
def test_what_onnx_has_already_says_so(method: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"GraphFormatter.{method}: .*{why}"):
        getattr(GraphFormatter(graph()), method)()


def test_mergers_and_decomposers_run_passes() -> None:
    text = """g (float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12},
        float[4] b = {1,2,3,4}> { m = MatMul(x, w)  y = Add(m, b) }"""
    ppq = graph(text)
    GraphMerger(GraphFormatter(ppq)).fuse_matmul_add()
    assert [operation.type for operation in ppq.operations.values()] == ["Gemm"]
    GraphDecomposer(ppq).decompose_gemm()
    assert "MatMul" in [operation.type for operation in ppq.operations.values()]


def test_operations_and_variables_are_replaced_by_name() -> None:
    ppq = graph()
    replacer = GraphReplacer(ppq)
    replacer.replace_op("node_c", Operation("new", "Exp"))
    assert isinstance(ppq.graph.model, Model)
    assert ops(ppq.graph.model) == ["Relu", "Add", "Exp", "Abs"]
    replacer.replace_var("w", Variable("v", np.array([4, 5, 6], np.float32)))
    (name, *_) = [value.name for value in ppq.operations["node_b"].parameters]
    assert name == "v"
    ppq.graph.model.check_view()
    replacer.replace_op("node_y", Operation("last", "Neg"))
    assert list(ppq.outputs) == ["y"]
    with pytest.raises(ModelError, match="has no operation 'none'"):
        replacer.replace_op("none", Operation("other", "Neg"))
    with pytest.raises(ModelError, match="has operands already"):
        replacer.replace_op("new", ppq.operations["node_a"])
    with pytest.raises(ModelError, match="has no variable 'none'"):
        replacer.replace_var("none", Variable("u"))


# --- the arguments of PPQ -------------------------------------------------------------------------


def test_a_searchable_graph_is_made_of_a_graph_of_ppq() -> None:
    on, _, _ = quantized()
    search = SearchableGraph(on)
    (found,) = search.path_matching(
        sp_expr=lambda op: op.type == "Relu",
        rp_expr=lambda op, after: True,
        ep_expr=lambda op: op.type == "Neg",
        direction="down",
    )
    assert [operation.type for operation in found] == ["Relu", "Add", "Neg"]
    assert isinstance(found[1], QuantableOperation)


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


# --- running --------------------------------------------------------------------------------------

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 3


@pytest.mark.parametrize("inputs", [X, [X], {"x": X}])
def test_an_executor_returns_outputs_and_named_values(inputs: Any) -> None:
    executor = TorchExecutor(graph(), device="cuda")
    after = np.maximum(X, 0) + np.arange(1, 4, dtype=np.float32)
    (y,) = executor.forward(inputs)
    np.testing.assert_array_equal(y, after)
    x, b = executor.forward(inputs, output_names=["x", "b"])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(b, after)


def test_tracing_types_what_inference_does_not() -> None:
    on = graph("""g (float[2,3] x, int64[k] s) => (y) { r = Reshape(x, s)  y = Relu(r) }""")
    model_ = on.graph.model
    assert isinstance(model_, Model)
    before = model_.to_proto()
    assert [on.variables["r"].shape] == [None]
    TorchExecutor(on).tracing_operation_meta({"x": X, "s": np.array([3, 2])})
    shape = on.variables["r"].shape
    assert shape is not None
    assert len(shape) == 2
    assert 3 not in shape
    assert on.variables["r"].dtype == DataType.FLOAT
    assert model_.to_proto() == before


def test_what_an_executor_cannot_run_is_an_error() -> None:
    executor = TorchExecutor(graph())
    with pytest.raises(UsageError, match="2 arrays for 1 inputs: x"):
        executor.forward([X, X])
    with pytest.raises(UsageError, match="no node of the main graph computes 'w2'"):
        executor.forward(X, ["w2"])
    inner = model("""g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) },
                   else_branch = e () => (float[2] q) { q = Abs(x) }> }""")
    body = next(each for each in inner.graphs() if not each.is_main)
    with pytest.raises(UsageError, match="is no main graph"):
        TorchExecutor(BaseGraph(body))


# --- quantisation ---------------------------------------------------------------------------------


def config() -> TensorQuantizationConfig:
    flags = QuantizationProperty.PER_TENSOR | QuantizationProperty.LINEAR
    policy = QuantizationPolicy(flags | QuantizationProperty.SYMMETRICAL)
    return TensorQuantizationConfig(policy)


def quantized() -> tuple[BaseGraph, QuantableGraph, QuantableOperation]:
    on = graph()
    configs = OperationQuantizationConfig([config(), config()], [config()])
    quantable = QuantableGraph(on)
    made = quantable.quantize_operation("node_b", TargetPlatform.TRT_INT8, configs)
    assert quantable.activate([{"x": np.ones((2, 3), np.float32)}]) == []
    return on, quantable, made


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


def test_parameters_are_baked_and_restored() -> None:
    on, quantable, made = quantized()
    w = on.variables["w"]
    assert isinstance(w, QuantableVariable)
    before = w.value
    function: BaseQuantFunction = PPQLinearQuantFunction
    assert made.store_parameter_value().baking_parameters(function) is made
    assert made.input_quant_config[1].state is QuantizationStates.BAKED
    baked = w.value
    assert baked is not None
    assert before is not None
    assert not np.array_equal(baked, before)
    np.testing.assert_array_equal(w.stored_value, before)
    quantable.dequantize_graph()
    np.testing.assert_array_equal(w.value, before)
    assert {each.state for each in made.config} == {QuantizationStates.FP32}
    quantable.restore_quantize_state()
    np.testing.assert_array_equal(w.value, baked)
    made.dequantize(parameter_only=True, expire_device="cpu")
    assert made.output_quant_config[0].state is QuantizationStates.ACTIVATED
    made.restore_quantize_state(expire_device="cpu")
    quantable.export()
    assert not isinstance(on.operations["node_b"], QuantableOperation)
    model_ = on.graph.model
    assert isinstance(model_, Model)
    assert ops(model_).count("DequantizeLinear") == 3


def test_a_copy_has_the_configs_and_the_notes() -> None:
    on, _, made = quantized()
    on.operations["node_a"].extension_attrib["note"] = 3
    made.store_parameter_value().baking_parameters()
    made.output_quant_config[0].dominated_by = made.input_quant_config[0]
    copy = on.copy(copy_value=True)
    twin = copy.operations["node_b"]
    assert isinstance(twin, QuantableOperation)
    assert copy.operations["node_a"].extension_attrib == {"note": 3}
    assert [each.state for each in twin.config] == [each.state for each in made.config]
    assert twin.output_quant_config[0].dominated_by is twin.input_quant_config[0]
    twin.dequantize()
    assert made.input_quant_config[1].state is QuantizationStates.BAKED
    w = copy.variables["w"].value
    assert w is not None
    assert w.tolist() == [1, 2, 3]


def test_a_restored_snapshot_has_the_states_before_baking() -> None:
    on, _, made = quantized()
    snapshot = on.graph.model.snapshot()
    made.baking_parameters()
    baked = on.variables["w"].value
    states = [made.input_quant_config[1].state]
    snapshot.restore()
    states.append(made.input_quant_config[1].state)
    made.baking_parameters()
    states.append(made.input_quant_config[1].state)
    assert [state.name for state in states] == ["BAKED", "ACTIVATED", "BAKED"]
    np.testing.assert_array_equal(on.variables["w"].value, baked)


def test_what_is_no_operation_or_variable_is_named() -> None:
    on, _, made = quantized()
    add = on.operations["node_b"]
    with pytest.raises(UsageError, match=r"is None; expected Operation: graph[.]operations"):
        on.remove_operation(None)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UsageError, match="removing_op is 'node_a'; expected Operation"):
        on.remove_operation("node_a")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UsageError, match=r"is 'w'; expected Variable: graph[.]variables"):
        on.remove_variable("w")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(ModelError, match="'node_b' has 2 inputs, so no input 5"):
        add.set_input(5, on.variables["x"])
    with pytest.raises(UsageError, match="config is 3; expected OperationQuantizationConfig"):
        made.config = 3  # type: ignore[assignment]  # on purpose


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


def test_a_default_config_is_changed_as_quantizers_do() -> None:
    on = graph("""g (float[2,3] x) => (float[2,2] y)
        <float[3,2] w = {0.3,-1.1,0.25,0.7,-0.9,2.0}, float[2] b = {0.11,-0.23}, float low = {0}> {
        g = Gemm(x, w, b)  y = Clip(g, low) }""")
    flags = QuantizationProperty.PER_TENSOR + QuantizationProperty.LINEAR
    policy = QuantizationPolicy(flags + QuantizationProperty.SYMMETRICAL)
    operation = on.operations["node_g"]
    made = create_default_quant_config(
        op=operation, num_of_bits=8, quant_max=127, quant_min=-128, observer_algorithm="percentile",
        policy=policy, rounding=RoundingPolicy.ROUND_HALF_EVEN,
    )  # fmt: skip
    channels = QuantizationPolicy(
        QuantizationProperty.PER_CHANNEL
        + QuantizationProperty.LINEAR
        + QuantizationProperty.SYMMETRICAL
    )
    _, weight, bias = made.input_quantization_config
    weight.policy, weight.channel_axis, weight.observer_algorithm = channels, 1, "minmax"
    bias.policy, bias.channel_axis = channels, 0
    bias.num_of_bits, bias.quant_max, bias.quant_min = 30, 2**29 - 1, -(2**29) + 1
    bias.state = QuantizationStates.PASSIVE_INIT
    quantable = QuantableGraph(on)
    quantable.quantize_operation("node_g", TargetPlatform.INT8, made)
    assert quantable.activate([{"x": np.ones((2, 3), np.float32)}]) == []
    assert [each.state.name for each in made] == ["ACTIVATED", "ACTIVATED", "PASSIVE", "ACTIVATED"]
    quantable.export()
    assert quantable.load() == []
    loaded = on.operations["node_g"]
    assert isinstance(loaded, QuantableOperation)
    assert [each.state.name for each in loaded.config] == [
        "ACTIVATED", "BAKED", "PASSIVE_BAKED", "ACTIVATED",
    ]  # fmt: skip
    clip = create_default_quant_config(
        on.operations["node_y"], 8, -128, 127, "kl", policy, RoundingPolicy.ROUND_HALF_EVEN
    )
    assert [each.state.name for each in clip] == ["INITIAL", "FP32", "INITIAL"]
    assert clip.input_quantization_config[0].observer_algorithm == "entropy"


@pytest.mark.parametrize(
    ("flags", "observer", "bits", "message"),
    [
        (21, "isotone", 0, "no observer 'isotone'"),
        (22, "mse", 0, "operands have different axes"),
        (21, "mse", 4, "without 4 bits of an exponent"),
    ],
)
def test_a_default_config_that_cannot_be_is_refused(
    flags: int, observer: str, bits: int, message: str
) -> None:
    policy, rounding = QuantizationPolicy(flags), RoundingPolicy.ROUND_HALF_EVEN
    operation = graph().operations["node_b"]
    with pytest.raises(UsageError, match=message):
        create_default_quant_config(operation, 8, -128, 127, observer, policy, rounding, bits)


def test_what_cannot_be_quantised_is_refused() -> None:
    on, quantable, made = quantized()
    with pytest.raises(UsageError, match="FP32 is no platform"):
        quantable.quantize_operation("node_c", TargetPlatform.FP32, made.config)
    with pytest.raises(ModelError, match="no operation 'nothing'"):
        quantable.quantize_operation("nothing", TargetPlatform.INT8, made.config)
    with pytest.raises(ModelError, match="no operation 'nothing'"):
        quantable.dequantize_operation("nothing")
    with pytest.raises(ModelError, match="has 2 inputs, the config 0"):
        made.config = OperationQuantizationConfig([], [])
    made.config = made.config.copy()
    quantable.export()
    with pytest.raises(ModelError, match="has no configs any more"):
        made.dequantize()
    assert on.operations["node_b"].type == "Add"


def test_an_operation_is_removed_first_and_linked_later() -> None:
    """The usual edit of PPQ: remove, create, link to the variable that stayed."""
    on = graph()
    before = model_of(on).to_proto()
    mark = model_of(on).mark()
    neg = on.operations["node_c"]
    (read,), (written,) = neg.inputs, neg.outputs
    assert read is not None
    assert written is not None
    on.remove_operation(neg)
    assert [operation.type for operation in on.topological_sort()] == ["Relu", "Add", "Abs"]
    assert list(on.operations) == ["node_a", "node_b", "node_y"]
    assert (written.source_op, written.src_idx) == (None, None)
    assert on.get_upstream_operations(on.operations["node_y"]) == []
    assert [operation.name for operation in written.dest_ops] == ["node_y"]
    made = on.create_operation("Exp", "made")
    on.create_link_with_op(None, made, read)
    on.create_link_with_op(made, None, written)
    assert [operation.type for operation in on.topological_sort()] == ["Relu", "Add", "Exp", "Abs"]
    assert (list(made.inputs), list(made.outputs)) == ([read], [written])
    model_of(on).check_view()
    (y,) = TorchExecutor(on).forward(np.zeros((2, 3), np.float32))
    np.testing.assert_allclose(y, np.exp([[1, 2, 3]] * 2), rtol=1e-6)
    model_of(on).undo_to(mark)
    assert model_of(on).to_proto() == before


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
    with pytest.raises(ModelError, match="'node_y' has 1 outputs, and Abs no more: all are used"):
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


def test_a_free_variable_is_linked_at_once() -> None:
    on = graph()
    relu = on.operations["node_a"]
    made = on.create_operation("Neg", "made")
    fresh = Variable("fresh")
    split = on.create_operation("Split", "split", {"axis": 0}, [on.variables["x"]])
    on.create_link_with_op(split, made, fresh)
    assert (fresh.source_op, list(made.inputs)) == (split, [fresh])
    assert on.variables["fresh"] == fresh
    with pytest.raises(ModelError, match="has a source already: 'made' cannot be it"):
        on.create_link_with_op(made, None, on.variables["a"])
    assert relu.num_of_output == 1


def test_resizes_of_opset_10_have_their_operands() -> None:
    text = """g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1,1,2,2}> {
        y = Resize(x, s) }"""
    old = parse_model(f'<ir_version: 6, opset_import: ["" : 10]> {text}')
    on = BaseGraph(Model.from_proto(old).main)
    GraphFormatter(on).format_resize()
    (resize,) = on.topological_sort()
    assert (resize.opset.version, resize.num_of_input) == (11, 3)
    again = model_of(on).mark()
    GraphFormatter(on).format_resize()
    assert not model_of(on).changed_since(again)
    plain = graph()
    GraphFormatter(plain).format_resize()
    assert ops(model_of(plain)) == ["Relu", "Add", "Neg", "Abs"]


# --- inserting by variables and by operations, formatting -----------------------------------------


@pytest.mark.parametrize("name", ["a", "x", "w", "y"])
def test_an_operation_is_inserted_on_a_variable(name: str) -> None:
    on = graph()
    is_made = on.variables[name].source_op is not None
    readers = [each.name for each in on.variables[name].dest_ops]
    new = on.create_operation("Sin", "new")
    on.insert_op_on_var(new, name)
    model_of(on).check_view()
    assert on.variables[name] in (new.outputs if is_made else new.inputs)
    read, written = new.inputs[0], new.outputs[0]
    assert read is not None
    assert written is not None
    assert [each.name for each in written.dest_ops] == readers
    assert [each.name for each in read.dest_ops] == ["new"]
    assert list(on.outputs) == ["y"]


def test_what_cannot_be_inserted_on_a_variable() -> None:
    on = graph()
    with pytest.raises(ModelError, match="no variable 'nowhere'"):
        on.insert_op_on_var(on.create_operation("Sin"), "nowhere")
    for name in ("a", "x"):
        with pytest.raises(ModelError, match=r"without inputs and outputs|has operands already"):
            on.insert_op_on_var(next(iter(on.operations.values())), name)


def test_an_input_that_is_an_output_keeps_its_name() -> None:
    on = graph("g (float[2] x) => (float[2] x, float[2] y) { y = Relu(x) }")
    with pytest.raises(ModelError, match="'x' is an input and an output: only one keeps the name"):
        on.insert_op_on_var(on.create_operation("Sin"), "x")


def test_an_operation_is_inserted_between_two() -> None:
    on = graph("""g (float[2] x) => (float[2] y, float[2] z) {
        [top] a = Relu(x)  [left] y = Neg(a)  [right] z = Abs(a) }""")
    new = on.create_operation("Sin", "new")
    on.insert_op_between_ops(new, on.operations["top"], on.operations["left"])
    model_of(on).check_view()
    assert [up.name for up in on.get_upstream_operations(on.operations["left"])] == ["new"]
    assert [up.name for up in on.get_upstream_operations(on.operations["right"])] == ["top"]
    with pytest.raises(ModelError, match="'right' reads 0 variables of 'left', not one"):
        on.insert_op_between_ops(
            on.create_operation("Sin"), on.operations["left"], on.operations["right"]
        )


def test_a_graph_is_formatted_as_after_loading() -> None:
    on = graph("""g (float[1,1,3,3] x) => (float[1,1,3,3] y, float[1,1,3,3] z)
        <float[1] s = {2}, float[1] b = {1}, float[1] m = {0}, float[1] v = {1}> {
        w = Constant<value = float[1,1,1,1] {3}>()  dead = Sin(x)
        i = Identity(x)  c = Conv(i, w)  y = BatchNormalization(c, s, b, m, v)
        d = Relu(x)  z = BatchNormalization(d, s, b, m, v) }""")
    assert format_graph(on) is on
    assert sorted(ops(model_of(on))) == ["Conv", "Conv", "Relu"]
