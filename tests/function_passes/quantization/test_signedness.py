"""Quantised integers change their signedness with their zero points, and no number changes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.small import content, named, ops, parsed
from tiered.function_passes.quantization._signedness import (
    TO_SIGNED,
    TO_UNSIGNED,
    Signedness,
    change_signedness,
    quantized_values,
)
from tiered.graph import Model, Node
from tiered.graph.core.dtypes import DataType

STOCK = """float s = {0.5}, int8 z = {-3}, int8 other = {4}, float[2] r = {1,2},
    int8[2] zr = {1,-1}, int64[1] n = {8}, int64[2] halves = {1,1}, int64 i = {1},
    int8[2,2] w = {1,2,-128,127}, uint8 u = {3}"""
PAIR = "q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z)"


def of(nodes: str, inputs: str = "float[2,4] x", outputs: str = "float[?,?] y") -> Model:
    return parsed(f"({inputs}) => ({outputs}) <{STOCK}> {{ {nodes} }}")


def always(node: Node) -> bool:
    return True


def change(
    model: Model,
    name: str = "q",
    way: Signedness = TO_UNSIGNED,
    convertible: Callable[[Node], bool] = always,
) -> str | None:
    """Change a value; return why it stays."""
    value = named(model, name)
    node = value.producer or value.readers[0]
    before = content(model)
    skip = change_signedness(model.main, value, node, way, convertible)
    model.check_view(types=True)
    if skip is None:
        return None
    assert content(model) == before
    return str(skip)


def numbers(model: Model, name: str) -> Any:
    value = named(model, name)
    assert value.const is not None
    return value.const.dtype.name, value.const.tolist()


@pytest.mark.parametrize(
    ("way", "integers", "moved", "text"),
    [
        (TO_UNSIGNED, [-128, -1, 0, 127], [0, 127, 128, 255], "z + 128"),
        (TO_SIGNED, [0, 127, 128, 255], [-128, -1, 0, 127], "z - 128"),
    ],
)
def test_each_integer_moves_by_128(
    way: Signedness, integers: list[int], moved: list[int], text: str
) -> None:
    made = way.moved(np.array(integers, way.source.numpy))
    assert (made.dtype, made.tolist()) == (way.target.numpy, moved)
    assert str(way) == text


def test_integers_change_with_their_zero_point() -> None:
    model = of(PAIR)
    assert change(model) is None
    assert [node.op_type for node in model.main.topological_order()] == [
        "QuantizeLinear", "DequantizeLinear"
    ]  # fmt: skip
    assert named(model, "q").dtype == DataType.UINT8
    zero = model.main.nodes[0].inputs[2]
    assert zero is model.main.nodes[1].inputs[2]
    assert zero is not None
    assert numbers(model, zero.name) == ("uint8", 125)
    assert model.main.outputs[0].dtype == DataType.FLOAT
    assert change(model, way=TO_SIGNED) is None
    assert named(model, "q").dtype == DataType.INT8


def test_zero_points_that_are_absent_are_written() -> None:
    model = of("q = QuantizeLinear<output_dtype=3>(x, s)  y = DequantizeLinear(q, s)")
    assert change(model) is None
    quantize = model.main.nodes[0]
    assert not quantize.attributes
    assert quantize.inputs[2] is not None
    assert numbers(model, quantize.inputs[2].name) == ("uint8", 128)
    model = of(
        "q = QuantizeLinear<axis=0, output_dtype=3>(x, r)  y = DequantizeLinear<axis=0>(q, r)"
    )
    assert change(model) is None
    zero = model.main.nodes[0].inputs[2]
    assert zero is not None
    assert numbers(model, zero.name) == ("uint8", [128, 128])


def test_a_zero_point_for_each_index_changes_too() -> None:
    model = of("q = QuantizeLinear<axis=0>(x, r, zr)  y = DequantizeLinear<axis=0>(q, r, zr)")
    assert change(model) is None
    zero = model.main.nodes[0].inputs[2]
    assert zero is not None
    assert numbers(model, zero.name) == ("uint8", [129, 127])


@pytest.mark.parametrize(
    "move",
    [
        "m = Transpose(q)", "m = Reshape(q, n)", "m = Gather(q, i)", "m = Identity(q)",
        "m = Flatten(q)",
    ],
)  # fmt: skip
def test_what_moves_the_integers_has_the_new_dtype(move: str) -> None:
    model = of(f"q = QuantizeLinear(x, s, z)  {move}  y = DequantizeLinear(m, s, z)")
    assert change(model) is None
    assert named(model, "m").dtype == DataType.UINT8
    kinds = [node.op_type for node in model.main.topological_order()]
    assert kinds.count("Cast") == 0


def test_all_parts_of_a_split_and_the_maxima_of_a_pool_change() -> None:
    model = of("""q = QuantizeLinear(x, s, z)  a, b = Split(q, halves)
        y = DequantizeLinear(a, s, z)  v = DequantizeLinear(b, s, other)""")
    assert change(model) is None
    assert named(model, "a").dtype == named(model, "b").dtype == DataType.UINT8
    zeros = [node.inputs[2] for node in model.main.nodes_of("DequantizeLinear")]
    assert [value.const.item() for value in zeros if value and value.const is not None] == [
        125,
        132,
    ]
    text = """q = QuantizeLinear(x, s, z)  m, at = MaxPool<kernel_shape=[2,2]>(q)
        y = DequantizeLinear(m, s, z)"""
    model = of(text, "float[1,1,4,4] x")
    assert change(model) is None
    assert (named(model, "m").dtype, named(model, "at").dtype) == (DataType.UINT8, DataType.INT64)


def test_a_constant_changes_with_its_zero_point() -> None:
    model = of("y = DequantizeLinear(w, s, z)", "float x")
    assert change(model, "w") is None
    weight = model.main.nodes[0].inputs[0]
    assert weight is not None
    assert numbers(model, weight.name) == ("uint8", [[129, 130], [0, 255]])
    assert sorted(value.name for value in model.main.initializers if value.is_used) == sorted(
        [weight.name, "s", model.main.nodes[0].inputs[2].name]  # type: ignore[union-attr]  # written
    )


@pytest.mark.parametrize(
    ("nodes", "because"),
    [
        (PAIR.replace("y = ", "t = ") + " y = Cast<to=1>(q)", "the integers are used as integers"),
        (f"{PAIR} v = Transpose(w)  u2 = MatMulInteger(q, v)", "the integers are used as integers"),
        ("q = QuantizeLinear(x, s, z)  y = mine.Dequantize(q, s, z)", "the integers are used as"),
        (
            "q = QuantizeLinear(x, s, z)  g = Gather(w, q)  y = Cast<to=1>(g)",
            "the integers are used as",
        ),
    ],
)
def test_integers_that_are_read_as_such_stay(nodes: str, because: str) -> None:
    found = change(of(nodes.replace("mine.", "com.microsoft.")))
    assert found is not None
    assert found.startswith(because)


def test_integers_that_are_an_output_stay() -> None:
    model = of(PAIR, outputs="float[?,?] y, int8[2,4] q")
    assert change(model) == "the integers are a graph output"


def test_zero_points_are_constant() -> None:
    because = "a zero point is not constant"
    assert change(of(PAIR.replace("z)", "k)"), "float[2,4] x, int8 k")) == because
    text = "q = QuantizeLinear<axis=0, output_dtype=3>(x, k)  y = DequantizeLinear<axis=0>(q, k)"
    assert change(of(text, "float[N,4] x, float[N] k")) == because
    text = text.replace("<axis=0, output_dtype=3>", "<output_dtype=3>").replace("<axis=0>", "")
    assert change(of(text, "float[2,4] x, float[] k")) == because


def test_a_unit_that_a_call_decides_stays() -> None:
    model = parsed(
        """<ir_version: 10, opset_import: ["": 21, "local": 1]>
        g (float[2,2] x) => (float[2,2] y) { y = local.f<axis=0>(x) }
        <domain: "local", opset_import: ["": 21]> f <axis> (x) => (y) {
        s = Constant<value = float {0.5}>() z = Constant<value = int8 {3}>()
        q = QuantizeLinear<axis: int = @axis>(x, s, z) y = DequantizeLinear(q, s, z) }"""
    )
    function = model.functions[0]
    q = named(function, "q")
    assert q.producer is not None
    skip = change_signedness(function, q, q.producer, TO_UNSIGNED, always)
    assert str(skip) == "attribute 'axis' is a function parameter"


def test_constants_change_only_where_all_of_their_readers_may() -> None:
    text = "y = DequantizeLinear(w, s, z)  v = DequantizeLinear<axis=1>(w, s, z)"
    model = of(text, "float x")
    first = model.main.nodes[0]
    because = "a constant is quantised"
    assert change(model, "w", convertible=lambda node: node is first) == because
    # A Quantize of a constant asks the readers of its result.
    model = of("q = QuantizeLinear(r, s, z)  y = DequantizeLinear(q, s, z)", "float x")
    assert change(model, convertible=lambda node: False) == because
    assert change(model) is None


def test_the_values_that_may_change_are_found() -> None:
    model = of(f"{PAIR}  v = DequantizeLinear(w, s, z)  t = QuantizeLinear(x, s, u)")
    found = [
        (node.op_type, value.name)
        for node, value in quantized_values(model.main, TO_UNSIGNED, always)
    ]
    assert found == [("QuantizeLinear", "q"), ("DequantizeLinear", "w")]
    none = quantized_values(model.main, TO_UNSIGNED, lambda node: False)
    assert [value.name for _, value in none] == ["q"]
    signed = quantized_values(model.main, TO_SIGNED, lambda node: False)
    assert [value.name for _, value in signed] == ["t"]


def test_a_value_of_unknown_dtype_has_that_of_its_zero_point() -> None:
    model = of(PAIR)
    q = named(model, "q")
    model.main.set_type(q, None)
    assert TO_UNSIGNED.is_source(q)
    assert not TO_SIGNED.is_source(q)
    assert not TO_UNSIGNED.is_source(named(model, "x"))
    assert ops(model) == ["QuantizeLinear", "DequantizeLinear"]
