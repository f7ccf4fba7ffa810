"""Nodes with configs: parameters are baked and restored, and Q/DQ compute what the configs say."""

from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.recorded import assert_values
from tests.small import model, ops
from tiered import Model, Node
from tiered.compat.ppq.configs import quantable
from tiered.compat.ppq.configs.observed import activate_configs
from tiered.compat.ppq.configs.operations import OperationQuantizationConfig
from tiered.compat.ppq.configs.policies import (
    QuantizationPolicy,
    QuantizationProperty as P,
    RoundingPolicy,
)
from tiered.compat.ppq.configs.qdq import write_configs
from tiered.compat.ppq.configs.quantable import (
    QuantableNode,
    dequantize_model,
    quantable_nodes,
    quantable_of,
    quantize_node,
    restore_model,
)
from tiered.compat.ppq.configs.states import QuantizationStates as S
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig
from tiered.support.errors import ModelError

GEMM = """g (float[N,3] x) => (float[N,2] y)
    <float[3,2] w = {0.3,-1.1,0.25,0.7,-0.9,2.0}, float[2] b = {0.11,-0.23}> {
    a = Gemm(x, w, b)  y = Relu(a) }"""
SYMMETRIC = QuantizationPolicy(P.PER_TENSOR + P.LINEAR + P.SYMMETRICAL)
ASYMMETRIC = QuantizationPolicy(P.PER_TENSOR + P.LINEAR + P.ASYMMETRICAL)
CHANNELS = QuantizationPolicy(P.PER_CHANNEL + P.LINEAR + P.SYMMETRICAL)
X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(4, 3)


def data(**options: Any) -> TensorQuantizationConfig:
    return TensorQuantizationConfig(ASYMMETRIC, 8, 0, 255, **options)


def weight(**options: Any) -> TensorQuantizationConfig:
    return TensorQuantizationConfig(CHANNELS, 8, -127, 127, channel_axis=1, **options)


def bias() -> TensorQuantizationConfig:
    most = 2**31 - 1
    return TensorQuantizationConfig(CHANNELS, 32, -most, most, channel_axis=0, state=S.PASSIVE_INIT)


def floating() -> TensorQuantizationConfig:
    return TensorQuantizationConfig(SYMMETRIC, state=S.FP32)


def named(of: Model, name: str) -> Node:
    return next(node for node in of.main.nodes if node.label == f"node_{name}")


def gemm() -> tuple[Model, QuantableNode, QuantableNode]:
    """Return a Gemm and a Relu: the Relu's result dominates that of the Gemm."""
    made = model(GEMM)
    first = OperationQuantizationConfig([data(), weight(), bias()], [data()])
    second = OperationQuantizationConfig([data()], [data(observer_algorithm="mse")])
    (result,), (operand,) = first.output_quantization_config, second.input_quantization_config
    result.dominated_by = second.output_quantization_config[0]
    operand.dominated_by = second.output_quantization_config[0]
    return (
        made,
        quantize_node(named(made, "a"), first),
        quantize_node(named(made, "y"), second),
    )


def states(of: QuantableNode) -> list[str]:
    return [config.state.name for config in of.config]


def run(of: Model) -> np.ndarray[Any, Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(of.to_proto().SerializeToString(), options)
    (found,) = session.run(None, {"x": X})
    return np.asarray(found)


def activated() -> tuple[Model, QuantableNode, QuantableNode]:
    made, first, second = gemm()
    assert activate_configs(made, [{"x": X}]) == []
    return made, first, second


# --- ranges ---------------------------------------------------------------------------------------


# --- parameters -----------------------------------------------------------------------------------


def test_baked_parameters_run_as_the_qdq_model_bit_for_bit() -> None:
    baked, first, _ = activated()
    written, other, _ = activated()
    x = data()
    for each in (first, other):  # the parameters alone
        each.config.input_quantization_config[0] = x
        x.state = S.FP32
        each.config.output_quantization_config[0] = floating()
    for of in (baked, written):
        last = quantable_of(named(of, "y"))
        assert last is not None
        last.config = OperationQuantizationConfig([floating()], [floating()])
    first.bake()
    assert states(first) == ["FP32", "BAKED", "PASSIVE_BAKED", "FP32"]
    write_configs(written)
    assert ops(written).count("DequantizeLinear") == 2
    np.testing.assert_array_equal(run(baked), run(written))
    assert not np.array_equal(run(baked), run(model(GEMM)))


def test_a_baked_model_is_written_as_one_that_is_not() -> None:
    one, first, _ = activated()
    first.bake()
    first.bake()
    other, _, _ = activated()
    write_configs(one)
    write_configs(other)
    np.testing.assert_array_equal(run(one), run(other))


def test_dequantize_and_restore_return_the_same_bytes() -> None:
    made, first, second = activated()
    before = made.to_proto().SerializeToString()
    first.bake()
    baked = made.to_proto().SerializeToString()
    was = states(first), states(second)
    assert before != baked
    for _ in range(2):
        dequantize_model(made)
        assert set(states(first) + states(second)) == {"FP32"}
        assert made.to_proto().SerializeToString() == before
    for _ in range(2):
        restore_model(made)
        assert (states(first), states(second)) == was
        assert made.to_proto().SerializeToString() == baked


def test_parameters_alone_return_to_float() -> None:
    made, first, _ = activated()
    before = made.to_proto().SerializeToString()
    first.bake()
    first.dequantize(parameter_only=True)
    assert states(first) == ["ACTIVATED", "FP32", "FP32", "OVERLAPPED"]
    assert made.to_proto().SerializeToString() == before
    first.dequantize()
    assert set(states(first)) == {"FP32"}
    first.restore()
    assert states(first) == ["ACTIVATED", "BAKED", "PASSIVE_BAKED", "OVERLAPPED"]


def test_what_was_stored_is_what_returns() -> None:
    _, first, _ = activated()
    first.store()
    value = first.node.inputs[1]
    assert value is not None
    original = value.const
    assert original is not None
    value.owner.assign(value, original * 2)
    first.bake()
    first.dequantize()
    np.testing.assert_array_equal(value.const, original)
    with pytest.raises(ModelError, match="is baked; what it was before is stored"):
        first.store()
    first.restore()
    with pytest.raises(ModelError, match="is baked"):
        first.store()


def test_a_shared_parameter_is_not_baked() -> None:
    made = model(
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Add(x, w) y = Mul(a, w) }"
    )
    config = TensorQuantizationConfig(SYMMETRIC, scale=0.3, offset=0, state=S.ACTIVATED)
    configs = OperationQuantizationConfig([floating(), config], [floating()])
    found = quantize_node(named(made, "y"), configs)
    with pytest.raises(ModelError, match="has other users; run the pass format_parameter"):
        found.bake()
    assert config.state is S.ACTIVATED


def test_a_parameter_with_nan_is_not_baked() -> None:
    made = model("g (float[2] x) => (float[2] y) <float[2] w = {1, nan}> { y = Add(x, w) }")
    config = TensorQuantizationConfig(SYMMETRIC, scale=0.3, offset=0, state=S.ACTIVATED)
    configs = OperationQuantizationConfig([floating(), config], [floating()])
    found = quantize_node(named(made, "y"), configs)
    with pytest.raises(ModelError, match="has NaN or Inf"):
        found.bake()
    with pytest.raises(ModelError, match="has NaN or Inf"):
        write_configs(made)


def test_a_default_that_callers_feed_is_no_parameter() -> None:
    text = "g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }"
    made = model(text)
    config = TensorQuantizationConfig(SYMMETRIC, scale=0.3, offset=0, state=S.ACTIVATED)
    found = quantize_node(
        named(made, "y"), OperationQuantizationConfig([floating(), config], [floating()])
    )
    found.bake()
    assert config.state is S.ACTIVATED
    write_configs(made)
    assert ops(made) == ["QuantizeLinear", "DequantizeLinear", "Add"]


@pytest.mark.parametrize(
    "change", [lambda array: array.astype(np.float64), lambda array: array[:1]]
)
def test_a_function_keeps_dtype_and_shape(change: Any) -> None:
    made, first, _ = activated()
    before = made.to_proto().SerializeToString()
    with pytest.raises(ModelError, match="the function returned"):
        first.bake(lambda array, config: change(array))
    assert made.to_proto().SerializeToString() == before
    assert states(first)[1] == "ACTIVATED"


# --- which configs a node takes -------------------------------------------------------------------


def test_a_node_has_a_config_for_each_place() -> None:
    made = model(GEMM)
    with pytest.raises(ModelError, match="has 3 inputs, the config 1"):
        quantize_node(named(made, "a"), OperationQuantizationConfig([data()], [data()]))
    with pytest.raises(ModelError, match="has 1 output, the config 0"):
        quantize_node(named(made, "y"), OperationQuantizationConfig([data()], []))
    assert quantable_nodes(made) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("g (float[2] x, int64[1] s) => (float[N,M] y) { y = Reshape(x, s) }", 2),
        ("g (float[2] x, float[2] s) => (float[2] y) { y = Clip(x, , s) }", 3),
    ],
)
def test_what_is_no_float_tensor_stays_float(text: str, count: int) -> None:
    made = model(text)
    node, one = named(made, "y"), int(count == 2)
    with pytest.raises(ModelError, match=r"must be SOI or FP32"):
        quantize_node(node, OperationQuantizationConfig([data() for _ in range(count)], [data()]))
    configs = [data() for _ in range(count)]
    configs[1] = TensorQuantizationConfig(SYMMETRIC, state=S.SOI if one else S.FP32)
    assert quantize_node(node, OperationQuantizationConfig(configs, [data()])).node is node


def test_a_node_is_quantised_once() -> None:
    _, first, _ = gemm()
    with pytest.raises(ModelError, match="quantised already"):
        quantize_node(first.node, first.config)


# --- Q/DQ -----------------------------------------------------------------------------------------


def expected(first: QuantableNode, second: QuantableNode) -> np.ndarray[Any, Any]:
    """Return what the configs say, computed by numpy."""
    x, w, b, _ = first.config
    arrays = [value.const for _, _, value in first.parameters()]
    assert arrays[0] is not None
    assert arrays[1] is not None
    a, c, d = (
        config.numbers(config.codes(array))
        for config, array in ((x, X), (w, arrays[0]), (b, arrays[1]))
    )
    y = second.config.output_quantization_config[0]
    return y.numbers(y.codes(np.maximum(a @ c + d, 0)))


def test_written_configs_compute_what_they_say() -> None:
    made, first, second = activated()
    wanted = expected(first, second)
    step = second.config.output_quantization_config[0].scale
    write_configs(made)
    assert quantable_nodes(made) == []
    # Data x and the result y are quantised; weight and bias are stored.
    assert Counter(ops(made)) == {"QuantizeLinear": 2, "DequantizeLinear": 4, "Gemm": 1, "Relu": 1}
    proto = made.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    assert [each.name for each in proto.graph.output] == ["y"]
    assert step is not None
    # A sum near a half may round to either side.
    assert np.abs(run(made) - wanted).max() <= 1.001 * step
    assert np.mean(run(made) == wanted) > 0.8


def test_operands_that_agree_share_a_pair_and_others_do_not() -> None:
    made = model("g (float[2] x) => (float[2] y) { a = Add(x, x)  y = Mul(a, x) }")

    def active(scale: float) -> TensorQuantizationConfig:
        return data(scale=scale, offset=0, state=S.ACTIVATED)

    quantize_node(
        named(made, "a"), OperationQuantizationConfig([active(1), active(1)], [active(2)])
    )
    quantize_node(
        named(made, "y"), OperationQuantizationConfig([active(2), active(3)], [floating()])
    )
    write_configs(made)
    # x by 1, x by 3, and the result a; its reader agrees with it.
    assert ops(made).count("QuantizeLinear") == 3
    onnx.checker.check_model(made.to_proto(), full_check=True)


def written(config: TensorQuantizationConfig, opset: int = 21, *, is_data: bool = True) -> Model:
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
    made = model(text)
    if opset != 21:
        proto = made.to_proto()
        proto.opset_import[0].version = opset
        made = Model.from_proto(proto)
    configs = [config, floating()] if is_data else [floating(), config]
    quantize_node(named(made, "y"), OperationQuantizationConfig(configs, [floating()]))
    write_configs(made)
    return made


def active(policy: QuantizationPolicy, *codes: int, **options: Any) -> TensorQuantizationConfig:
    shape = (2,) if policy.is_per_channel else ()
    found = TensorQuantizationConfig(
        policy, *codes, scale=np.ones(shape), offset=np.zeros(shape, int), **options
    )
    found.state = S.ACTIVATED
    return found


ODD = RoundingPolicy.ROUND_UP


@pytest.mark.parametrize(
    ("config", "opset", "message"),
    [
        (data, 21, "its state is INITIAL"),
        (lambda: data(state=S.PASSIVE_INIT), 21, "its state is PASSIVE_INIT"),
        (lambda: active(SYMMETRIC, 8, -127, 127), 21, "saturates at -128 and 127"),
        (lambda: active(SYMMETRIC, 3, -4, 3), 21, "saturates at -8 and 7"),
        (lambda: active(SYMMETRIC, 32, -(2**31), 2**31 - 1), 21, "makes no int32"),
        (lambda: active(SYMMETRIC, 32, 0, 2**32 - 1), 21, "no integer dtype holds"),
        (lambda: active(SYMMETRIC, rounding=ODD), 21, "halves to even, not by ROUND_UP"),
        (lambda: active(SYMMETRIC, 4, -8, 7), 20, "need opset 21, not 20"),
        (lambda: active(SYMMETRIC, 16, 0, 65535), 13, "need opset 21, not 13"),
        (lambda: active(SYMMETRIC), 9, "need opset 10, not 9"),
        (lambda: active(CHANNELS, channel_axis=0), 12, "need opset 13, not 12"),
    ],
)
def test_what_onnx_cannot_say_is_refused(config: Any, opset: int, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        written(config(), opset)


@pytest.mark.parametrize(
    ("config", "opset"),
    [
        (lambda: active(SYMMETRIC), 10),
        (lambda: active(CHANNELS, channel_axis=0), 13),
        (lambda: active(SYMMETRIC, 16, -32768, 32767), 21),
        (lambda: active(ASYMMETRIC, 4, 0, 15), 21),
    ],
)
def test_what_onnx_can_say_is_written(config: Any, opset: int) -> None:
    assert ops(written(config(), opset)) == ["QuantizeLinear", "DequantizeLinear", "Add"]


def test_a_parameter_has_any_codes_and_rounding() -> None:
    config = active(SYMMETRIC, 3, -3, 3, rounding=ODD)
    assert ops(written(config, is_data=False)) == ["DequantizeLinear", "Add"]


def test_baked_data_and_dequantized_configs_are_refused() -> None:
    baked, dequantized = active(SYMMETRIC), active(SYMMETRIC)
    baked.state = S.BAKED
    dequantized.dequantize()
    with pytest.raises(ModelError, match="data cannot be baked"):
        written(baked)
    with pytest.raises(ModelError, match="call restore first"):
        written(dequantized)


@pytest.mark.parametrize("is_data", [True, False])
@pytest.mark.parametrize(
    ("axis", "count", "message"),
    [(1, 2, r"shape \[2\] has no axis 1"), (0, 3, r"axis 0 of shape \[2\] has 3 scales")],
)
def test_scales_fit_their_axis(axis: int, count: int, message: str, is_data: bool) -> None:
    config = TensorQuantizationConfig(
        CHANNELS, scale=np.ones(count), offset=np.zeros(count, int), channel_axis=axis
    )
    config.state = S.ACTIVATED
    with pytest.raises(ModelError, match=message):
        written(config, is_data=is_data)


def test_a_node_of_a_body_is_written_in_the_body() -> None:
    made = model("""g (float[2] x, bool c) => (float[2] y) <float[2] w = {0.3, 1.7}> {
        y = If(c) <
            then_branch = t () => (float[2] p) { p = Mul(x, w) },
            else_branch = e () => (float[2] q) { q = Neg(x) }
        > }""")
    body = next(graph for graph in made.graphs() if any(n.op_type == "Mul" for n in graph.nodes))
    (node,) = (node for node in body.nodes if node.op_type == "Mul")
    configs = [active(SYMMETRIC), TensorQuantizationConfig(SYMMETRIC)]
    result = TensorQuantizationConfig(SYMMETRIC)
    quantize_node(node, OperationQuantizationConfig(configs, [result]))
    (unknown,) = activate_configs(made, [{"x": np.ones(2, np.float32), "c": np.array(True)}])
    assert unknown.reason == "a value inside a body is not measured"
    result.scale, result.offset, result.state = 0.5, 0, S.ACTIVATED
    write_configs(made)
    proto = made.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    feeds = {"x": np.array([2, 3.6], np.float32), "c": np.array(True)}
    (found,) = session.run(None, feeds)
    # x becomes 2 and 4; w keeps its numbers within half a step.
    np.testing.assert_array_equal(found, [0.5, 7.0])
    assert [each.name for each in proto.graph.output] == ["y"]


def test_a_dominator_belongs_to_a_node() -> None:
    config = data()
    config.dominated_by = data(scale=1.0, offset=0, state=S.ACTIVATED)
    with pytest.raises(ModelError, match="its dominator is the config of no node"):
        written(config)


def test_a_baked_parameter_that_was_changed_is_refused() -> None:
    made, first, _ = activated()
    first.bake()
    value = first.node.inputs[1]
    assert value is not None
    value.owner.assign(value, np.full((3, 2), 0.123, np.float32))
    before = made.to_proto().SerializeToString()
    with pytest.raises(ModelError, match="holds other numbers than its scale and offset allow"):
        write_configs(made)
    assert made.to_proto().SerializeToString() == before


def test_nodes_with_configs_are_recorded() -> None:
    def shown(of: QuantableNode) -> object:
        weights = [value.const for _, _, value in of.parameters()]
        stored = sorted(value.name for value in of.stored)
        return states(of), [None if each is None else each.tolist() for each in weights], stored

    def steps(*edits: Any) -> object:
        _, first, _ = activated()
        return [(edit(first), shown(first))[1] for edit in edits]

    def refused(inputs: int, outputs: int, config: Any = data) -> object:
        made = model(GEMM)
        configs = OperationQuantizationConfig(
            [config() for _ in range(inputs)], [config() for _ in range(outputs)]
        )
        return states(quantize_node(named(made, "a"), configs))

    def undone() -> object:
        """Return the states and the numbers after an edit that is undone."""
        of, first, _ = activated()
        mark = of.mark()
        first.bake()
        of.undo_to(mark)
        return quantable_of(first.node) is first, shown(first)

    def copied() -> object:
        """Return the notes of the nodes of a copied model."""
        of, first, _ = activated()
        first.bake()
        twin = of.copy()
        pairs = list(zip(of.main.nodes, twin.main.nodes, strict=True))
        quantable.forget_configs(pairs[1][0])
        for own, other in pairs:
            other.scratch.clear()
            own.scratch["mine"] = own.op_type
        quantable.copy_notes(pairs)
        made = [quantable_of(other) for _, other in pairs]
        notes = [other.scratch.get("mine") for _, other in pairs]
        return notes, [None if each is None else shown(each) for each in made], made[0] is first

    names = {"steps": steps, "refused": refused, "undone": undone, "copied": copied,
             "floating": floating, "np": np,
             "again": lambda node: quantize_node(node.node, node.config),
             "Q": quantable.QuantableNode,
             "forget": lambda node: quantable.forget_configs(node.node),
             "found": lambda node: quantable.quantable_of(node.node) is node,
             "halves": lambda array, config: array.astype(np.float16),
             "twice": lambda array, config: array * 2,
             "shorter": lambda array, config: array[1:]}  # fmt: skip
    assert_values(__file__, names)
