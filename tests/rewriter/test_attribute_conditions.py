"""The attributes that a pattern names match, and all others have their defaults."""

import onnx
import pytest

from tests.rewriter.patterns import X_TO_Y, bound, matches
from tests.small import model, parsed
from tiered import Function, Model, Skip
from tiered.rewriter import (
    Pattern,
    compile_pattern,
    find_matches,
    match_node,
    op,
    var,
)
from tiered.rewriter.attribute_conditions import attributes_fit


def test_an_attribute_that_is_not_named_has_its_default() -> None:
    pattern = op.Flatten(var.a)
    assert matches(pattern, "{ y = Flatten(x) }")
    assert matches(pattern, "{ y = Flatten<axis=1>(x) }")
    assert not matches(pattern, "{ y = Flatten<axis=0>(x) }")


def test_an_attribute_has_the_value_that_is_said() -> None:
    assert matches(op.Concat(var.a, axis=-1), "{ y = Concat<axis=-1>(x) }")
    assert not matches(op.Concat(var.a, axis=1), "{ y = Concat<axis=-1>(x) }")
    assert matches(op.LeakyRelu(var.a, alpha=0.1), "{ y = LeakyRelu<alpha=0.1>(x) }")
    assert not matches(op.LeakyRelu(var.a, alpha=0.1), "{ y = LeakyRelu<alpha=0.10001>(x) }")
    assert matches(op.Transpose(var.a, perm=[1, 0]), "{ y = Transpose<perm=[1,0]>(x) }")


def test_an_attribute_can_be_bound_and_compared() -> None:
    assert bound(op.Flatten(var.a, axis=var.axis), "{ y = Flatten(x) }")["axis"] == 1
    both = op.Concat(op.Concat(var.a, axis=var.axis), axis=var.axis)
    assert bound(both, "{ c = Concat<axis=0>(x) y = Concat<axis=0>(c) }")["axis"] == 0
    assert not matches(both, "{ c = Concat<axis=1>(x) y = Concat<axis=0>(c) }")


def test_an_attribute_can_be_asked_by_a_predicate_or_left_open() -> None:
    def is_last(axis: int) -> bool:
        return axis == -1

    assert matches(op.Concat(var.a, axis=is_last), "{ y = Concat<axis=-1>(x) }")
    assert not matches(op.Concat(var.a, axis=is_last), "{ y = Concat<axis=0>(x) }")
    assert matches(op.Concat(var.a, axis=...), "{ y = Concat<axis=0>(x) }")
    assert matches(op.Flatten(var.a, attrs=...), "{ y = Flatten<axis=0>(x) }")


def is_one(axis: int) -> bool:
    return axis == 1


@pytest.mark.parametrize(
    "pattern",
    [
        op.Flatten(var.a),
        op.Flatten(var.a, axis=0),
        op.Flatten(var.a, axis=var.axis),
        op.Flatten(var.a, axis=is_one),
        op.Flatten(var.a, axis=...),
        op.Flatten(var.a, attrs=...),
        op.Flatten(op.Relu(var.b) | var.a, axis=...),
    ],
    ids=str,
)
def test_a_function_parameter_is_no_value_of_an_attribute(pattern: Pattern) -> None:
    (node,) = flatten_of_a_parameter().nodes
    found = match_node(compile_pattern(pattern), node)
    assert isinstance(found, Skip)
    assert str(found) == "attribute 'axis' is a function parameter"
    assert not list(find_matches(node.owner, pattern))
    assert not list(find_matches(node.owner, pattern, guarded=False))


def test_a_function_parameter_does_not_matter_where_attributes_are_ignored() -> None:
    function = flatten_of_a_parameter()
    assert list(find_matches(function, op.Flatten(var.a, attrs="ignored")))
    (node,) = function.nodes
    assert isinstance(attributes_fit(op.Flatten(var.a, axis=1, attrs="ignored"), node, {}), Skip)
    tagged = flatten_of_a_parameter("tag").nodes[0]
    assert attributes_fit(op.Flatten(var.a), tagged, {}) is False


def test_what_fits_is_true() -> None:
    (node,) = model(f"{X_TO_Y} {{ y = Flatten<axis=1>(x) }}").main.nodes
    for pattern in (
        op.Flatten(var.a),
        op.Flatten(var.a, axis=1),
        op.Flatten(var.a, attrs=...),
        op.Flatten(var.a, axis=1, attrs=...),
    ):
        assert attributes_fit(pattern, node, {}) is True
    (plain,) = model(f"{X_TO_Y} {{ y = Flatten(x) }}").main.nodes
    assert attributes_fit(op.Flatten(var.a), plain, {}) is True


def test_a_function_parameter_is_no_reason_where_nothing_else_matches() -> None:
    (node,) = flatten_of_a_parameter().nodes
    assert match_node(compile_pattern(op.Flatten(op.Relu(var.a), axis=1)), node) is None
    both = op.Concat(var.a, axis=1) | op.Flatten(op.Relu(var.a))
    assert match_node(compile_pattern(both), node) is None


def flatten_of_a_parameter(name: str = "axis") -> Function:
    """Return w = Flatten(v), whose axis or other attribute the call of the function decides."""
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2,3] x) => (float[6] y) { y = d.f <a = 0>(x) }
    <domain: "d", opset_import: ["" : 21]> f <a>(v) => (w) { w = Flatten<axis: int = @a>(v) }"""
    text = text.replace("axis", name)
    (function,) = Model.from_proto(onnx.parser.parse_model(text)).functions
    return function


@pytest.mark.parametrize(
    ("pattern", "node", "fits"),
    [
        (op.LeakyRelu(var.a), "LeakyRelu<alpha=0.01>(x)", True),
        (op.LeakyRelu(var.a), "LeakyRelu<alpha=0.02>(x)", False),
        (op.LeakyRelu(var.a, alpha=1), "LeakyRelu<alpha=1.0>(x)", True),
        (op.Transpose(var.a, perm=[1, lambda axis: axis == 0]), "Transpose<perm=[1,0]>(x)", True),
        (op.Transpose(var.a, perm=[1, lambda axis: axis == 1]), "Transpose<perm=[1,0]>(x)", False),
        (op.Transpose(var.a, perm=[1, 0, 2]), "Transpose<perm=[1,0]>(x)", False),
        (op.Transpose(var.a, perm=[1, 0]), "Transpose(x)", False),
        (op.Transpose(var.a, perm=...), "Transpose(x)", True),
        (op.Flatten(var.a, axis=1), "Flatten(x)", True),
        (op.Flatten(var.a, axis=0), "Flatten(x)", False),
        (op.Cast(var.a, to=1), "Cast<to=1>(x)", True),
        (op.Cast(var.a, to=1), "Cast<to=1, saturate=0>(x)", False),
        (op.Cast(var.a, to=1), "Cast<to=1, saturate=1>(x)", True),
        (op.Cast(var.a, to=1, attrs=...), "Cast<to=1, saturate=0>(x)", True),
        (op.Cast(var.a, to=7, attrs=...), "Cast<to=1, saturate=0>(x)", False),
        (op.Flatten(var.a), "Flatten<tag=1>(x)", False),
        (op.Flatten(var.a, attrs=...), "Flatten<tag=1>(x)", True),
        (op("d").F(var.a, k=1), "d.F(x)", False),
        (op("d").F(var.a, k=1), "d.F<k=1>(x)", True),
        (op("d").F(var.a), "d.F<k=1>(x)", False),
        (op("d").F(var.a, k=1), "d.F<k=[1,0]>(x)", False),
        (op("d").F(var.a, k=16777217), "d.F<k=16777216>(x)", False),
        (op("d").F(var.a, k="a"), "d.F<k=0.5>(x)", False),
        (op("d").F(var.a, k=1), 'd.F<k="CRD">(x)', False),
    ],
)  # fmt: skip
def test_what_is_not_named_is_the_default_and_what_is_named_is_equal(
    pattern: Pattern, node: str, fits: bool
) -> None:
    assert matches(pattern, f"{{ y = {node} }}", "g (float[2,3] x) => (float[?,?] y)") is fits


@pytest.mark.parametrize(
    ("opset", "axis", "fits"), [(13, 1, True), (12, 1, True), (12, 0, False), (13, 0, False)]
)
def test_attributes_are_those_of_the_newest_form(opset: int, axis: int, fits: bool) -> None:
    # Before opset 13, an axis stands for all dims from it on: of two, the last one is the same.
    text = f"(float[2,3] x) => (float[2,3] y) {{ y = Softmax<axis={axis}>(x) }}"
    graph = parsed(text, opset=opset).main
    pattern = op.Softmax(var.a, axis=lambda axis: axis in (-1, 1))
    assert bool(list(find_matches(graph, pattern))) is fits


def test_a_node_without_an_equivalent_in_the_newest_form_never_matches() -> None:
    text = "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }"
    graph = parsed(text, opset=12).main
    assert not list(find_matches(graph, op.Softmax(var.a, axis=...)))
    assert list(find_matches(parsed(text, opset=13).main, op.Softmax(var.a, axis=...)))
    assert list(find_matches(graph, op.Softmax(var.a, attrs=...)))
    flat = parsed("(float[2,3] x) => (float[2,3] y) { y = Softmax(x) }", opset=12).main
    assert list(find_matches(flat, op.Softmax(var.a)))


def test_an_attribute_that_is_bound_twice_is_equal_in_both_places() -> None:
    pattern = op.Flatten(op.Softmax(var.a, axis=var.axis), axis=var.axis)
    assert bound(pattern, "{ s = Softmax<axis=1>(x) y = Flatten(s) }")["axis"] == 1
    assert not matches(pattern, "{ s = Softmax<axis=-1>(x) y = Flatten(s) }")
