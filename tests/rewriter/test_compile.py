"""Programs of patterns: conditions, several roots, and what a match binds."""

from typing import Any

import pytest

from tests.rewriter.patterns import TWO, X_TO_Y, bound, found, matches, names
from tests.small import made_by, model
from tiered import DataType
from tiered.rewriter import (
    Pattern,
    PatternError,
    chain,
    compile_pattern,
    const,
    op,
    opt,
    var,
)

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


def test_conditions_on_a_choice_that_is_not_taken_hold() -> None:
    pattern = op.Relu(op.Neg(var.a.having(rank=5)) | var.b)
    assert bound(pattern, "{ y = Relu(x) }") == {"a": None, "b": "x"}


def test_conditions_on_a_chain_are_on_its_last_result() -> None:
    body = "{ a = Abs(x) b = Flatten(a) c = Neg(b) d = Unsqueeze(c, k) y = Relu(d) }"
    signature = "g (float[2,3] x) => (float[1,2,3] y) <int64[1] k = {0}>"
    links = chain(op.Flatten | op.Neg | op.Unsqueeze, op.Abs(var.a))
    for rank, fits in ((3, True), (2, False)):
        assert matches(op.Relu(links.having(rank=rank)), body, signature) is fits


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


def test_several_nodes_at_once_share_something() -> None:
    pattern = op.Relu(var.a) & op.Neg(var.a)
    (match,) = found(pattern, f"{TWO} {{ y = Relu(x) z = Neg(x) }}")
    assert [root.op_type for root in match.roots] == ["Relu", "Neg"]
    assert not matches(pattern, "{ y = Relu(x) z = Neg(y) }", TWO)


def test_a_root_has_its_operator_and_what_it_shares_is_bound() -> None:
    assert not matches(op.Relu(var.a) & op.Neg(var.a), "{ y = Relu(x) z = Abs(x) }", TWO)
    either = op.Relu(op.Neg(var.b) | var.a) & op.Abs(var.b)
    assert not matches(either, "{ y = Relu(x) z = Abs(x) }", TWO)
    assert matches(either, "{ n = Neg(x) y = Relu(n) z = Abs(x) }", TWO)
    inner = op.Abs(...)
    assert matches(op.Relu(inner) & op.Neg(inner), "{ a = Abs(x) y = Relu(a) z = Neg(a) }", TWO)


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


# --- programs -------------------------------------------------------------------------------------


def starts(pattern: Pattern, text: str, signature: str = X_TO_Y) -> bool:
    """Return whether the node of y may be where a match begins."""
    view = model(f"{signature} {text}")
    (program,) = compile_pattern(pattern)
    return program.starts_at(made_by(view, "y"))


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (op.Relu(var.a), "{ y = Relu(x) }", True),
        (op.Relu(var.a), "{ y = Neg(x) }", False),
        (op("d").Relu(var.a), "{ y = Relu(x) }", False),
        (op.Relu(op.Neg(var.a)), "{ y = Relu(x) }", False),
        (op.Relu(op.Neg(var.a)), "{ n = Neg(x) y = Relu(n) }", True),
        (op.Relu(op.Neg(var.a) | op.Abs(var.a)), "{ n = Abs(x) y = Relu(n) }", True),
        (op.Relu(op.Neg(var.a) | op.Abs(var.a)), "{ n = Exp(x) y = Relu(n) }", False),
        (op.Relu(op.Neg(var.a) | var.b), "{ y = Relu(x) }", True),
        (op.Sub(var.a, 1.0), "<float k = {1}> { y = Sub(x, k) }", True),
        (op.Sub(var.a, const(1) | const(2)), "{ y = Sub(x, x) }", False),
        (op.Sub(op.Neg(var.a), var.b), "{ n = Neg(x) y = Sub(x, n) }", False),
        (op.Add(op.Neg(var.a), var.b), "{ n = Neg(x) y = Add(x, n) }", True),
        (op.Add(op.Neg(var.a), op.Abs(var.b)), "{ n = Neg(x) y = Add(x, n) }", False),
        (op.Max(op.Neg(var.a), var.b), "{ n = Neg(x) y = Max(x, n, x) }", False),
        (op.Clip(var.a, const()), "{ y = Clip(x) }", True),  # older opsets have an attribute
        (op.Clip(op.Neg(var.a), const()), "{ y = Clip(x) }", False),
        (op("d").Clip(var.a, const()), "{ y = d.Clip(x, x) }", False),
        (op.Gemm(var.a, var.b, const()), "{ y = Gemm(x, x) }", False),
        (op.Gemm(var.a, var.b, op.Neg(var.c)), "{ y = Gemm(x, x, ) }", False),
    ],
)
def test_the_producers_of_the_operands_tell_most_nodes_apart(
    pattern: Pattern, text: str, expected: bool
) -> None:
    assert starts(pattern, text) is expected


def test_a_pattern_of_choices_has_a_program_for_each() -> None:
    programs = compile_pattern(op.Relu(var.a) | op.Neg(var.b).out(0) | op.Abs(var.a))
    assert [program.key for program in programs] == [("", "Relu"), ("", "Neg"), ("", "Abs")]
    assert [program.outputs for program in programs] == [(0,)] * 3


def test_a_third_root_is_found_from_the_second_one() -> None:
    pattern = op.Relu(var.a) & op.Add(var.a, var.b) & op.Exp(op.Neg(var.b))
    text = "{ y = Relu(x) s = Sqrt(x) t = Add(x, s) n = Neg(s) z = Exp(n) }"
    (match,) = found(pattern, f"{TWO} {text}")
    assert [root.op_type for root in match.roots] == ["Relu", "Add", "Exp"]
    assert match.bindings["b"].name == "s"


def test_a_root_is_found_among_several_readers() -> None:
    pattern = op.Relu(var.a) & op.Neg(op.Add(var.a, 2.0))
    constants = "<float one = {1}, float two = {2}>"
    text = "{ y = Relu(x) p = Add(x, one) u = Neg(p) q = Add(x, two) z = Neg(q) }"
    (match,) = found(pattern, f"{TWO} {constants} {text}")
    assert [value and value.name for value in match.values] == ["y", "z"]


def test_a_root_is_not_sought_in_bodies() -> None:
    text = """g (float[2,3] x, bool c) => (float[2,3] y, float[2,3] z) { y = Relu(x)
        z = If(c) <then_branch = t () => (float[2,3] p) { p = Neg(x) },
                   else_branch = e () => (float[2,3] q) { q = Abs(x) }> }"""
    assert not found(op.Relu(var.a) & op.Neg(var.a), text)


def test_a_root_that_is_itself_an_inner_node_of_another_one() -> None:
    inner = op.Abs(var.a)
    pattern = op.Relu(inner) & inner.shared()
    with pytest.raises(PatternError, match="shares no variable and no node"):
        compile_pattern(op.Relu(op.Abs(var.a)) & op.Exp(var.b | var.a))
    assert compile_pattern(pattern)[0].outputs == (0, 0)


def test_names_that_a_match_does_not_bind_are_none() -> None:
    pattern = op.Relu(op.Neg(var.a).bind("n") | var.b) | op.Abs(var.c)
    assert bound(pattern, "{ y = Relu(x) }") == {"a": None, "n": None, "b": "x", "c": None}
