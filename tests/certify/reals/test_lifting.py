"""Rules on bits as rules over the reals: they see the terms of elements, and numbers as one."""

from typing import Any

import numpy as np
import pytest

from tests.certify.call import FLOAT, INT64, call, known, only
from tests.certify.reals.field import DOMAIN, number, unknown
from tiered.certify.domains.affine_elements import Affine
from tiered.certify.domains.element_arrays import AFFINE, of_atoms
from tiered.certify.domains.terms import TERM, constants, mix, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.forms import Fixed
from tiered.certify.evaluation.values import CheckedTensor
from tiered.certify.reals.lifting import domain_of, function, lifted, or_else

X, Z = unknown("x", 3), unknown("z", 3)
SEED = seed_of("a rule of a test")


def ran(rule: Any, *inputs: CheckedTensor | None, op: str = "Any", **held: Any) -> CheckedTensor:
    return only(rule(call(op, *inputs, domain=DOMAIN, **held)))


def test_a_rule_sees_terms_and_its_result_has_elements() -> None:
    seen: list[EvaluatedCall] = []

    def rule(inner: EvaluatedCall) -> Results:
        seen.append(inner)
        x, y = inner.operand(0), inner.operand(2)
        return [inner.made(FLOAT, (3,), lambda: mix(SEED, x.terms, y.terms))]

    outer = call("Any", X, None, Z, domain=DOMAIN, alpha=0.5)
    made = only(lifted(rule)(outer))
    assert made.terms.dtype == AFFINE
    expected = mix(SEED, DOMAIN.plain(X.terms), DOMAIN.plain(Z.terms))
    assert (made.terms == of_atoms(expected)).all()
    (inner,) = seen
    assert inner.inputs[1] is None
    assert inner.operand(0).terms.dtype == TERM
    assert inner.get("alpha") == 0.5
    assert inner.axioms is outer.axioms
    assert not inner.signed_zeros
    assert outer.signed_zeros
    assert (inner.opset, inner.scope) == (outer.opset, outer.scope)


def test_numbers_and_forms_go_in_and_out() -> None:
    form = Fixed(frozenset(("Abs",)))
    x = CheckedTensor(FLOAT, (3,), lambda: X.terms, exact=INT64)
    x.form = form

    def rule(inner: EvaluatedCall) -> Results:
        first, second = inner.operand(0), inner.operand(1)
        assert (first.form, first.exact, first.known) == (form, INT64, None)
        assert second.known is not None
        return [first, second, None]

    made = lifted(rule)(call("Any", x, number([1, 2]), domain=DOMAIN))
    assert made[2] is None
    assert made[0] is not None
    assert made[1] is not None
    assert made[0].form is form
    assert made[1].known is not None
    assert made[1].known.tolist() == [1, 2]
    assert made[1].terms.dtype == AFFINE


def test_numbers_that_count_as_one_have_one_term() -> None:
    domain = Affine(2.0**-23)

    def terms(value: Any) -> Any:
        rule = lifted(lambda inner: [inner.made(FLOAT, (1,), lambda: inner.operand(0).terms)])
        given = known([value], np.float32, domain)
        return only(rule(call("Any", given, domain=domain))).terms

    third = np.float32(1 / 3)
    assert (terms(third) == terms(np.nextafter(third, np.float32(1)))).all()
    assert (terms(third) != terms(np.float32(0.34))).all()


def test_constants_that_a_rule_makes_are_those_of_the_field() -> None:
    domain = Affine(2.0**-23)

    def constant(inner: EvaluatedCall) -> Results:
        return [inner.made(FLOAT, (1,), lambda: inner.domain.constant(np.array([0.1], np.float32)))]

    made = only(lifted(constant)(call("Any", X, domain=domain)))
    expected = domain.plain(domain.constant(np.array([0.1], np.float32)))
    assert (made.terms == of_atoms(expected)).all()


@pytest.mark.parametrize("numbers", [np.array(["a"], object), np.array([1 + 2j], np.complex64)])
def test_strings_and_complex_numbers_are_no_elements(numbers: Any) -> None:
    def rule(inner: EvaluatedCall) -> Results:
        return [inner.made(FLOAT, (1,), lambda: inner.domain.constant(numbers))]

    made = only(lifted(rule)(call("Any", X, domain=DOMAIN)))
    assert (made.terms == of_atoms(constants(numbers))).all()


def test_elements_of_a_rule_stay_as_they_are() -> None:
    made = ran(lifted(lambda inner: [inner.made(FLOAT, (3,), lambda: X.terms)]), Z)
    assert (made.terms == X.terms).all()


# --- functions ------------------------------------------------------------------------------------


def test_a_function_is_unknown_but_one_for_each_operator() -> None:
    made = ran(function, X, op="Exp")
    assert (made.shape, made.dtype) == ((3,), FLOAT)
    assert (made.terms == ran(function, X, op="Exp").terms).all()
    others = [ran(function, X, op="Sin"), ran(function, Z, op="Exp"),
              ran(function, X, op="Elu", alpha=2.0), ran(function, X, op="Elu"),
              ran(function, X, None, op="Any"),
              ran(function, None, X, op="Any")]  # fmt: skip
    assert len({int(each.terms["a"][0]) for each in (made, *others)}) == 7
    assert (made.terms["s"] == 1).all()
    assert (made.terms["o"] == 0).all()


def test_a_function_of_numbers_is_a_number() -> None:
    made = ran(function, number([4.0]), op="Sqrt")
    assert made.known is not None
    assert made.known.tolist() == [2]


def test_operands_of_a_function_broadcast() -> None:
    made = ran(function, unknown("a", 2, 1), Z, op="PRelu")
    assert made.terms.shape == made.shape == (2, 3)
    tested = ran(function, X, op="IsNaN")
    assert tested.dtype == 9


# --- one rule or another --------------------------------------------------------------------------


def test_where_a_rule_covers_a_node_not_another_one_does() -> None:
    def none(_: EvaluatedCall) -> Results:
        raise NoRule

    def first(inner: EvaluatedCall) -> Results:
        return [inner.operand(0)]

    def second(inner: EvaluatedCall) -> Results:
        return [inner.operand(1)]

    assert ran(or_else(first, second), X, Z) is X
    assert ran(or_else(none, second), X, Z) is Z
    with pytest.raises(NoRule):
        ran(or_else(none, None), X, Z)
    assert ran(or_else(first, None), X, Z) is X


def test_the_field_is_that_of_the_call() -> None:
    assert domain_of(call("Any", X, domain=DOMAIN)) is DOMAIN
    with pytest.raises(AssertionError):
        domain_of(call("Any", X))
