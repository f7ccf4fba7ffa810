"""The integers that hold the codes of a config, and what ONNX cannot say of one."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.recorded import assert_values
from tests.small import model, parsed
from tiered.compat.ppq.configs.operations import OperationQuantizationConfig
from tiered.compat.ppq.configs.policies import (
    QuantizationPolicy,
    QuantizationProperty as P,
    RoundingPolicy,
)
from tiered.compat.ppq.configs.qdq import key_of, write_configs
from tiered.compat.ppq.configs.quantable import quantize_node
from tiered.compat.ppq.configs.states import QuantizationStates as S
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig
from tiered.support.errors import ModelError

TENSOR = QuantizationPolicy(P.PER_TENSOR + P.LINEAR + P.ASYMMETRICAL)
TEXT = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"


def config(bits: int, low: int, high: int, **more: Any) -> TensorQuantizationConfig:
    settings = {"scale": 0.5, "offset": 0, "state": S.ACTIVATED, **more}
    return TensorQuantizationConfig(TENSOR, bits, low, high, **settings)


def floating() -> TensorQuantizationConfig:
    return TensorQuantizationConfig(TENSOR, state=S.FP32)


def written(data: TensorQuantizationConfig, weight: TensorQuantizationConfig) -> onnx.ModelProto:
    of = model(TEXT)
    quantize_node(of.main.nodes[0], OperationQuantizationConfig([data, weight], [floating()]))
    write_configs(of)
    return of.to_proto()


def stored(proto: onnx.ModelProto) -> set[str]:
    """Return the dtypes of the zero points, which are those of the codes."""
    dtypes = {tensor.name: tensor.data_type for tensor in proto.graph.initializer}
    pairs = ("QuantizeLinear", "DequantizeLinear")
    zeros = [node.input[2] for node in proto.graph.node if node.op_type in pairs]
    return {onnx.TensorProto.DataType.Name(dtypes[name]) for name in zeros}


@pytest.mark.parametrize(
    ("bits", "low", "high", "dtype"),
    [
        (4, -8, 7, "INT4"),
        (4, 0, 15, "UINT4"),
        (4, -9, 6, "INT8"),
        (4, 1, 16, "INT8"),
        (5, -8, 7, "INT8"),
        (8, -128, 127, "INT8"),
        (8, 0, 255, "UINT8"),
        (8, -127, 128, "INT16"),
        (8, 1, 256, "INT16"),
        (16, -32768, 32767, "INT16"),
        (16, 0, 65535, "UINT16"),
        (16, -32769, 0, "INT32"),
        (32, -(2**31), 2**31 - 1, "INT32"),
    ],
)
def test_the_least_integers_that_hold_the_codes_store_a_parameter(
    bits: int, low: int, high: int, dtype: str
) -> None:
    made = config(bits, low, high, offset=max(low, 0))
    assert stored(written(floating(), made)) == {dtype}


def test_no_integers_hold_more_than_32_bits() -> None:
    with pytest.raises(ModelError, match="no integer dtype holds 0 to 2147483648"):
        written(floating(), config(32, 0, 2**31))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (config(8, -127, 127), "QuantizeLinear saturates at -128 and 127"),
        (config(8, -128, 126), "QuantizeLinear saturates at -128 and 127"),
        (config(32, -(2**31), 2**31 - 1), "QuantizeLinear makes no int32"),
        (
            config(8, 0, 255, rounding=RoundingPolicy.ROUND_UP),
            "QuantizeLinear rounds halves to even, not by ROUND_UP",
        ),
    ],
)
def test_data_is_rounded_as_the_operator_does(data: TensorQuantizationConfig, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        written(data, floating())
    assert stored(written(floating(), data)) != set()  # a parameter is rounded here


def test_a_pair_around_data_and_none_around_floats() -> None:
    proto = written(config(8, 0, 255), floating())
    assert [node.op_type for node in proto.graph.node] == [
        "QuantizeLinear",
        "DequantizeLinear",
        "Add",
    ]
    assert [node.op_type for node in written(floating(), floating()).graph.node] == ["Add"]


def test_configs_that_quantise_alike_have_one_key() -> None:
    assert key_of(config(8, 0, 255)) == key_of(config(8, 0, 255))
    others = [
        config(8, 0, 255, scale=0.25),
        config(8, 0, 255, offset=1),
        config(8, -128, 127),
    ]
    assert len({key_of(each) for each in (*others, config(8, 0, 255))}) == 4


def test_the_integers_of_a_parameter_are_its_rounded_numbers() -> None:
    proto = written(floating(), config(8, -128, 127, scale=0.4))
    arrays = {each.name: onnx.numpy_helper.to_array(each) for each in proto.graph.initializer}
    (node,) = (each for each in proto.graph.node if each.op_type == "DequantizeLinear")
    np.testing.assert_array_equal(arrays[node.input[0]], np.array([2, 5], np.int8))  # 2.5 to even


def shown(*configs: TensorQuantizationConfig, text: str = TEXT, opset: int = 21) -> object:
    """Return the nodes and the constants that configs of the first node are written as."""
    of = parsed(text[2:], opset=opset)
    node = of.main.nodes[0]
    count = len(node.inputs)
    quantize_node(node, OperationQuantizationConfig([*configs[:count]], [*configs[count:]]))
    write_configs(of)
    nodes = [
        f"{each.op_type} {[v and v.name for v in each.inputs]} {dict(each.attributes)}"
        for each in of.main.topological_order()
    ]
    tensors = {
        value.name: (str(value.const.dtype), value.const.tolist())
        for value in of.main.initializers
        if value.const is not None
    }
    return nodes, tensors


def floated(made: TensorQuantizationConfig) -> TensorQuantizationConfig:
    made.state = S.FP32
    return made


def between(first: TensorQuantizationConfig, second: TensorQuantizationConfig) -> list[str]:
    """Return the nodes that the configs of a value at its producer and at its reader become."""
    of = parsed("(float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }")
    for node, parts in zip(of.main.nodes, ([floating(), first], [second, floating()]), strict=True):
        quantize_node(node, OperationQuantizationConfig(parts[:1], parts[1:]))
    write_configs(of)
    return [
        f"{each.op_type} {[v and v.name for v in each.inputs]}"
        for each in of.main.topological_order()
    ]


WIDE = """g (float[2,3] x) => (float[2,3] y)
    <float[2,3] w = {1,2,3,4,5,6}> { y = Add(x, w) }"""


def test_what_is_written_is_recorded() -> None:
    channels = QuantizationPolicy(P.PER_CHANNEL + P.LINEAR + P.SYMMETRICAL)
    names = {
        "shown": shown,
        "c": config,
        "f": floating,
        "S": S,
        "up": RoundingPolicy.ROUND_UP,
        "made": TensorQuantizationConfig,
        "TENSOR": TENSOR,
        "rows": lambda axis, scale, low=-128, high=127, **more: TensorQuantizationConfig(
            channels,
            8,
            low,
            high,
            channel_axis=axis,
            scale=scale,
            offset=np.zeros(len(scale), int),
            state=S.ACTIVATED,
            **more,
        ),
        "floated": floated,
        "dequantized": lambda made: (made.dequantize(), made)[1],
        "between": between,
        "UNKNOWN": "g (float[2,3] d, int64[k] i) => (y) <float[2] w = {1,2}> "
        "{ y = Mul(x, w) x = Reshape(d, i) }",
        "CLIP": "g (float[2] x, float k) => (float[2] y) { y = Clip(x, , k) }",
        "key_of": key_of,
        "WIDE": WIDE,
    }
    assert_values(__file__, names)


def test_the_float_numbers_of_a_stored_parameter_go_unless_another_node_reads_them() -> None:
    weights = ("w", "w_quantized", "w_scale", "w_zero_point")
    assert [t.name for t in written(floating(), config(8, -128, 127)).graph.initializer] == [
        *weights[1:]
    ]
    of = model("g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> "
               "{ y = Add(x, w) z = Neg(w) }")  # fmt: skip
    parts = OperationQuantizationConfig([floating(), config(8, -128, 127)], [floating()])
    quantize_node(of.main.nodes[0], parts)
    write_configs(of)
    assert sorted(value.name for value in of.main.initializers) == [*weights]
