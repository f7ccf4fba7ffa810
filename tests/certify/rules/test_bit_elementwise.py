"""Elementwise operators: functions of their operands at each place, by name and attributes."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known, only
from tiered.certify.domains.terms import mix, seed_of
from tiered.certify.evaluation.forms import Fixed, WithoutSign
from tiered.certify.evaluation.values import CheckedTensor, Misfit
from tiered.certify.rules.bit_elementwise import (
    BOOL,
    PLAIN,
    dtype_of_result,
    elementwise,
    seed_for,
)

X = free("x", 3)
_IDEMPOTENT = [("Abs", "Abs"), ("Sign", "Sign"), ("Ceil", "Ceil"), ("Ceil", "Floor"),
               ("Ceil", "Round"), ("Floor", "Ceil"), ("Floor", "Round"), ("Round", "Floor"),
               ("Round", "Round")]  # fmt: skip


def ran(op: str, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    return only(elementwise(call(op, *inputs, **held)))


def formed(form: object) -> CheckedTensor:
    x = CheckedTensor(FLOAT, (3,), lambda: X.terms)
    x.form = form
    return x


def test_an_element_depends_on_the_elements_at_its_place() -> None:
    x, y = free("x", 2, 1), free("y", 3)
    made = ran("PRelu", x, y)
    assert (made.shape, made.dtype) == ((2, 3), FLOAT)
    assert len(np.unique(made.terms)) == 6
    alone = ran("PRelu", CheckedTensor(FLOAT, (), lambda: x.terms[1, 0]),
                CheckedTensor(FLOAT, (), lambda: y.terms[2]))  # fmt: skip
    assert made.terms[1, 2] == alone.terms
    assert not (made.terms == ran("PRelu", y, x).terms).any()
    with pytest.raises(Misfit, match="operands do not broadcast"):
        ran("PRelu", free("x", 2), y)


def test_operators_attributes_absent_operands_and_dtypes_count() -> None:
    made = [
        ran("Exp", X), ran("Sin", X), ran("com.microsoft::Exp", X), ran("Elu", X),
        ran("Elu", X, alpha=0.5), ran("Elu", X, alpha=0.25), ran("Gelu", X, approximate="tanh"),
        ran("Gelu", X), ran("Any", X, free("y", 3)), ran("Any", X, None, free("y", 3)),
        ran("Exp", CheckedTensor(INT64, (3,), lambda: X.terms)),
        ran("Any", X, axes=[1]), ran("Any", X, axes=[1, 2]),
        ran("IsNaN", X), ran("IsNaN", CheckedTensor(INT64, (3,), lambda: X.terms)),
    ]  # fmt: skip
    assert len({int(each.terms["a"][0]) for each in made}) == len(made)


def test_the_order_of_attributes_does_not_count() -> None:
    one = seed_for(call("Any", X, alpha=1.0, beta=2.0))
    assert one == seed_for(call("Any", X, beta=2.0, alpha=1.0))
    assert one != seed_for(call("Any", X, beta=1.0, alpha=2.0))
    assert one != seed_for(call("Any", X, alpha=1.0, beta=2.0), "more")


def test_the_seed_of_unary_operators_is_their_name() -> None:
    assert seed_for(call("Sqrt", X), (True,)) == seed_of("", "Sqrt", (True,))


def test_tensors_among_attributes_count_by_content() -> None:
    def seed(number: int) -> object:
        return seed_for(call("Any", X, value=onnx.numpy_helper.from_array(np.array(number))))

    assert seed(1) == seed(1) != seed(2)


@pytest.mark.parametrize(
    "op",
    ["And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not",
     "Or", "Xor"],
)  # fmt: skip
def test_tests_have_bools(op: str) -> None:
    assert dtype_of_result(call(op, X), [X]) == BOOL == onnx.TensorProto.BOOL


def test_other_results_have_the_dtype_of_the_data() -> None:
    condition = free("c", 3, dtype=BOOL)
    assert dtype_of_result(call("Where", condition, X, X), [condition, X, X]) == FLOAT
    assert dtype_of_result(call("Exp", X), [X]) == FLOAT


def test_a_given_rule_makes_the_terms() -> None:
    made = only(elementwise(call("Neg", X, free("y", 2, 1)), lambda x, _y: x))
    assert (made.terms == np.broadcast_to(X.terms, (2, 3))).all()


@pytest.mark.parametrize(("first", "then"), _IDEMPOTENT)
def test_an_idempotent_operator_changes_nothing_twice(first: str, then: str) -> None:
    once = ran(first, X)
    again = call(then, once)
    assert only(elementwise(again)) is once
    assert again.axioms == {"idempotent"}


@pytest.mark.parametrize(
    ("first", "then"), [("Abs", "Sign"), ("Sign", "Abs"), ("Ceil", "Abs"), ("Exp", "Exp")]
)
def test_others_change_their_results(first: str, then: str) -> None:
    once = ran(first, X)
    assert ran(then, once) is not once
    assert isinstance(once.form, Fixed) == (first != "Exp")


@pytest.mark.parametrize(
    ("op", "erases"),
    [
        ("Abs", True), ("Cos", True), ("Cosh", True), ("Exp", True), ("HardSigmoid", True),
        ("Sigmoid", True), ("Softplus", True), ("Sin", False), ("Sqrt", False), ("Tanh", False),
        ("Reciprocal", False), ("Erf", False),
    ],
)  # fmt: skip
def test_the_sign_of_a_zero_is_not_seen_by_some(op: str, erases: bool) -> None:
    base = free("base", 3)
    node = call(op, formed(WithoutSign(base)))
    made = only(elementwise(node))
    assert bool((made.terms == ran(op, base).terms).all()) == erases
    assert (node.axioms == {"zero-sign-unread"}) == erases


def test_a_mean_of_one_is_that_one() -> None:
    assert ran("Mean", X) is X
    assert (ran("Mean", X, X).terms != X.terms).all()
    assert (ran("Exp", X).terms != X.terms).all()


def test_known_operands_have_known_results() -> None:
    one, two = known([1, 2], np.float32), known([3], np.float32)
    made = ran("Add", one, two)
    assert made.known is not None
    assert (made.known.tolist(), made.dtype) == ([4, 5], FLOAT)
    assert ran("Add", one, free("x", 2)).known is None
    less = ran("Less", one, two)
    assert less.known is not None
    assert (less.known.tolist(), less.dtype) == ([True, True], BOOL)


def test_what_is_rounded_is_computed_by_the_runtime() -> None:
    node = call("Exp", known([0.0], np.float32))
    made = only(elementwise(node))
    assert made.known is not None
    assert made.known.tolist() == [1]
    assert node.axioms == {"constants-by-runtime"}
    exact = call("Sqrt", known([4.0], np.float32))
    assert only(elementwise(exact)).known == [2]
    assert exact.axioms == set()


def test_a_mod_by_the_sign_of_the_dividend_is_that_of_c() -> None:
    x, y = known([-7, 7]), known([3, -3])
    for held, expected in (({}, [2, -2]), ({"fmod": 0}, [2, -2]), ({"fmod": 1}, [-1, 1])):
        made = ran("Mod", x, y, **held)
        assert made.known is not None
        assert made.known.tolist() == expected


def test_plain_operators_have_no_laws() -> None:
    assert set(PLAIN.values()) == {elementwise}
    assert "Exp" in PLAIN
    assert not {"Add", "Mul", "Neg", "Abs", "Relu", "Clip", "Max", "Where", "Cast"} & set(PLAIN)


def test_terms_are_the_mix_of_those_of_operands() -> None:
    y = free("y", 3)
    seed = seed_for(call("Any", X, y), (True, True), FLOAT, ("float", "float"))
    assert (ran("Any", X, y).terms == mix(seed, X.terms, y.terms)).all()
