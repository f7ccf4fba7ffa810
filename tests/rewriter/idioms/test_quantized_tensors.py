"""Quantised units: what stands for numbers in a way that no kernel of integers takes."""

import numpy as np
import pytest

from tests.constants import spoken_of
from tests.small import named, parsed
from tiered.graph import Graph, Value
from tiered.graph.core.types import Dim
from tiered.rewriter.idioms.quantized_tensors import (
    Quantized,
    dequantized,
    integer_bias,
    is_number_or_column,
    weight_unit,
    why_may_overflow,
    why_sums_nothing,
)
from tiered.rewriter.skip import Skip
from tiered.testing import assert_rewrites, assert_unchanged

ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("int8[2,1,1,1] w = {3,-5}", "float[2] r = {0.25,0.5}", "int8[2] v = {0,0}"),
    *("float s = {0.5}", "float t = {2.0}", "uint8 z = {3}", "uint8 u = {1}"),
    *("int32[2] b = {10,-20}", "int32[3] i = {1,2,3}"),
)
X = "d = DequantizeLinear(x, s, z)"
W = "e = DequantizeLinear<axis=0>(w, r, v)"
Q = "y = QuantizeLinear(c, t, u)"


def graph(nodes: str, inputs: str = "uint8[N,1,4,4] x", *others: str) -> str:
    return f"({inputs}) => (uint8[N,2,4,4] y) {spoken_of(nodes, *CONSTANTS, *others)} {{ {nodes} }}"


@pytest.mark.parametrize(
    ("bias", "inputs", "because"),
    [
        ("", "float[2] f", "the bias is not constant"),
        ("f = DequantizeLinear(a, s)", "int32[2] a", "the bias is not constant"),
        ("f = DequantizeLinear(b, a)", "float a", "the bias is not constant"),
        ("f = DequantizeLinear(b, s, a)", "int32 a", "the bias is not constant"),
        (
            "f = DequantizeLinear<axis=0>(i, q, j)",
            "float a",
            "the bias is not one number a channel",
        ),
    ],
)
def test_a_bias_is_constant_and_one_number_a_channel(bias: str, inputs: str, because: str) -> None:
    text = graph(
        f"{X} {W} {bias} c = Conv(d, e, f) {Q}",
        f"uint8[N,1,4,4] x, {inputs}",
        *("float[2] q = {1,2}", "int32[2] j = {0,0}"),
    )
    assert_unchanged("fuse_qdq_into_conv", text, backend=ORT, because=because)


@pytest.mark.parametrize(
    ("was", "has", "because"),
    [
        ("float s = {0.5}", "float16 s = {14336}", "a scale is no float32"),
        (
            "DequantizeLinear(x, s, z)",
            "DequantizeLinear<axis=2, block_size=2>(x, q, k)",
            "a scale is for a block",
        ),
    ],
)
def test_scales_are_float32_and_of_more_than_a_block(was: str, has: str, because: str) -> None:
    text = (
        "(uint8[1,2,4] x) => (uint8[1,2,4] y) <float s = {0.5}, uint8 z = {3},"
        " float[1,2,2] q = {1,2,3,4}, uint8[1,2,2] k = {0,0,0,0}>"
        " { d = DequantizeLinear(x, s, z) c = Sigmoid(d) y = QuantizeLinear(c, s, z) }"
    )
    assert_unchanged("fuse_qdq_into_unary", text.replace(was, has), backend=ORT, because=because)


def test_an_axis_needs_a_rank_to_count_it_from() -> None:
    text = (
        "(uint8[] x) => (uint8[] y) <float[2] s = {1,2}, uint8[2] z = {3,4}>"
        " { d = DequantizeLinear<axis=-1>(x, s, z) c = Sigmoid(d)"
        " y = QuantizeLinear<axis=-1>(c, s, z) }"
    )
    assert_unchanged(
        "fuse_qdq_into_unary",
        text,
        backend=ORT,
        because="the rank of the quantised tensor is not known",
    )


def test_an_axis_that_a_call_decides_stays() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
      g (uint8[2,2] x) => (uint8[2,2] y) { y = local.f<axis=1>(x) }
      <domain: "local", opset_import: ["": 21]>
      f <axis> (x) => (y) {
        s = Constant<value = float[2] {0.5, 0.25}>() z = Constant<value = uint8[2] {3, 4}>()
        d = DequantizeLinear<axis: int = @axis>(x, s, z) c = Sigmoid(d)
        y = QuantizeLinear<axis: int = @axis>(c, s, z) }"""
    assert_unchanged(
        "fuse_qdq_into_unary",
        text,
        backend=ORT,
        because="attribute 'axis' is a function parameter",
    )


def test_a_bias_of_numbers_is_one_for_each_scale_of_the_weight() -> None:
    text = graph(f"{X} {W} c = Conv(d, e, f) {Q}", "uint8[N,1,4,4] x", "float[3] f = {1,2,3}")
    because = "the bias is not one number a channel"
    assert_unchanged("fuse_qdq_into_conv", text, backend=ORT, because=because)


def test_what_is_computed_is_a_float32() -> None:
    dequantized = "DequantizeLinear<output_dtype={}>"
    text = (
        "(uint8[2,3] a, uint8[3,4] b) => ({}[2,4] y) <float s = {{0.5}}, uint8 z = {{0}}>"
        " {{ da = {}(a, s, z) db = {}(b, s, z) y = MatMul(da, db) }}"
    )
    halves, floats = dequantized.format(10), dequantized.format(1)
    assert_unchanged(
        "fuse_dequantize_into_matmul",
        text.format("float16", halves, halves),
        opset=23,
        backend=ORT,
        because="DequantizeLinear does not produce float32",
    )
    assert_rewrites(
        "fuse_dequantize_into_matmul",
        text.format("float", floats, floats),
        "(uint8[2,3] a, uint8[3,4] b) => (float[2,4] y) <float s = {0.5}, uint8 z = {0}>"
        " { y = com.microsoft.MatMulIntegerToFloat(a, b, s, s, z, z) }",
        opset=23,
        backend=ORT,
    )


def test_a_division_in_another_precision_stays() -> None:
    assert_unchanged(
        "fuse_qdq_into_move",
        "(uint8[2,3] x) => (uint8[3,2] y) <float s = {0.5}, uint8 z = {0}>"
        " { d = DequantizeLinear(x, s, z) m = Transpose(d)"
        " y = QuantizeLinear<precision=10>(m, s, z) }",
        opset=23,
        backend=ORT,
        because="the precision of QuantizeLinear is not float32",
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_numbers_that_may_be_infinite_stay_numbers(dtype: str) -> None:
    text = (
        f"({dtype}[2,2] x) => ({dtype}[2,2] y) <float s = {{5e33}}, {dtype} z = {{0}}>"
        " { d = DequantizeLinear(x, s, z) m = Transpose<perm=[1,0]>(d)"
        " y = QuantizeLinear(m, s, z) }"
    )
    assert_rewrites(
        "fuse_qdq_into_move",
        text,
        f"({dtype}[2,2] x) => ({dtype}[2,2] y) {{ y = Transpose<perm=[1,0]>(x) }}",
        backend=ORT,
    )
    assert_unchanged(
        "fuse_qdq_into_move",
        text.replace("5e33", "1e37"),
        backend=ORT,
        because="a scale is so large that dequantised numbers may overflow",
    )


READ: dict[str, int | str | None] = {
    # The axis of the scales, or why the tensor is not read.
    "DequantizeLinear(x, one, z)": None,
    "DequantizeLinear(x, list1)": None,
    "DequantizeLinear(x, tiny)": None,
    "DequantizeLinear<axis=0>(x, two)": 0,
    "DequantizeLinear(x, three)": 1,
    "DequantizeLinear<axis=-2>(x, two)": 0,
    "Relu(f)": "an operand has no DequantizeLinear",
    "com.microsoft.DequantizeLinear(x, one, z)": "an operand has no DequantizeLinear",
    "DequantizeLinear(h, one)": "the integers do not have 8 bits",
    "DequantizeLinear(x, s)": "a scale or zero point is not a constant",
    "DequantizeLinear(x, one, zi)": "a scale or zero point is not a constant",
    "DequantizeLinear(x, half)": "a scale is no float32",
    "DequantizeLinear(x, naught)": "a scale is not a positive normal number",
    "DequantizeLinear(x, minus)": "a scale is not a positive normal number",
    "DequantizeLinear(x, small)": "a scale is not a positive normal number",
    "DequantizeLinear(x, inf)": "a scale is not a positive normal number",
    "DequantizeLinear(x, most)": "a scale is not a positive normal number",
    "DequantizeLinear(x, large)": "a scale is so large that dequantised numbers may overflow",
    "DequantizeLinear(x, fits)": None,
    "DequantizeLinear<axis=0>(r, two)": "the rank of the quantised tensor is not known",
}


def test_which_dequantised_tensors_are_read() -> None:
    for call, expected in READ.items():
        model = parsed(
            "(uint8[2,3] x, float[2,3] f, int16[2] h, uint8[2] g, float s, uint8 zi, int64[K] t) =>"
            " (float[?] o) <float one = {1}, float[1] list1 = {1}, float[2] two = {1,2},"
            " float[3] three = {1,2,3}, uint8 z = {3}, float16 half = {15360}, float naught = {0},"
            " float minus = {-1}, float small = {1e-40}, float tiny = {1.17549435e-38},"
            " float inf = {inf}, float most = {3.4028235e38}, float large = {5.2e33},"
            f" float fits = {{5.19e33}}> {{ r = Reshape(x, t) y = {call} o = Identity(y) }}"
        )
        found = dequantized(named(model, "y"))
        if isinstance(found, Skip):
            assert found.reason == expected, call
        else:
            assert found.axis == expected, call
            assert found.q in model.main.nodes[1].inputs
    assert isinstance(dequantized(None), Skip)


def typed(*kinds: str) -> tuple[Graph, list[Value]]:
    """Return a graph with inputs of these types."""
    names = [f"x{at}" for at in range(len(kinds))]
    inputs = ", ".join(f"{kind} {name}" for kind, name in zip(kinds, names, strict=True))
    graph = parsed(f"({inputs}) => (float o) {{ o = Constant<value_float=1.0>() }}").main
    return graph, list(graph.inputs)


def unit(graph: Graph, q: Value, scales: object, zeros: object = None) -> Quantized:
    zero = None if zeros is None else graph.constant(np.array(zeros, np.int16))
    return Quantized(q, graph.constant(np.array(scales, np.float32)), zero)


def test_the_largest_distance_from_a_zero_point() -> None:
    graph, (signed, unsigned) = typed("int8[2]", "uint8[2]")
    for q, zeros, reach in (
        (signed, None, 128),
        (signed, 0, 128),
        (signed, -128, 255),
        (signed, 127, 255),
        (signed, [-3, 2], 130),
        (unsigned, None, 255),
        (unsigned, 128, 128),
        (unsigned, 3, 252),
        (unsigned, 200, 200),
    ):
        assert unit(graph, q, 1, zeros).reach == reach


def test_an_absent_zero_point_is_0_for_each_scale() -> None:
    graph, (q, other) = typed("int8[2]", "uint8[2]")
    given = unit(graph, q, [1, 2], [3, 4])
    assert given.parameters(graph) == (given.scale, given.zero)
    absent = unit(graph, q, [1, 2])
    first, scale, zero = absent.operands(graph)
    assert (first, scale) == (q, absent.scale)
    assert zero.const is not None
    assert (zero.const.tolist(), zero.const.dtype) == ([0, 0], np.int8)
    for same, expected in (
        (unit(graph, q, [1, 2], [0, 0]), True),
        (unit(graph, other, [1, 2]), False),
        (absent._replace(axis=0), False),
        (unit(graph, q, [1, 3]), False),
        (unit(graph, q, [1, 2], [0, 1]), False),
    ):
        assert absent.has_parameters_of(same) is expected


def test_weights_that_kernels_take() -> None:
    model = parsed(
        "(uint8[2,3] x, int8[2,3] y, uint8[3,2] v, int8[3,2] w) => (float o)"
        " <float one = {1}, float[2] two = {1,2}, uint8[2] same = {3,3}, uint8[2] other = {3,4}> {"
        " a = DequantizeLinear(v, two, same) b = DequantizeLinear(v, two, other)"
        " c = DequantizeLinear(w, one) d = DequantizeLinear<axis=-1>(w, two)"
        " o = Constant<value_float=1.0>() }"
    )
    x, y = (Quantized(q, named(model, "one"), None) for q in model.main.inputs[:2])
    for data, weight, axis, expected in (
        (x, "a", 1, None),
        (x, "a", 0, "the weight has scales along another axis"),
        (x, "b", 1, "the zero points of the weight differ"),
        (x, "c", 0, None),
        (x, "d", 1, None),
        (y, "d", 1, None),
        (y, "a", 1, "there is no kernel for signed data and unsigned weights"),
        (x, "o", 1, "an operand has no DequantizeLinear"),
    ):
        found = weight_unit(data, named(model, weight), axis)
        assert (found.reason if isinstance(found, Skip) else None) == expected, (weight, axis)


def test_a_scale_is_one_number_or_one_for_each_column() -> None:
    rows: tuple[tuple[str, Dim, bool], ...] = (
        ("float", 4, True),
        ("float[1]", 4, True),
        ("float[1]", "N", True),
        ("float[4]", 4, True),
        ("float[4]", 5, False),
        ("float[4]", "N", False),
        ("float[2,4]", 4, False),
        ("float[K]", "K", True),
        ("float[K]", "N", False),
        ("float[K]", 4, True),
        ("float[K]", 2, True),
        ("float[K]", 1, False),
    )
    for kind, columns, expected in rows:
        _, (value,) = typed(kind)
        assert is_number_or_column(value, columns) is expected, (kind, columns)


def test_sums_have_terms_if_one_of_the_sizes_is_positive() -> None:
    for a, b, expected in (
        ("float[2,3]", "float[3,4]", True),
        ("float[2,N]", "float[1,4]", True),
        ("float[2,3]", "float[N,4]", True),
        ("float[2,N]", "float[M,4]", False),
        ("float[2,0]", "float[0,4]", False),
    ):
        _, values = typed(a, b)
        assert (why_sums_nothing(*values) is None) is expected, (a, b)


MOST = 2**31 - 1


@pytest.mark.parametrize(
    ("bias", "scales", "step", "expected"),
    [
        ([1.0, 3.0], [1, 2], 0, [2, 3]),
        ([1.0, 2.0, 3.0], 2, 0, [1, 2, 3]),
        ([[1.0, 3.0]], [1, 2], 0, "the bias is not one number a channel"),
        ([1.0, 2.0, 3.0], [1, 2], 0, "the bias is not one number a channel"),
        ([MOST], 2, 0, [MOST]),
        ([-MOST], 2, 0, [-MOST]),
        ([MOST + 1], 2, 0, "the bias does not fit 32 bits"),
        ([np.inf], 2, 0, "the bias does not fit 32 bits"),
        ([np.nan], 2, 0, "the bias does not fit 32 bits"),
        ([1 + 2**-8], 2, 1, [1]),
        ([1 + 2**-7], 2, 1, "the scale of data times weight is too coarse for the bias"),
        ([1 - 2**-7], 2, 2, [1]),
        ([], 2, 0, []),
    ],
)
def test_a_constant_bias_in_units_of_both_scales(
    bias: list[float], scales: list[float], step: float, expected: object
) -> None:
    graph, (q, w) = typed("uint8[2,3]", "uint8[3,2]")
    given = graph.constant(np.array(bias, np.float64))
    made = integer_bias(graph, given, unit(graph, q, 0.5), unit(graph, w, scales), step)
    if isinstance(made, Value):
        assert made.const is not None
        assert made.const.dtype == np.int32
        assert made.const.tolist() == expected
    else:
        assert isinstance(made, Skip)
        assert made.reason == expected
    assert integer_bias(graph, None, unit(graph, q, 0.5), unit(graph, w, scales), step) is None


def test_a_dequantised_bias_is_read_or_taken_as_it_is() -> None:
    for call, expected in {
        "DequantizeLinear(b, half)": "b",
        "DequantizeLinear<axis=0>(b, list2)": "b",
        "DequantizeLinear(b, close)": "b",
        "DequantizeLinear(b, one)": [20, -40],
        "DequantizeLinear(b, one, z)": [20, -40],
        "DequantizeLinear(c, half, y)": [3, 4],
        "DequantizeLinear(b, one, k)": "the bias has a zero point",
        "DequantizeLinear(b, s)": "the bias is not constant",
        "DequantizeLinear(b, one, i)": "the bias is not constant",
        "DequantizeLinear(j, one)": "the bias is not constant",
        "com.microsoft.DequantizeLinear(b, one)": "the bias is not constant",
        "Relu(g)": "the bias is not constant",
    }.items():
        model = parsed(
            "(uint8[2,3] q, uint8[3,2] w, float s, int32 i, int32[2] j, float[2] g) => (float o)"
            " <float half = {0.5}, float one = {1}, float[2] list2 = {0.5,0.5}, uint8 y = {0},"
            " float close = {0.500001}, int32[2] b = {10,-20}, uint8[2] c = {3,4}, int32 z = {0},"
            f" int32 k = {{1}}> {{ f = {call} o = Constant<value_float=1.0>() }}"
        )
        graph = model.main
        data, kernel = (Quantized(q, named(model, "one"), None) for q in graph.inputs[:2])
        data = data._replace(scale=named(model, "half"))
        made = integer_bias(graph, named(model, "f"), data, kernel, 0)
        if isinstance(made, Skip):
            assert made.reason == expected, call
        else:
            assert made is not None
            assert made.const is not None
            assert (made.name if made.name == expected else made.const.tolist()) == expected, call


@pytest.mark.parametrize(
    ("kind", "added", "reason"),
    [
        ("uint8[33025,4]", None, None),
        ("uint8[33025,4]", [0, 33022], None),
        ("uint8[33025,4]", [0, -33023], "the sums may not fit 32 bits"),
        ("uint8[33026,4]", None, "the sums may not fit 32 bits"),
        ("uint8[0,4]", None, "the sums may have no terms"),
        ("uint8[N,4]", None, "the length of the sums is not known"),
        ("uint8[]", None, "the length of the sums is not known"),
    ],
)
def test_sums_fit_32_bits(kind: str, added: list[int] | None, reason: str | None) -> None:
    if kind.endswith("[]"):
        graph = parsed(
            "(uint8[2,3] x, uint8[3] v, int64[K] t) => (float o)"
            " { w = Reshape(v, t) o = Constant<value_float=1.0>() }"
        ).main
        x, w = graph.inputs[0], graph.values["w"]
    else:
        graph, (x, w) = typed("uint8[2,N]", kind)
    bias = None if added is None else graph.constant(np.array(added, np.int32))
    found = why_may_overflow(unit(graph, x, 1), unit(graph, w, 1), slice(0, 1), bias)
    assert (None if found is None else found.reason) == reason


def test_a_constant_weight_has_a_tighter_bound() -> None:
    graph, (x,) = typed("uint8[2,N]")
    for low, zero, expected in (
        (254, None, None),
        (255, None, "fit"),
        (255, 1, None),
        (2, 2, None),
    ):
        numbers = np.full((33026, 2), [[low, 0]], np.uint8)
        weight = unit(graph, graph.constant(numbers), 1, zero)
        found = why_may_overflow(unit(graph, x, 1), weight, slice(0, 1))
        assert (found is None) is (expected is None), (low, zero)
