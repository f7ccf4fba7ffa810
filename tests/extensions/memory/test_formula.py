"""The bytes at the peak as a polynomial: the plan for any sizes at which the peak stays there."""

import math

import onnx
import pytest
from hypothesis import given, strategies as st

from tiered import Model
from tiered.extensions.memory import memory_plan, peak_formula
from tiered.graph.shape_inference.symbolic_dims import Poly
from tiered.testing import parse

TEXT = """(float[B,S,4] x) => (double[B,S] y) <int64[1] last = {2}> {
    a = Exp(x) b = Sin(x) c = Concat<axis=2>(a, b) s = ReduceSum<keepdims=0>(c, last)
    y = Cast<to=11>(s) }"""


def _value(size: Poly | int | None, dims: dict[str, int]) -> int:
    assert isinstance(size, Poly)
    return sum(factor * math.prod(dims[name] for name in names) for names, factor in size.terms)


@given(st.integers(1, 9), st.integers(1, 9))
def test_it_is_the_peak_for_all_sizes(batch: int, length: int) -> None:
    model, dims = Model.from_proto(parse(TEXT)), {"B": batch, "S": length}
    plan = memory_plan(model, dims=dims)
    formula = peak_formula(model, plan)
    assert str(formula) == "80*B*S"
    assert _value(formula, dims) == plan.peak


@pytest.mark.parametrize(
    "text",
    [
        "(float[N] x) => (float[N] y) { }",
        "(float[N] x, bool c) => (float[N] y) { y = If(c) <then_branch = t () => (float[N] p) "
        "{ p = Neg(x) }, else_branch = e () => (float[N] q) { q = Identity(x) }> }",
        "(float[N] x) => (float[1,M] y) { n = NonZero(x) y = Cast<to=1>(n) }",
        "(string[N] x) => (string[N] y) { y = Identity(x) }",
        "(float[2,8,2] x, int64 n) => (float[2,M,2] y) { a = DFT(x, n) y = Softmax(a) }",
        "(float[?] x) => (float[?] y) { y = Softmax(x) }",
        "(float[] x) => (float[] y) { y = Softmax(x) }",
        "(float[2] x) => (y) { a = own.F(x) y = own.F(a) }",
    ],
)
def test_without_known_sizes_there_is_none(text: str) -> None:
    proto = parse(text)
    if not proto.graph.node:
        del proto.graph.output[:]
        proto.graph.output.append(onnx.helper.make_tensor_value_info("x", 1, ["N"]))
    model = Model.from_proto(proto)
    assert peak_formula(model, memory_plan(model)) is None


def test_static_sizes_are_a_number_of_whole_bytes() -> None:
    for text, expected in (
        ("(float[2,3] x) => (float[2,3] y) { y = Softmax(x) }", 48),
        ("(float[3] x) => (int4[3] y) { y = Cast<to=22>(x) }", 14),
        ("(float[3] x, float[5] z) => (float[3] y, float[5] u) { y = Sin(x) u = Sin(z) }", 64),
    ):
        model = Model.from_proto(parse(text))
        assert peak_formula(model, memory_plan(model)) == expected, text
