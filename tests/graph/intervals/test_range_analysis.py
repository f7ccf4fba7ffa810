"""Range analysis: every element that a run computes is inside its interval."""

import math
import random

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.conformance.random_graphs import random_feeds, random_model
from tiered import Interval, Model, Ranges, Value, ranges
from tiered.graph import DataType
from tiered.graph.intervals.interval import whole
from tiered.graph.intervals.propagation import _beyond
from tiered.graph.intervals.range_analysis import RangeAnalysis, measured
from tiered.runtime import run, run_reference
from tiered.support.errors import TieredError
from tiered.testing import parse


def value_of(model: Model, name: str) -> Value:
    value = model.main.value(name)
    assert value is not None
    return value


def interval(text: str, name: str, analysis: RangeAnalysis = ranges) -> Interval:
    """Return the interval of a value of the main graph."""
    model = Model.from_proto(parse(text))
    return model.analysis(analysis)[value_of(model, name)]


def test_more_is_known_of_a_value_than_its_dtype() -> None:
    model = Model.from_proto(
        parse("(float[2] x) => (float[2] y, int64[1] z) { a = Relu(x) y = Neg(x) z = Shape(a) }")
    )
    found = model.analysis(ranges)
    known = [name for name in ("x", "a", "y", "z") if found.has_proof(value_of(model, name))]
    assert known == ["a", "z"]


def inner_values(model: Model) -> dict[str, Value]:
    found = (value for node in model.main.nodes for value in node.outputs)
    return {value.name: value for value in found if value is not None and value.dtype is not None}


def computed(
    proto: onnx.ModelProto, model: Model, feeds: dict[str, np.ndarray]
) -> dict[str, object]:
    """Return all values of a main graph as a run computes them; {} if it cannot."""
    every = onnx.ModelProto()
    every.CopyFrom(proto)
    shown = {info.name for info in proto.graph.output}
    every.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, value.dtype, None)
        for name, value in inner_values(model).items()
        if name not in shown and value.dtype is not None
    )
    try:
        return dict(run(every, feeds))
    except TieredError:
        return {}


def outside(
    found: Ranges, values: dict[str, Value], arrays: dict[str, object]
) -> list[tuple[str, Interval]]:
    return [
        (name, found[values[name]])
        for name, array in arrays.items()
        if name in values and isinstance(array, np.ndarray) and array.dtype.kind not in "OcV"
        if not found[values[name]].holds(array)
    ]


@settings(max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_every_element_of_a_random_model_is_inside(source: random.Random) -> None:
    proto = random_model(source)
    model = Model.from_proto(proto)
    arrays = computed(proto, model, random_feeds(source, proto))
    values = inner_values(model)
    assert outside(model.analysis(ranges), values, arrays) == [], onnx.printer.to_text(proto)


UNARY = (
    "Abs", "Acosh", "Asin", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp",
    "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "LogSoftmax", "Mish", "Neg",
    "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin",
    "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu",
)  # fmt: skip
ENDS = (
    -math.inf,
    -3e38,
    -70.0,
    -3.0,
    -1.0,
    -1e-30,
    0.0,
    1e-40,
    0.3,
    1.0,
    12.0,
    100.0,
    1e20,
    math.inf,
)


@pytest.mark.parametrize("operator", UNARY)
def test_unary_operators_stay_inside(operator: str) -> None:
    """Each pair of bounds, and numbers between them."""
    proto = parse(f"(float[N] x) => (float[?] y) {{ y = {operator}(x) }}", opset=22)
    model = Model.from_proto(proto)
    value = value_of(model, "y")
    drawn = np.random.default_rng(0)
    for at, low in enumerate(ENDS):
        for high in ENDS[at:]:
            inner = [end for end in ENDS if low <= end <= high]
            between = np.clip(drawn.uniform(-20, 20, 12), low, high)
            x = np.array([*inner, *between], np.float32)
            x = np.clip(x, np.float32(low), np.float32(high))
            declared = ranges.with_inputs({"x": measured(x)})
            (y,) = run(proto, {"x": x}).values()
            assert declared(model)[value].holds(y), (low, high, declared(model)[value], y)


def binary(operator: str, dtype: str) -> onnx.ModelProto:
    kind = "" if operator != "Mod" or dtype == "int64" else "<fmod = 1>"
    result = f"{dtype}[M]"
    return parse(f"({dtype}[M] a, {dtype}[M] b) => ({result} y) {{ y = {operator} {kind}(a, b) }}")


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min"])
@pytest.mark.parametrize("dtype", ["float", "int64"])
def test_binary_operators_stay_inside(operator: str, dtype: str) -> None:
    proto = binary(operator, dtype)
    model = Model.from_proto(proto)
    value = value_of(model, "y")
    drawn = np.random.default_rng(0)
    special = [0, 1, -1, 2, -3, 7, 1 << 31, -(1 << 31), (1 << 62) + 1]
    for _ in range(60):
        if dtype == "int64":
            a, b = (drawn.choice(special, 3).astype(np.int64) for _ in range(2))
            b = np.where(b == 0, 1, b) if operator in ("Div", "Mod") else b
            b = np.abs(b) % 4 if operator == "Pow" else b
        else:
            a, b = (drawn.choice(np.array(ENDS, np.float32), 3) for _ in range(2))
        given_ranges = {"a": measured(a), "b": measured(b)}
        found = ranges.with_inputs(given_ranges)(model)[value]
        # The reference: onnxruntime before 1.32 compares large integers by their low digits.
        (y,) = run_reference(proto, {"a": a, "b": b}).values()
        assert found.holds(y), (a, b, found, y)


def test_an_input_may_be_anything() -> None:
    assert interval("(float[N] x) => (float[N] y) { y = Neg(x) }", "y") == whole(DataType.FLOAT)
    found = interval("(int64[N] x) => (int64[N] y) { y = Identity(x) }", "y")
    assert found == (-(1 << 63), (1 << 63) - 1, False)


def test_integers_that_overflow_wrap() -> None:
    text = (
        "(int32[N] x) => (int32[N] y, int64[N] z) <int32 k = {2}, int64 m = {2}> "
        "{ y = Mul(x, k) l = Cast<to=7>(x) z = Mul(l, m) }"
    )
    assert interval(text, "y") == whole(DataType.INT32)
    assert interval(text, "z") == (-(1 << 32), (1 << 32) - 2, False)


def test_floats_that_overflow_are_infinite() -> None:
    text = "(float16[N] x) => (float16[N] y) { y = Mul(x, x) }"
    declared = ranges.with_inputs({"x": Interval(-300, 10)})
    assert interval(text, "y", declared) == (0, math.inf, False)
    declared = ranges.with_inputs({"x": Interval(-200, 10)})
    assert interval(text, "y", declared) == (0, 40000, False)


def test_a_sum_of_unknown_length_is_limited_by_the_largest_dim() -> None:
    text = "(float[N] x) => (float y) <int64[1] a = {0}> { y = ReduceSum<keepdims=0>(x, a) }"
    declared = ranges.with_inputs({"x": Interval(0, 1)})
    found = interval(text, "y", declared)
    assert found.low == 0
    assert 1 << 31 <= found.high < 1 << 34
    few = interval(text, "y", declared.with_dims(1, 10))
    assert 10 <= few.high < 10.001


def test_a_fully_masked_row_may_be_nan() -> None:
    text = (
        "(float[2,4] x) => (float[2,4] y) <float m = {-inf}> "
        "{ t = Tanh(x) a = Add(t, m) y = Softmax(a) }"
    )
    declared = ranges.with_inputs({"x": Interval(-1, 1)})
    assert interval(text, "y", declared).may_be_nan
    assert not interval(text.replace("-inf", "-3e38"), "y", declared).may_be_nan


def test_a_constant_weight_is_summed_by_columns() -> None:
    text = (
        "(float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,-2,3,-4}> "
        "{ t = Sigmoid(x) y = MatMul(t, w) }"
    )
    found = interval(text, "y", ranges.with_inputs({"x": Interval(-1e30, 1e30)}))
    assert -6.01 < found.low <= -6
    assert 4 <= found.high < 4.01


def test_shapes_and_indices_are_below_the_largest_dim() -> None:
    text = (
        "(float[N,7] x, int64[K] i) => (int64[2] s, float[K,7] y, int64[K] j) "
        "{ s = Shape(x) t = Transpose(x) y0 = Gather(x, i) y = Relu(y0) j = Neg(i) }"
    )
    largest = (1 << 31) - 1
    assert interval(text, "s") == (0, largest, False)
    assert interval(text, "i") == (-(1 << 31) + 1, largest - 1, False)
    static = text.replace("float[N,7] x", "float[5,7] x")
    assert interval(static, "j") == (-4, 5, False)


def test_an_index_in_a_branch_proves_nothing_outside() -> None:
    text = (
        "(bool c, float[5] x, int64[K] i) => (float[K] y, int64[K] j) { j = Neg(i) "
        "y = If(c) <then_branch = t () => (float[K] p) { p = Gather(x, i) }, "
        "else_branch = e () => (float[K] q) { q = Cast<to=1>(i) }> }"
    )
    assert interval(text, "j") == whole(DataType.INT64)


LOOP = (
    "(int64 n, float[2] x) => (float[2] y, float[K,2] z) <bool t = {1}, float h = {HALF}, "
    "float b = {BIAS}> { a = Tanh(x) y, z = Loop(n, t, a) <body = g (int64 i, bool c, "
    "float[2] s) => (bool d, float[2] u, float[2] v) { d = Identity(c) p = Mul(s, h) "
    "u = Add(p, b) v = Neg(u) }> }"
)


def test_a_loop_that_grows_has_no_bound() -> None:
    text = LOOP.replace("HALF", "2").replace("BIAS", "0")
    found = interval(text, "y", ranges.with_inputs({"x": Interval(0, 1)}))
    assert found.high == math.inf


def test_a_loop_that_stays_has_one() -> None:
    text = LOOP.replace("HALF", "-1").replace("BIAS", "0")
    found = interval(text, "y", ranges.with_inputs({"x": Interval(-1, 1)}))
    assert -0.77 < found.low <= -np.tanh(1)
    assert np.tanh(1) <= found.high < 0.77


def test_declared_and_measured_ranges_limit_values() -> None:
    text = "(float[N] x) => (float[N] z) { y = Exp(x) z = Neg(y) }"
    assert interval(text, "z", ranges.with_observed({"y": Interval(1, 2)})) == (-2, -1, False)


def test_ranges_are_kept_until_an_edit() -> None:
    model = Model.from_proto(parse("(float[N] x) => (float[N] y) { a = Tanh(x) y = Neg(a) }"))
    first = model.analysis(ranges)
    assert model.analysis(ranges) is first
    node = model.main.nodes_of("Neg")[0]
    model.main.set_input(node, 0, model.main.inputs[0])
    assert model.analysis(ranges) is not first


def test_an_interval_holds_its_elements() -> None:
    numbers = np.array([1, np.nan, -np.inf], np.float32)
    assert measured(numbers) == (-math.inf, 1, True)
    assert measured(numbers).holds(numbers)
    assert not Interval(-math.inf, 1).holds(numbers)
    assert not Interval(0, 1).holds(np.array([2]))


def test_clip_limits_what_may_be_nan() -> None:
    text = "(float[2] x) => (float[2] y) <float l = {-3}, float h = {3}> { y = Clip(x, l, h) }"
    assert interval(text, "y") == Interval(-3, 3, True)
    assert interval(text.replace("{3}", "{nan}"), "y") == Interval(-math.inf, math.inf, True)


def test_an_axis_of_several_numbers_says_nothing() -> None:
    text = "(float[2] x) => (float[2] y) <int64[2] a = {0, 0}> { b = Sigmoid(x) y = CumSum(b, a) }"
    assert interval(text, "y").low == 0


COUNTED = """(float[2] x, bool c, int64 n) => (float[2] z) <int64 zero = {{0}}, int64 one = {{1}}> {{
    y = Loop({trips}, c, zero) <body = b (int64 i, bool g, int64 s) => (bool on, int64 t) {{
        on = Identity(g)  t = {step} }}>  z = Neg(x) }}"""


def test_the_states_of_a_loop_have_the_bounds_that_do_not_move() -> None:
    largest = 2**63 - 1
    for step, trips, low, high in (
        ("Identity(s)", "n", 0, 0),
        ("Abs(s)", "n", 0, 0),
        ("Min(one, s)", "n", 0, 0),
        ("Max(one, s)", "n", 0, 1),
        ("Add(s, one)", "n", -largest - 1, largest),  # it may wrap
        ("Clip(i)", "one", 0, 0),
        ("Clip(i)", "n", 0, largest - 1),
        ("Clip(i)", "", 0, largest - 1),
        ("Neg(i)", "", 1 - largest, 0),
    ):
        found = interval(COUNTED.format(step=step, trips=trips), "y")
        assert (found.low, found.high) == (low, high), (step, trips)


def test_a_bound_that_moves_becomes_that_of_the_dtype() -> None:
    for old, new, dtype, expected in (
        ((0, 5), (0, 5), DataType.INT8, (0, 5)),
        ((0, 5), (0, 9), DataType.INT8, (0, 127)),
        ((0, 5), (-1, 5), DataType.INT8, (-128, 5)),
        ((0, 5), (1, 4), DataType.INT8, (0, 5)),
        ((0, 5), (-1, 9), DataType.FLOAT, (-math.inf, math.inf)),
    ):
        assert _beyond(Interval(*old), Interval(*new), dtype) == Interval(*expected), (old, new)


def test_elements_of_an_empty_tensor_are_of_the_dtype() -> None:
    text = "(float[2,3] x) => (int64[0] y) <int64[1] a = {1}> { s = Shape(x)  y = Slice(s, a, a) }"
    assert interval(text, "y").low in (-(2**63), 2, 0)


def test_only_operators_of_onnx_say_that_an_index_is_inside() -> None:
    text = "(float[9] x, int64[2] at) => (float[N] y) {{ i = {}(at)  y = {}(x, i) }}"
    for move, gather, known in (
        ("Identity", "Gather", (-9, 8)),
        ("acme.Identity", "Gather", None),
        ("Identity", "acme.Gather", None),
        ("Neg", "Gather", None),
    ):
        found = interval(text.format(move, gather), "at")
        assert (found.low, found.high) == (known or (-(2**63), 2**63 - 1)), (move, gather)
