"""The pattern language: what can be said, what it matches, how it prints, what is refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import model, proto
from tiered import DataType, Function, Graph, Model, Skip
from tiered.rewriter import (
    Match,
    Pattern,
    PatternError,
    chain,
    compile_pattern,
    const,
    find_matches,
    match_node,
    op,
    opt,
    rest,
    var,
)

X_TO_Y = "g (float[2,3] x) => (float[2,3] y)"


def found(pattern: Pattern, text: str) -> list[Match]:
    return list(find_matches(model(text).main, pattern))


def matches(pattern: Pattern, body: str, signature: str = X_TO_Y) -> bool:
    return bool(found(pattern, f"{signature} {body}"))


def names(of: Any) -> Any:
    """Return the names of what is bound: of values and nodes, also in tuples."""
    if isinstance(of, tuple):
        return tuple(map(names, of))
    return None if of is None else getattr(of, "label", of)


def bound(pattern: Pattern, body: str, signature: str = X_TO_Y) -> dict[str, Any]:
    (match,) = found(pattern, f"{signature} {body}")
    return {name: names(value) for name, value in match.bindings.items()}


# --- operands -------------------------------------------------------------------------------------


def test_a_variable_is_any_value() -> None:
    assert bound(op.Relu(var.a), "{ y = Relu(x) }") == {"a": "x"}


def test_a_variable_twice_is_the_same_value() -> None:
    twice = op.Mul(var.a, var.a)
    assert matches(twice, "{ y = Mul(x, x) }")
    assert not matches(twice, "{ r = Relu(x) y = Mul(x, r) }")


def test_operands_agree_in_number() -> None:
    assert not matches(op.Clip(var.a), "<float low = {0}> { y = Clip(x, low) }")
    assert not matches(op.Clip(var.a, var.low), "{ y = Clip(x) }")


def test_an_absent_operand_at_the_end_is_as_good_as_none() -> None:
    assert matches(op.Clip(var.a), "{ y = Clip(x, , ) }")


def test_an_optional_operand_may_be_absent() -> None:
    pattern = op.Clip(var.a, opt.low, opt.high)
    assert bound(pattern, "<float high = {0}> { y = Clip(x, , high) }") == {
        "a": "x",
        "low": None,
        "high": "high",
    }


def test_dots_are_one_operand_or_all_that_remain() -> None:
    assert matches(op.Clip(..., var.low), "<float low = {0}> { y = Clip(x, low) }")
    for operands in ("x", "x, low", "x, low, low"):
        text = f"<float low = {{0}}> {{ y = Clip({operands}) }}"
        assert matches(op.Clip(var.a, ...), text)


def test_the_rest_is_a_tuple() -> None:
    pattern = op.Concat(var.first, rest.others, axis=0)
    body = "{ r = Relu(x) y = Concat<axis=0>(r, x, x) }"
    assert bound(pattern, body)["others"] == ("x", "x")
    assert bound(pattern, "{ y = Concat<axis=0>(x) }")["others"] == ()


def test_either_order_of_a_commutative_operator() -> None:
    pattern = op.Add(op.Relu(var.a), var.b)
    for body in ("{ r = Relu(x) y = Add(r, x) }", "{ r = Relu(x) y = Add(x, r) }"):
        assert bound(pattern, body) == {"a": "x", "b": "x"}
    assert not matches(op.Sub(op.Relu(var.a), var.b), "{ r = Relu(x) y = Sub(x, r) }")


@pytest.mark.parametrize("kind", ["Sum", "Max", "Min", "Mean"])
def test_variadic_operators_of_two_commute(kind: str) -> None:
    pattern = getattr(op, kind)(op.Relu(var.a), var.b)
    assert matches(pattern, f"{{ r = Relu(x) y = {kind}(x, r) }}")
    assert not matches(pattern, f"{{ r = Relu(x) y = {kind}(x, r, x) }}")


def test_the_order_that_fits_everything_is_found() -> None:
    pattern = op.Add(op.Mul(var.a, var.b), op.Mul(var.b, var.c))
    body = "{ r = Relu(x) n = Neg(x) p = Mul(n, r) q = Mul(x, n) y = Add(p, q) }"
    assert bound(pattern, body) == {"a": "r", "b": "n", "c": "x"}


# --- constants ------------------------------------------------------------------------------------

F32 = np.float32


def accepts(pattern: Any, array: np.ndarray[Any, Any]) -> bool:
    return bool(pattern.accepts(array))


@pytest.mark.parametrize(
    ("wanted", "array", "fits"),
    [
        (0.5, np.array(0.5, F32), True),
        (0.5, np.array([0.5], np.float16), True),
        (0.5, np.array([0.5, 0.5], F32), False),
        (0.1, np.array(0.1, F32), True),
        (0.1, np.array(np.nextafter(F32(0.1), F32(1))), False),
        (0.0, np.array(0.0, F32), True),
        (0.0, np.array(-0.0, F32), False),
        (-0.0, np.array(-0.0, F32), True),
        (float("nan"), np.array(np.nan, F32), True),
        (0.5, np.array(np.nan, F32), False),
        (0.5, np.array(np.inf, F32), False),
        # What 16 bits do not hold is infinite there.
        (1e6, np.array(np.inf, np.float16), True),
        (True, np.array(1.0, F32), True),
        (1, np.array(1, np.uint8), True),
        (300, np.array(44, np.uint8), False),
        (0.5, np.array(0, np.int64), False),
        (2, np.array(True), False),
        (1, np.array(True), True),
        ([1, 2], np.array([1, 2]), True),
        ([1, 2], np.array([2, 1]), False),
        (1, np.array("1", object), False),
    ],
)
def test_a_number_is_exact(wanted: Any, array: np.ndarray[Any, Any], fits: bool) -> None:
    assert accepts(const(wanted), array) is fits


def test_an_array_says_dtype_and_shape_too() -> None:
    assert accepts(const(np.array([1, 2], F32)), np.array([1, 2], F32))
    assert not accepts(const(np.array([1, 2], F32)), np.array([1, 2], np.float64))
    assert not accepts(const(np.array([1, 2], F32)), np.array([[1, 2]], F32))


def test_a_tolerance_is_relative() -> None:
    assert accepts(const(2**0.5, rtol=1e-6), np.array(1.4142135, F32))
    assert not accepts(const(2**0.5, rtol=1e-6), np.array(1.41421, F32))
    # Each dtype is as near as it can be.
    assert accepts(const(2**0.5, rtol=1e-9), np.array(2**0.5, F32))
    assert accepts(const(2**0.5, rtol=1e-6), np.array(2**0.5, np.float16))
    assert not accepts(const(2**0.5, rtol=1e-6), np.array(1.4140625, F32))
    assert not accepts(const(0.0, rtol=1e-3), np.array(1e-9, F32))
    assert not accepts(const(0.5, rtol=1e-3), np.array(np.nan, F32))
    assert not accepts(const(0.5, rtol=1e-3), np.array(np.inf, F32))


def test_a_predicate_sees_the_array() -> None:
    assert accepts(const(lambda array: array.ndim == 0), np.array(3))
    assert not accepts(const(lambda array: array.ndim == 0), np.array([3]))


def test_a_number_stands_for_a_constant() -> None:
    pattern = op.Mul(var.a, 0.5)
    assert matches(pattern, "<float half = {0.5}> { y = Mul(half, x) }")
    assert matches(pattern, "{ half = Constant<value_float=0.5>() y = Mul(x, half) }")
    assert not matches(pattern, "<float half = {0.25}> { y = Mul(half, x) }")


def test_a_constant_with_a_name_is_bound() -> None:
    assert bound(op.Mul(var.a, const(name="k")), "<float k0 = {3}> { y = Mul(x, k0) }")["k"] == "k0"


def test_a_default_that_callers_may_feed_is_no_constant() -> None:
    signature = "g (float[2,3] x, float[1] k) => (float[2,3] y)"
    assert not matches(op.Mul(var.a, const()), "<float[1] k = {3}> { y = Mul(x, k) }", signature)


# --- attributes -----------------------------------------------------------------------------------


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


def test_a_function_parameter_is_no_reason_where_nothing_else_matches() -> None:
    (node,) = flatten_of_a_parameter().nodes
    assert match_node(compile_pattern(op.Flatten(op.Relu(var.a), axis=1)), node) is None
    both = op.Concat(var.a, axis=1) | op.Flatten(op.Relu(var.a))
    assert match_node(compile_pattern(both), node) is None


def flatten_of_a_parameter() -> Function:
    """Return w = Flatten(v), whose axis the call of the function decides."""
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2,3] x) => (float[6] y) { y = d.f <a = 0>(x) }
    <domain: "d", opset_import: ["" : 21]> f <a>(v) => (w) { w = Flatten<axis: int = @a>(v) }"""
    (function,) = Model.from_proto(onnx.parser.parse_model(text)).functions
    return function


# --- the shape of a pattern -----------------------------------------------------------------------


def test_alternatives_are_tried_in_order() -> None:
    pattern = op.Neg(op.Relu(var.a) | op.Abs(var.b) | var.c)
    assert bound(pattern, "{ r = Relu(x) y = Neg(r) }") == {"a": "x", "b": None, "c": None}
    assert bound(pattern, "{ r = Abs(x) y = Neg(r) }") == {"a": None, "b": "x", "c": None}
    assert bound(pattern, "{ r = Ceil(x) y = Neg(r) }") == {"a": None, "b": None, "c": "r"}


def test_a_later_choice_is_taken_where_an_earlier_one_leads_nowhere() -> None:
    pattern = op.Add(op.Relu(var.a) | var.b, var.a)
    assert bound(pattern, "{ r = Relu(x) y = Add(r, x) }") == {"a": "x", "b": None}
    assert bound(
        pattern,
        "{ r = Relu(x) y = Sub(r, r) z = Add(r, r) }",
        X_TO_Y.replace("(float[2,3] y)", "(float[2,3] y, float[2,3] z)"),
    ) == {"a": "r", "b": "r"}


def test_what_a_choice_of_the_root_does_not_bind_is_none_too() -> None:
    pattern = op.Relu(var.a) | op.Neg(var.b)
    assert bound(pattern, "{ y = Neg(x) }") == {"a": None, "b": "x"}


def test_several_operators_can_be_called_at_once() -> None:
    pattern = (op.Add | op.Sub)(var.a, 1.0).bind("n")
    assert pattern == op.Add(var.a, 1.0).bind("n") | op.Sub(var.a, 1.0).bind("n")
    assert bound(pattern, "<float one = {1}> { y = Sub(x, one) }")["a"] == "x"


def test_another_output_than_the_first() -> None:
    body = "{ a, b = Split<axis=1, num_outputs=2>(x) y = Relu(b) }"
    split = op.Split(var.a, axis=1, num_outputs=2)
    assert matches(op.Relu(split.out(1)), body)
    assert not matches(op.Relu(split), body)


def test_two_outputs_of_one_node() -> None:
    split = op.Split(var.a, axis=1, num_outputs=2)
    pattern = op.Add(split, split.out(1))
    assert matches(pattern, "{ a, b = Split<axis=1, num_outputs=2>(x) y = Add(a, b) }")
    two = "{ a, b = Split<axis=1, num_outputs=2>(x) c, d = Split<axis=1, num_outputs=2>(x) "
    assert not matches(pattern, two + "y = Add(a, d) }")


def test_one_object_is_one_node_wherever_it_occurs() -> None:
    relu = op.Relu(var.a)
    assert matches(op.Mul(relu, relu), "{ r = Relu(x) y = Mul(r, r) }")
    assert not matches(op.Mul(relu, relu), "{ r = Relu(x) s = Relu(x) y = Mul(r, s) }")


def test_two_that_are_written_alike_may_be_one_node_or_two() -> None:
    pattern = op.Mul(op.Relu(var.a), op.Relu(var.a))
    assert matches(pattern, "{ r = Relu(x) y = Mul(r, r) }")
    assert matches(pattern, "{ r = Relu(x) s = Relu(x) y = Mul(r, s) }")


def test_two_that_differ_are_two_nodes() -> None:
    pattern = op.Mul(op.Relu(var.a).bind("p"), op.Relu(var.a).bind("q"))
    assert not matches(pattern, "{ r = Relu(x) y = Mul(r, r) }")
    assert matches(pattern, "{ r = Relu(x) s = Relu(x) y = Mul(r, s) }")


def test_a_pattern_across_domains() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
    g (float[2] x) => (float[2] y) { r = com.microsoft.Gelu(x)  y = Relu(r) }"""
    view = Model.from_proto(onnx.parser.parse_model(text))
    pattern = op.Relu(op("com.microsoft").Gelu(var.a))
    assert len(list(find_matches(view.main, pattern))) == 1
    assert not list(find_matches(view.main, op.Relu(op.Gelu(var.a))))


def test_an_operator_of_an_unknown_domain_is_taken_as_it_is_written() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "mine" : 1]>
    g (float[2] x) => (float[2] y) { y = mine.Twist<angle=3>(x, x) }"""
    view = Model.from_proto(onnx.parser.parse_model(text))
    assert list(find_matches(view.main, op("mine").Twist(var.a, var.a, angle=3)))
    assert not list(find_matches(view.main, op("mine").Twist(var.a, var.a)))


def test_a_node_is_bound_by_a_name() -> None:
    pattern = op.Relu(op.Neg(var.a).bind("inner"))
    assert bound(pattern, "{ n = Neg(x) y = Relu(n) }")["inner"] == "node_n"


# --- chains ---------------------------------------------------------------------------------------


def test_a_chain_is_one_or_more() -> None:
    pattern = op.Relu(chain(op.Cast | op.Identity, var.a).bind("links"))
    assert bound(pattern, "{ i = Identity(x) c = Cast<to=1>(i) y = Relu(c) }") == {
        "a": "x",
        "links": ("node_c", "node_i"),
    }
    assert bound(pattern, "{ i = Identity(x) y = Relu(i) }")["links"] == ("node_i",)
    assert not matches(pattern, "{ y = Relu(x) }")


def test_a_chain_ends_where_what_follows_matches() -> None:
    pattern = op.Relu(chain(op.Neg, op.Abs(var.a)))
    assert matches(pattern, "{ a = Abs(x) n = Neg(a) m = Neg(n) y = Relu(m) }")
    assert not matches(pattern, "{ a = Ceil(x) n = Neg(a) y = Relu(n) }")


def test_a_chain_is_as_long_as_it_may_be() -> None:
    pattern = op.Relu(chain(op.Neg, var.a).bind("links"))
    alone = "{ n = Neg(x) m = Neg(n) y = Relu(m) }"
    assert bound(pattern, alone)["a"] == "x"
    body = "{ n = Neg(x) m = Neg(n) y = Relu(m) z = Abs(n) }"
    signature = "g (float[2,3] x) => (float[2,3] y, float[2,3] z)"
    assert bound(pattern, body, signature)["a"] == "n"


def test_a_chain_may_end_in_one_of_its_own_kind() -> None:
    pattern = op.Relu(chain(op.Neg, op.Neg(var.a).bind("last")).bind("links"))
    body = "{ n = Neg(x) m = Neg(n) k = Neg(m) y = Relu(k) }"
    assert bound(pattern, body) == {"a": "x", "last": "node_n", "links": ("node_k", "node_m")}


def test_a_chain_of_ten_thousand_needs_no_stack() -> None:
    steps = "".join(f"v{i + 1} = Neg(v{i}) " for i in range(10_000))
    body = f"{{ v0 = Abs(x) {steps} y = Relu(v10000) }}"
    assert len(bound(op.Relu(chain(op.Neg, op.Abs(var.a)).bind("n")), body)["n"]) == 10_000


# --- conditions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "fits"),
    [
        ({"rank": 2}, True),
        ({"rank": (3, 4)}, False),
        ({"dtype": DataType.FLOAT}, True),
        ({"dtype": (DataType.DOUBLE, DataType.FLOAT16)}, False),
        ({"rank": 2, "dtype": DataType.DOUBLE}, False),
        ({"shape": (2, 3)}, True),
        ({"shape": (None, 3)}, True),
        ({"shape": (..., 3)}, True),
        ({"shape": (2, ..., 2)}, False),
        ({"shape": (2, 3, ..., 3)}, False),
        ({"shape": (2,)}, False),
        ({"shape": ("N", 3)}, False),
    ],
)
def test_conditions_on_the_type(conditions: dict[str, Any], fits: bool) -> None:
    body = "{ n = Neg(x) y = Relu(n) }"
    assert matches(op.Relu(op.Neg(var.a.having(**conditions))), body) is fits
    assert matches(op.Relu(op.Neg(var.a).having(**conditions)), body) is fits
    assert matches(op.Relu(op.Neg(var.a)).having(**conditions), body) is fits


def test_a_symbol_is_known_by_its_name() -> None:
    signature = "g (float[N,3] x) => (float[N,3] y)"
    assert matches(op.Relu(var.a.having(shape=("N", 3))), "{ y = Relu(x) }", signature)
    assert not matches(op.Relu(var.a.having(shape=("M", 3))), "{ y = Relu(x) }", signature)


def test_what_is_not_known_does_not_fit() -> None:
    signature = "g (float[] x) => (float[] y)"
    assert not matches(op.Relu(var.a.having(rank=2)), "{ y = Relu(x) }", signature)


def test_conditions_decide_the_order_of_operands() -> None:
    pattern = op.Add(var.a.having(rank=1), var.b.having(rank=2))
    body = "{ r = ReduceSum<keepdims=0>(x, axes) y = Add(x, r) }"
    signature = "g (float[2,3] x) => (float[2,3] y) <int64[1] axes = {0}>"
    assert bound(pattern, body, signature) == {"a": "r", "b": "x"}


def test_conditions_on_an_absent_operand_hold() -> None:
    assert matches(op.Clip(var.a, opt.low.having(rank=0)), "{ y = Clip(x) }")
    assert not matches(
        op.Clip(var.a, opt.low.having(rank=1)), "<float low = {0}> { y = Clip(x, low) }"
    )


def test_conditions_on_a_constant() -> None:
    pattern = op.Mul(var.a, const(name="k").having(rank=0))
    assert matches(pattern, "<float k = {3}> { y = Mul(x, k) }")
    assert not matches(pattern, "<float[1] k = {3}> { y = Mul(x, k) }")
    unnamed = op.Mul(var.a, const().having(rank=0))
    assert not matches(unnamed, "<float[1] k = {3}> { y = Mul(x, k) }")


def test_a_predicate_is_asked_of_values_and_nodes() -> None:
    assert matches(op.Relu(var.a.where(lambda value: value.is_graph_input)), "{ y = Relu(x) }")
    assert not matches(op.Relu(var.a).where(lambda node: node.name == "other"), "{ y = Relu(x) }")
    assert matches((op.Relu | op.Abs)(var.a).where(lambda node: bool(node.name)), "{ y = Abs(x) }")


# --- several roots --------------------------------------------------------------------------------

TWO = "g (float[2,3] x) => (float[2,3] y, float[2,3] z)"


def test_several_nodes_at_once_share_something() -> None:
    pattern = op.Relu(var.a) & op.Neg(var.a)
    (match,) = found(pattern, f"{TWO} {{ y = Relu(x) z = Neg(x) }}")
    assert [root.op_type for root in match.roots] == ["Relu", "Neg"]
    assert not matches(pattern, "{ y = Relu(x) z = Neg(y) }", TWO)


def test_they_may_share_a_node_deep_inside() -> None:
    shared = op.Abs(var.a)
    pattern = op.Relu(shared) & op.Neg(op.Ceil(shared))
    (match,) = found(pattern, f"{TWO} {{ a = Abs(x) y = Relu(a) c = Ceil(a) z = Neg(c) }}")
    assert [names(value) for value in match.values] == ["y", "z"]


def test_both_outputs_of_one_node_can_be_roots() -> None:
    split = op.Split(var.a, axis=0, num_outputs=2)
    pattern = split & split.out(1)
    (match,) = found(pattern, f"{TWO} {{ y, z = Split<axis=0, num_outputs=2>(x) }}")
    assert match.outputs == (0, 1)


def test_they_are_different_nodes() -> None:
    assert not matches(op.Relu(var.a).bind("p") & op.Relu(var.a).bind("q"), "{ y = Relu(x) }")


def test_roots_that_share_nothing_are_refused() -> None:
    with pytest.raises(PatternError, match=r"op.Neg\(var.b\) shares no variable and no node"):
        compile_pattern(op.Relu(var.a) & op.Neg(var.b))


# --- text -----------------------------------------------------------------------------------------

shared = op.Relu(var.x)
two_outputs = op.Split(var.x, axis=var.axis, num_outputs=2).bind("cut")
is_small = np.isscalar

WRITTEN: Sequence[Pattern] = (
    op.Reshape(op.Reshape(var.x, ...), var.shape),
    op.Conv(var.x, const(name="w"), opt.bias, group=1, attrs=...).shared().bind("conv"),
    op.Mul(var.x, 0.5) | op.Div(var.x, 2),
    op.Mul(var.x, const(2**0.5, rtol=1e-6)),
    op.Mul(var.x, const([1, 2], name="k")),
    op.Mul(var.x, const(np.array([1, 2], np.float16))),
    op.Mul(var.x, const(is_small)),
    op.Concat(rest.inputs, axis=-1),
    op.Transpose(var.x, perm=[1, 0]),
    op.Cast(var.x, to=..., saturate=1),
    op.Conv(var.x, ..., attrs=...),
    op.Cast(var.x, attrs="ignored"),
    op("com.microsoft").Gelu(var.x),
    op.Add(shared, op.Neg(shared)),
    op.Add(two_outputs.out(1), two_outputs),
    op.Relu(chain(op.Cast | op("d").Twist, var.x).shared().bind("links")),
    op.Relu(var.x.having(rank=(1, 2), dtype=1, shape=(..., None, "N"))),
    op.Relu(var.x).where(callable),
    op.Relu(var.x) & op.Neg(var.x),
    (op.Relu(var.x) & op.Neg(var.x)) | op.Abs(var.x),
)


@pytest.mark.parametrize("pattern", WRITTEN, ids=str)
def test_a_pattern_prints_as_it_was_written(pattern: Pattern) -> None:
    again = eval(str(pattern).replace("isscalar", "is_small"))
    assert again == pattern
    assert str(again) == str(pattern)


def test_what_is_shared_is_written_once() -> None:
    assert str(op.Mul(shared, shared)) == "op.Mul((h := op.Relu(var.x)), h)"
    assert str(op.Add(two_outputs.out(1), two_outputs)) == (
        "op.Add((cut := op.Split(var.x, axis=var.axis, num_outputs=2).bind('cut')).out(1), cut)"
    )


# --- what is refused ------------------------------------------------------------------------------

WRONG = {
    "op.Reluu(var.x)": "no operator 'Reluu'; did you mean 'Relu'",
    "op.Relu(var.x, var.y)": "takes X; the pattern has 2 operands",
    "op.Conv(var.x)": "takes X, W, B; the pattern has 1 operands",
    "op.Concat(rest.a, axs=1)": "has no attribute 'axs'; it has axis; did you mean 'axis'",
    "op.Concat(rest.a, axis=1.5)": "attribute 'axis' is INT, so never 1.5",
    "op.Transpose(var.x, perm=1)": "attribute 'perm' is INTS, so never 1",
    "op.Relu(var.x).out(1)": "has 1 outputs, so no output 1",
    "op.Add(rest.a, var.x)": "rest.a may only be the last operand",
    "op.Concat(var.axis, axis=var.axis)": "'axis' cannot be both attribute and value",
    "op.Add(var.x, 'text')": "'text' is no operand",
    "op.Relu(var.x, attrs=1)": "attrs is ...",
    "op.Flatten(var.x, axis=op.Relu(var.x))": "is no attribute",
    "chain(op.Cast(var.x, attrs=...), var.x)": "a chain is of operators",
    "compile_pattern(var.x)": "its root must be an operator",
    "compile_pattern(op.Relu(var.x) | var.y)": "its root must be an operator",
    "compile_pattern(op.Relu(op.Neg(var.x) & op.Abs(var.x)))": "cannot be an operand",
    "(op.Relu(var.x) | var.y).bind('n')": "var.y is no operator",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_what_makes_no_sense_is_refused_where_it_is_written(text: str, message: str) -> None:
    with pytest.raises(PatternError) as raised:
        eval(text)
    assert message in str(raised.value)


# --- guards ---------------------------------------------------------------------------------------


def verdict(pattern: Pattern, text: str) -> str:
    """Return why the last node of a graph, or of the body that it owns, is left alone."""
    graph: Graph = model(text).main
    programs = compile_pattern(pattern)
    anchors = [node for node in graph.walk() if node.op_type == programs[0].op_type]
    result = match_node(programs, anchors[-1])
    return str(result) if isinstance(result, Skip) else ("" if result is None else "match")


RELU_OF_NEG = op.Relu(op.Neg(var.a))


def test_an_inner_value_with_another_user_stays() -> None:
    assert verdict(RELU_OF_NEG, f"{TWO} {{ n = Neg(x) y = Relu(n) z = Abs(n) }}") == (
        "an inner value has another user"
    )


def test_an_inner_value_that_is_a_graph_output_stays() -> None:
    assert verdict(RELU_OF_NEG, f"{TWO} {{ z = Neg(x) y = Relu(z) }}") == (
        "an inner value is a graph output"
    )


def test_an_inner_value_that_a_body_captures_stays() -> None:
    text = """g (float[2] x, bool c) => (float[2] y, float[2] z) {
        n = Neg(x)  y = Relu(n)
        z = If(c) <then_branch = t () => (float[2] p) { p = Abs(n) },
                   else_branch = e () => (float[2] q) { q = Ceil(x) }>
    }"""
    assert verdict(RELU_OF_NEG, text) == "an inner value is captured by a body"


def test_another_output_of_an_inner_node_counts_too() -> None:
    pattern = op.Relu(op.Split(var.a, axis=0, num_outputs=2))
    text = f"{TWO} {{ p, z = Split<axis=0, num_outputs=2>(x) y = Relu(p) }}"
    assert verdict(pattern, text) == "an inner value is a graph output"


def test_users_inside_of_the_match_are_fine() -> None:
    inner = op.Neg(var.a)
    pattern = op.Add(op.Relu(inner), op.Abs(inner))
    text = f"{X_TO_Y} {{ n = Neg(x) r = Relu(n) a = Abs(n) y = Add(r, a) }}"
    assert verdict(pattern, text) == "match"


def test_what_is_said_to_be_shared_may_have_other_users() -> None:
    pattern = op.Relu(op.Neg(var.a).shared())
    assert verdict(pattern, f"{TWO} {{ z = Neg(x) y = Relu(z) }}") == "match"


def test_a_value_that_an_annotation_names_stays() -> None:
    given = proto(f"{X_TO_Y} {{ n = Neg(x) y = Relu(n) }}")
    annotation = given.graph.quantization_annotation.add(tensor_name="x")
    annotation.quant_parameter_tensor_names.append(
        onnx.StringStringEntryProto(key="SCALE_TENSOR", value="n")
    )
    (relu,) = Model.from_proto(given).main.nodes_of("Relu")
    assert str(match_node(compile_pattern(RELU_OF_NEG), relu)) == (
        "training info or an annotation names an inner value"
    )


def test_roots_of_which_one_depends_on_the_other_stay() -> None:
    pattern = op.MatMul(var.a, var.b).bind("p") & op.MatMul(var.a, var.c).bind("q")
    text = """g (float[2,2] x, float[2,2] w) => (float[2,2] y) {
        m = MatMul(x, w)  n = Neg(m)  y = MatMul(x, n)
    }"""
    graph = model(text).main
    for node in graph.nodes_of("MatMul"):
        assert str(match_node(compile_pattern(pattern), node)) == (
            "one of the nodes depends on another"
        )
