"""Each known deviation of onnxruntime, shown on the smallest model that has it."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from tiered.runtime import run, run_reference
from tiered.runtime.compare import compare
from tiered.runtime.deviations import DEVIATIONS, NEWEST, explaining, installed
from tiered.runtime.elements import OutputDifference

INT_MAX = 2**63 - 1
SHOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "where_negative_zero": (
        "g (bool[1] c, float[1] x) => (float[1] y) { y = Where(c, x, x) }",
        {"c": np.array([True]), "x": np.float32([-0.0])},  # type: ignore[arg-type]  # an array
    ),
    "extremum_of_zeros": (
        "g (float[2] a, float[2] b) => (float[2] y) { y = Max(a, b) }",
        {"a": np.array([0.0, -0.0], "f"), "b": np.array([-0.0, 0.0], "f")},
    ),
    "reduce_of_nothing": (
        "g (float[3,0] x) => (float[N] y) <int64[1] a = {-1}> { y = ReduceSum<keepdims=0>(x, a) }",
        {"x": np.zeros((3, 0), "f")},
    ),
    "reduce_of_large_integers": (
        "g (int64[2] x) => (int64[1] y) <int64[1] a = {0}> { y = ReduceSum(x, a) }",
        {"x": np.array([2**62 - 4, 2])},
    ),
    "slice_backwards_to_the_largest_end": (
        f"""g (float[4] x) => (float[N] y) <int64[1] s = {{-1}}, int64[1] e = {{{INT_MAX}}},
            int64[1] a = {{0}}> {{ y = Slice(x, s, e, a, s) }}""",
        {"x": np.arange(4, dtype="f")},
    ),
    "clip_without_bound": (
        "g (float[2] x) => (float[2] y) { y = Clip(x) }",
        {"x": np.array([np.inf, -np.inf], "f")},
    ),
    "halves_kept_wide": (
        "g (float[2] x) => (float[2] y) { a = Cast<to=10>(x)  b = Neg(a)  y = Cast<to=1>(b) }",
        {"x": np.array([1e6, 0.1], "f")},
    ),
}


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')


@pytest.mark.parametrize("name", SHOWN)
def test_onnxruntime_deviates(name: str) -> None:
    text, feeds = SHOWN[name]
    found = compare(run_reference(model(text), feeds), run(model(text), feeds))
    (known,) = (deviation for deviation in DEVIATIONS if deviation.name == name)
    if not known.is_of(installed()):
        assert found.ok
    elif found.ok and installed() > NEWEST:
        pytest.skip("this onnxruntime is newer than what is known of it")
    else:
        explained = explaining([model(text)], [each for each in found.outputs if not each.ok])
        assert [deviation.name for deviation in explained] == [name]


def test_pow_rounds_by_the_shape_of_its_input() -> None:
    text = "g (float[N,M] x) => (float[N,M] y) <float e = {3.1}> { y = Pow(x, e) }"
    x = np.linspace(0.1, 5, 1000, dtype="f")
    row, column = (run(model(text), {"x": x.reshape(shape)})["y"] for shape in ((1, -1), (-1, 1)))
    found = compare({"y": row.reshape(-1)}, {"y": column.reshape(-1)})
    if not found.ok:  # processors without wide registers round both alike
        (known,) = explaining([model(text)], found.outputs)
        assert known.name == "pow_of_columns"


def test_every_deviation_is_shown() -> None:
    assert {each.name for each in DEVIATIONS} == {*SHOWN, "pow_of_columns"}


def test_halves_of_constant_nodes_count() -> None:
    text = """g () => (double[1] y) { c = Constant<value = float16[1] {48128}>()
        d = LeakyRelu(c)  y = Cast<to=11>(d) }"""
    rounding = OutputDifference("y", False, 1e-6, max_ulp=10**9, reason="1 of 1 elements differ")
    assert [each.name for each in explaining([model(text)], [rounding])] == ["halves_kept_wide"]


def test_what_no_deviation_explains_is_not_explained() -> None:
    where = model(SHOWN["where_negative_zero"][0])
    zero = OutputDifference("y", False, reason="1 of 2 elements differ in the sign of zero")
    other = OutputDifference("y", False, 1.0, max_ulp=99, reason="1 of 2 elements differ")
    assert explaining([where], [zero])
    assert not explaining([where], [zero, other])
    assert not explaining([model(SHOWN["clip_without_bound"][0])], [other])


def test_a_last_digit_explains_no_large_number_in_the_place_of_0() -> None:
    reduction = model(SHOWN["reduce_of_large_integers"][0])
    expected, digit, wrong = (np.array([2**62, last]) for last in (0, 0, 12345))
    digit[0] = wrong[0] = 2**62 + 2**9
    assert explaining([reduction], compare({"y": expected}, {"y": digit}).outputs)
    assert not explaining([reduction], compare({"y": expected}, {"y": wrong}).outputs)


def test_nodes_of_bodies_and_functions_count() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "f": 1]>
        g (bool c, float[1] x) => (float[1] y) {
          y = If(c) <then_branch = t () => (float[1] a) { a = f.own(x) },
                     else_branch = e () => (float[1] b) { b = Identity(x) }> }
        <domain: "f", opset_import: ["": 21]> own (x) => (y) { y = Clip(x) }"""
    infinite = OutputDifference("y", False, float("inf"), reason="1 of 1 elements differ")
    assert explaining([parser.parse_model(text)], [infinite])
