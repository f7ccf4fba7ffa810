"""Functions, texts and graphs become patterns."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import parsed
from tiered import DataType
from tiered.rewriter import PatternError, const, op, opt, var
from tiered.rewriter.pattern import Const, OpPattern
from tiered.rewriter.subgraphs.pattern_text import Template, check_agreement, template_of
from tiered.support.errors import UsageError


def test_a_pattern_has_the_inputs_in_the_order_of_their_first_use() -> None:
    made = template_of(op.Add(op.Neg(var.b), op.Clip(var.a, opt.c, var.b)))
    assert made.inputs == ("b", "a", "c")
    assert made.pattern is made.outputs[0]


def test_several_roots_are_several_outputs() -> None:
    pair = op.Neg(var.a) & op.Abs(var.a)
    made = template_of(pair)
    assert made.outputs == pair.roots
    assert made.pattern == pair


@pytest.mark.parametrize(
    ("function", "inputs", "outputs"),
    [
        (lambda a, b: op.Add(b, a), ("a", "b"), (op.Add(var.b, var.a),)),
        (lambda a: (op.Neg(a), op.Abs(a)), ("a",), (op.Neg(var.a), op.Abs(var.a))),
        (lambda a: [a], ("a",), (var.a,)),
        (lambda a: 1.0, ("a",), (const(1.0),)),
    ],
)
def test_a_function_is_called_with_a_variable_for_each_parameter(
    function: Callable[..., Any], inputs: tuple[str, ...], outputs: tuple[Any, ...]
) -> None:
    assert template_of(function) == Template(inputs, outputs)


def test_a_text_of_names_has_no_conditions() -> None:
    made = template_of("(x, y) => (z) { a = Add(x, y)  z = Clip<>(a, , y) }".replace("<>", ""))
    assert made.inputs == ("x", "y")
    assert str(made.pattern) == "op.Clip(op.Add(var.x, var.y), ..., var.y)"


def test_a_typed_text_has_conditions_on_dtype_and_sizes() -> None:
    made = template_of("(float[N,3] x, int64 n) => (float[N,3] y) { y = Expand(x, n) }")
    x = var.x.having(dtype=DataType.FLOAT, shape=(None, 3))
    n = var.n.having(dtype=DataType.INT64, shape=())
    assert made.pattern == op.Expand(x, n)


def test_an_open_shape_and_a_sequence_are_no_conditions_on_dims() -> None:
    made = template_of("(float[] x) => (float[] y) { y = Neg(x) }")
    assert made.pattern == op.Neg(var.x.having(dtype=DataType.FLOAT))
    made = template_of("(seq(float[N]) s, int64 i) => (float[N] y) { y = SequenceAt(s, i) }")
    assert made.pattern == op.SequenceAt(var.s, var.i.having(dtype=DataType.INT64, shape=()))


WEIGHTS = """(float[N] x) => (float[N] y) <float[2] w = {1,2}, float s = {3}> {
    a = Mul(x, w)  y = Add(a, s) }"""


def test_initializers_are_numbers_or_any_constants() -> None:
    exact = template_of(WEIGHTS)
    assert exact.inputs == ("x",)
    constants = [part for part in exact.pattern.walk() if isinstance(part, Const)]
    assert constants == [const(np.array([1, 2], np.float32)), const(3.0)]
    half = template_of("(float16 x) => (y) <bfloat16 s = {2}> { y = mine.F(x, s) }")
    assert [part.dtype for part in half.pattern.walk() if isinstance(part, Const)] == ["bfloat16"]
    loose = template_of(WEIGHTS, exact=False)
    assert [part for part in loose.pattern.walk() if isinstance(part, Const)] == [const()] * 2


def test_constants_in_a_text_are_numbers() -> None:
    made = template_of("(x) => (y) { c = Constant<value_float = 2.0>()  y = Mul(x, c) }")
    assert made.pattern == op.Mul(var.x, const(2.0))
    made = template_of("(x) => (y) { c = Constant<value = int64[2] {1, 2}>()  y = Mul(x, c) }")
    assert made.pattern == op.Mul(var.x, const(np.array([1, 2])))
    made = template_of(
        "(x) => (y) { c = Constant<value = float {2}>()  y = Mul(x, c) }", exact=False
    )
    assert made.pattern == op.Mul(var.x, const(2.0))


def test_several_outputs_of_a_node_and_other_domains() -> None:
    made = template_of("(x) => (b, y) { a, b = Split<num_outputs=2>(x)  y = mine.F<k = 1>(a) }")
    first = made.outputs[0]
    assert isinstance(first, OpPattern)
    assert (first.output, first.op_type) == (1, "Split")
    assert str(made.outputs[1]) == "op('mine').F(op.Split(var.x, num_outputs=2), k=1)"
    made = template_of("(x) => (y) { y = mine.Constant(x) }")
    assert str(made.pattern) == "op('mine').Constant(var.x)"


def test_graphs_and_models_are_patterns_with_the_types_of_their_inputs_open() -> None:
    model = parsed(
        "(float[N] x, float[2] k) => (float[N] y) <float[2] k = {1,2}> { y = Mul(x, k) }"
    )
    proto = model.to_proto()
    function = onnx.parser.parse_function(
        '<domain: "d", opset_import: ["": 21]> f (x) => (y) { y = Neg(x) }'
    )
    for source in (model, model.main, proto, proto.graph):
        made = template_of(source)
        assert made.inputs == ("x",)
        assert made.pattern == op.Mul(var.x, const(np.array([1, 2], np.float32)))
    assert template_of(function).pattern == op.Neg(var.x)


@pytest.mark.parametrize(
    ("source", "because"),
    [
        (3, "a pattern is a function, a string, an ONNX graph or a pattern, not 3"),
        ("(x) => (y) { y = ", "the pattern does not parse: [ParseError"),
        ("(x) => (z) { y = Neg(x) }", "no node computes 'z' in '(x) => (z)"),
        ("(x) => (y) { y = Add(x, w) }", "Add reads w, which no node computes"),
        ("(float x) => (float z) { y = Neg(x) }", "no node computes 'z'"),
    ],
)
def test_what_is_no_pattern_is_an_error(source: Any, because: str) -> None:
    with pytest.raises(UsageError) as caught:
        template_of(source)
    assert because in str(caught.value)


def test_a_body_or_function_is_no_pattern() -> None:
    model = parsed(
        """(float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] u) { u = Neg(x) },
                   else_branch = e () => (float[2] v) { v = Abs(x) }> }"""
    )
    with pytest.raises(UsageError, match="a pattern is a main graph or a model, not"):
        template_of(model.main.nodes[0].bodies[0])


def test_an_input_may_be_an_output() -> None:
    assert template_of("(x, y) => (y, x) { }").outputs == (var.y, var.x)


def test_a_replacement_has_as_many_inputs_and_outputs() -> None:
    one = template_of(lambda a: op.Neg(a))  # noqa: PLW0108 - a pattern is a function of its inputs
    two = template_of(lambda a, b: op.Add(a, b))  # noqa: PLW0108 - as above
    both = template_of(lambda a: (op.Neg(a), op.Abs(a)))
    check_agreement(one, one)
    with pytest.raises(PatternError) as caught:
        check_agreement(one, two)
    assert str(caught.value) == "the pattern has 1 input (a), the replacement 2 (a, b)"
    with pytest.raises(PatternError, match=r"2 outputs \(op.Neg\(var.a\), op.Abs\(var.a\)\)"):
        check_agreement(both, one)
