"""Comparisons, logic and choices on bits: the laws that hold, and none beside them."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known, only
from tiered.certify.domains.terms import Array, constants, negated
from tiered.certify.evaluation.forms import ChoiceForm
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.certify.rules.bit_elementwise import BOOL
from tiered.certify.rules.logic import LOGIC, chosen_terms

X, Z = free("x", 3), free("z", 3)
A, B, C = (free(name, 3, dtype=BOOL) for name in "abc")
TRUE, FALSE = known([True], np.bool_), known([False], np.bool_)


def ran(op: str, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    return only(LOGIC[op](call(op, *inputs, **held)))


def axioms(op: str, *inputs: CheckedTensor) -> set[str]:
    """Return the axioms of a node, also those that its terms need."""
    node = call(op, *inputs)
    assert only(LOGIC[op](node)).terms is not None
    return node.axioms


def are_same(one: CheckedTensor, other: CheckedTensor) -> bool:
    return one.shape == other.shape and bool((one.terms == other.terms).all())


# --- Not, And, Or, Xor ----------------------------------------------------------------------------


def test_not_of_not_is_the_condition() -> None:
    once = ran("Not", A)
    assert once.dtype == BOOL
    assert not (once.terms == A.terms).any()
    assert are_same(ran("Not", once), A)
    assert axioms("Not", A) == {"not-not"}
    truths = CheckedTensor(BOOL, (2,), lambda: constants(np.array([True, False])))
    assert (ran("Not", truths).terms == constants(np.array([False, True]))).all()


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_logic_commutes(op: str) -> None:
    made = ran(op, A, B)
    assert (made.shape, made.dtype) == ((3,), BOOL)
    assert are_same(made, ran(op, B, A))
    assert not are_same(made, ran(op, A, C))
    assert axioms(op, A, B) == {"logic-commutes"}
    others = [ran(each, A, B).terms[0] for each in ("And", "Or", "Xor")]
    assert len({int(each["a"]) for each in others}) == 3


def test_a_condition_with_itself_is_itself_but_in_xor() -> None:
    assert are_same(ran("And", A, A), A)
    assert are_same(ran("Or", A, A), A)
    assert not (ran("Xor", A, A).terms == A.terms).any()


@pytest.mark.parametrize(
    ("op", "number", "expected"),
    [("And", TRUE, A), ("Or", FALSE, A), ("And", FALSE, FALSE), ("Or", TRUE, TRUE)],
)
def test_truths_decide_or_change_nothing(
    op: str, number: CheckedTensor, expected: CheckedTensor
) -> None:
    wide = np.broadcast_to(expected.terms, (3,))
    assert (ran(op, A, number).terms == wide).all()
    assert (ran(op, number, A).terms == wide).all()


def test_truths_are_seen_at_each_place() -> None:
    row = known([True, False, True], np.bool_)
    conjunction, disjunction = ran("And", A, row), ran("Or", row, A)
    assert conjunction.terms[0] == A.terms[0]
    assert disjunction.terms[1] == A.terms[1]
    assert conjunction.terms[1] == constants(np.array(False))
    assert disjunction.terms[2] == constants(np.array(True))
    column = known([[True], [False]], np.bool_)
    assert ran("And", A, column).shape == (2, 3)
    assert not (ran("Xor", A, TRUE).terms == A.terms).any()


# --- comparisons ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "other"), [("Less", "Greater"), ("LessOrEqual", "GreaterOrEqual")])
def test_less_is_greater_of_swapped_operands(op: str, other: str) -> None:
    made = ran(op, X, Z)
    assert (made.shape, made.dtype) == ((3,), BOOL)
    assert are_same(made, ran(other, Z, X))
    assert not (made.terms == ran(other, X, Z).terms).any()
    assert not (made.terms == ran(op, Z, X).terms).any()
    assert "less-is-greater" not in axioms(op, X, Z)
    assert "less-is-greater" in axioms(other, X, Z)


def test_less_or_equal_is_the_or_of_both() -> None:
    for one, two in ((X, Z), (Z, X)):
        both = ran("Or", ran("Less", one, two), ran("Equal", one, two))
        assert are_same(ran("LessOrEqual", one, two), both)
    assert axioms("LessOrEqual", X, Z) == {"less-or-equal"}
    assert axioms("Less", X, Z) == set()


def _like(x: CheckedTensor, dtype: int) -> CheckedTensor:
    return CheckedTensor(dtype, x.shape, lambda: x.terms)


def test_equal_commutes_and_classes_differ() -> None:
    assert are_same(ran("Equal", X, Z), ran("Equal", Z, X))
    assert axioms("Equal", X, Z) == {"equal-commutes"}
    integers = [_like(each, INT64) for each in (X, Z)]
    for op in ("Equal", "Less"):
        assert not (ran(op, *integers).terms == ran(op, X, Z).terms).any()
        narrow = [_like(each, int(onnx.TensorProto.INT8)) for each in (X, Z)]
        assert are_same(ran(op, *integers), ran(op, *narrow))


def test_known_numbers_are_compared() -> None:
    one, two = known([1, 2]), known([2])
    for op, expected in (("Less", [True, False]), ("GreaterOrEqual", [False, True]),
                         ("Equal", [False, True])):  # fmt: skip
        made = ran(op, one, two)
        assert made.known is not None
        assert made.known.tolist() == expected


# --- Where ----------------------------------------------------------------------------------------


def test_an_unknown_condition_chooses() -> None:
    made = ran("Where", A, X, Z)
    assert (made.shape, made.dtype) == ((3,), FLOAT)
    assert made.form == ChoiceForm(A, X, Z)
    assert not (made.terms == ran("Where", A, Z, X).terms).any()
    assert not (made.terms == ran("Where", B, X, Z).terms).any()
    assert are_same(ran("Where", ran("Not", A), Z, X), made)
    assert are_same(ran("Where", A, X, X), X)
    assert axioms("Where", A, X, Z) == {"where-same"}
    assert axioms("Where", TRUE, X, Z) == set()


def test_a_known_condition_chooses_at_each_place() -> None:
    row = known([True, False, True], np.bool_)
    made = ran("Where", row, X, free("s"))
    assert (made.terms == np.where([True, False, True], X.terms, free("s").terms)).all()
    assert made.form is None
    column = known([[True], [False]], np.bool_)
    wide = ran("Where", column, X, Z)
    assert (wide.terms == np.stack([X.terms, Z.terms])).all()


def test_a_choice_is_as_exact_as_both() -> None:
    half = int(onnx.TensorProto.FLOAT16)
    narrow = CheckedTensor(FLOAT, (3,), lambda: X.terms, exact=half)
    assert ran("Where", A, narrow, narrow).exact == half
    assert ran("Where", A, narrow, Z).exact == FLOAT


def test_known_operands_are_chosen() -> None:
    made = ran("Where", known([True, False], np.bool_), known([1, 2]), known([3, 4]))
    assert made.known is not None
    assert (made.known.tolist(), made.form) == ([1, 4], None)


def test_the_terms_of_a_choice() -> None:
    condition = A.terms
    made = chosen_terms(condition, X.terms, Z.terms)
    assert (chosen_terms(negated(condition), Z.terms, X.terms) == made).all()
    assert (chosen_terms(condition, X.terms, X.terms) == X.terms).all()
    assert chosen_terms(condition[:1], X.terms, Z.terms[:1]).shape == (3,)


# --- OneHot ---------------------------------------------------------------------------------------


def dense(made: CheckedTensor, values: Array, indices: Array, axis: int) -> bool:
    assert made.known is not None
    expected = np.where(np.expand_dims(indices, axis) == np.arange(4).reshape(
        [4 if at == axis % (indices.ndim + 1) else 1 for at in range(indices.ndim + 1)]
    ), values[1], values[0])  # fmt: skip
    return bool((made.known == expected).all())


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_known_indices_are_computed(axis: int) -> None:
    indices = np.array([[0, 3], [2, 1]])
    made = ran("OneHot", known(indices), known(4), known([5.0, 7.0], np.float32), axis=axis)
    assert made.dtype == FLOAT
    assert dense(made, np.array([5, 7]), indices, axis)


@pytest.mark.parametrize(("axis", "place"), [(-1, 2), (2, 2), (0, 0), (1, 1), (-3, 0)])
def test_unknown_indices_choose_between_two_values(axis: int, place: int) -> None:
    indices, values = free("at", 2, 3, dtype=INT64), known([0.0, 1.0], np.float32)
    made = ran("OneHot", indices, known(4), values, axis=axis)
    shape = [2, 3]
    shape.insert(place, 4)
    assert (made.shape, made.dtype) == (tuple(shape), FLOAT)
    assert len(np.unique(made.terms)) == 24
    assert isinstance(made.form, ChoiceForm)
    assert made.form.one.known is not None
    assert made.form.other.known is not None
    assert [made.form.one.known.item(), made.form.other.known.item()] == [1, 0]
    last = ran("OneHot", indices, known([4]), values)
    assert (np.moveaxis(made.terms, place, -1) == last.terms).all()


def test_unknown_values_have_an_order() -> None:
    indices, values = known([1, 2]), free("values", 2)
    made = ran("OneHot", indices, known(4), values)
    swapped = CheckedTensor(FLOAT, (2,), lambda: values.terms[::-1])
    assert made.shape == (2, 4)
    assert not (made.terms == ran("OneHot", indices, known(4), swapped).terms).any()
    same = CheckedTensor(FLOAT, (2,), lambda: values.terms[[0, 0]])
    assert (ran("OneHot", indices, known(4), same).terms == values.terms[0]).all()


def test_another_depth_is_another_function() -> None:
    indices, values = free("at", 2, dtype=INT64), free("values", 2)
    four, five = (ran("OneHot", indices, known(depth), values) for depth in (4, 5))
    assert not (four.terms == five.terms[:, :4]).any()
    with pytest.raises(Unproved, match="the depth of OneHot is not known"):
        ran("OneHot", indices, free("depth", dtype=INT64), values)
