"""Sequences of tensors: which tensors are in one, and at which places."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known, only
from tests.certify.test_checker import proof
from tiered.certify.domains.terms import constants
from tiered.certify.evaluation.call import NoRule, Results
from tiered.certify.evaluation.values import CheckedTensor, TensorList, Unproved
from tiered.certify.rules.known_sequences import SEQUENCES
from tiered.certify.rules.moves import MOVES

A, B, C, D = (free(name, 2) for name in "abcd")


def ran(op: str, *inputs: CheckedTensor | None, **attributes: Any) -> Results:
    return SEQUENCES[op](call(op, *inputs, **attributes))


def items(results: Results) -> tuple[CheckedTensor, ...]:
    made = only(results)
    assert isinstance(made, TensorList)
    return made.items


def sequence(*tensors: CheckedTensor) -> TensorList:
    return TensorList(FLOAT, tensors)


def test_a_sequence_is_made_of_operands_or_of_nothing() -> None:
    assert items(ran("SequenceConstruct", A, B)) == (A, B)
    assert only(ran("SequenceConstruct", A, B)).dtype == FLOAT
    assert items(ran("SequenceEmpty")) == ()
    assert only(ran("SequenceEmpty")).dtype == FLOAT
    assert only(ran("SequenceEmpty", dtype=INT64)).dtype == INT64


def test_the_length_is_a_known_integer() -> None:
    made = only(ran("SequenceLength", sequence(A, B, C)))
    assert made.dtype == INT64
    assert made.known is not None
    assert (made.known.dtype, made.known.shape) == (np.dtype(np.int64), ())
    assert made.known == 3


@pytest.mark.parametrize(
    ("at", "expected"),
    [(0, A), (1, B), (2, C), (-1, C), (-3, A)],
)
def test_a_tensor_is_read_at_its_place(at: int, expected: CheckedTensor) -> None:
    assert only(ran("SequenceAt", sequence(A, B, C), known(at))) is expected


@pytest.mark.parametrize("at", [3, -4])
@pytest.mark.parametrize("op", ["SequenceAt", "SequenceErase"])
def test_a_place_outside_is_an_error_at_run_time(op: str, at: int) -> None:
    with pytest.raises(NoRule):
        ran(op, sequence(A, B, C), known(at))


@pytest.mark.parametrize(
    ("at", "expected"), [(0, (B, C)), (2, (A, B)), (-3, (B, C)), (None, (A, B))]
)
def test_a_tensor_is_erased_and_without_a_place_the_last(
    at: int | None, expected: Sequence[CheckedTensor]
) -> None:
    place = None if at is None else known(at)
    assert items(ran("SequenceErase", sequence(A, B, C), place)) == expected


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (0, (D, A, B, C)), (1, (A, D, B, C)), (3, (A, B, C, D)), (-1, (A, B, D, C)),
        (-3, (D, A, B, C)), (None, (A, B, C, D)),
    ],
)  # fmt: skip
def test_a_tensor_is_inserted_before_its_place_and_without_one_at_the_end(
    at: int | None, expected: Sequence[CheckedTensor]
) -> None:
    place = None if at is None else known(at)
    assert items(ran("SequenceInsert", sequence(A, B, C), D, place)) == expected


@pytest.mark.parametrize("at", [4, -4])
def test_a_place_to_insert_outside_is_an_error_at_run_time(at: int) -> None:
    with pytest.raises(NoRule):
        ran("SequenceInsert", sequence(A, B, C), D, known(at))


def test_a_place_from_the_end_is_not_the_end() -> None:
    head = "(float[1] a, float[1] b, float[1] c) => (float[3] y)"
    inserted = f"""{head} <int64 m = {{-1}}> {{ s = SequenceConstruct(a, b)
        t = SequenceInsert(s, c, m)  y = ConcatFromSequence<axis = 0>(t) }}"""
    assert proof(inserted, f"{head} {{ y = Concat<axis = 0>(a, c, b) }}").domain == "bits"
    assert not proof(inserted, f"{head} {{ y = Concat<axis = 0>(a, b, c) }}").is_proved


@pytest.mark.parametrize("op", ["SequenceAt", "SequenceErase", "SequenceInsert"])
def test_a_place_that_is_not_known_is_none(op: str) -> None:
    place, other = free("at", dtype=INT64), free("e", 3)
    operands = [sequence(A, other), *([D] if op == "SequenceInsert" else []), place]
    with pytest.raises(Unproved, match=f"the place of {op} is not known"):
        ran(op, *operands)


def test_an_operand_that_is_no_list_is_not_followed() -> None:
    with pytest.raises(Unproved, match="the tensors of SequenceLength are not known"):
        ran("SequenceLength", A)


def test_an_unknown_place_reads_what_a_gather_of_the_stack_would() -> None:
    place = free("at", dtype=INT64)
    made = only(ran("SequenceAt", sequence(A, B), place))
    stacked = CheckedTensor(FLOAT, (2, 2), lambda: np.stack([A.terms, B.terms]))
    gathered = only(MOVES["Gather"](call("Gather", stacked, place, axis=0)))
    assert (made.dtype, made.shape) == (FLOAT, (2,))
    assert (made.terms == gathered.terms).all()
    other = only(ran("SequenceAt", sequence(B, A), place))
    assert (made.terms != other.terms).all()


def test_an_unknown_place_among_equal_tensors_reads_one_of_them() -> None:
    place = free("at", dtype=INT64)
    assert only(ran("SequenceAt", sequence(A, free("a", 2)), place)) is A


# --- SplitToSequence and ConcatFromSequence -------------------------------------------------------

X = known(np.arange(12).reshape(2, 6), np.float32)
X_NUMBERS = np.arange(12, dtype=np.float32).reshape(2, 6)


@pytest.mark.parametrize(
    ("sizes", "attributes", "expected"),
    [
        (None, {}, [X_NUMBERS[:1], X_NUMBERS[1:]]),
        (None, {"keepdims": 0}, [X_NUMBERS[0], X_NUMBERS[1]]),
        (None, {"axis": -1, "keepdims": 0}, [X_NUMBERS[:, at] for at in range(6)]),
        (4, {"axis": 1}, [X_NUMBERS[:, :4], X_NUMBERS[:, 4:]]),
        (3, {"axis": 1}, [X_NUMBERS[:, :3], X_NUMBERS[:, 3:]]),
        (1, {"axis": 0, "keepdims": 0}, [X_NUMBERS[:1], X_NUMBERS[1:]]),
        ([1, 0, 5], {"axis": 1}, [X_NUMBERS[:, :1], X_NUMBERS[:, 1:1], X_NUMBERS[:, 1:]]),
        ([2], {}, [X_NUMBERS]),
    ],
)
def test_a_tensor_is_split_into_parts(
    sizes: Any, attributes: dict[str, int], expected: list[Any]
) -> None:
    made = ran("SplitToSequence", X, None if sizes is None else known(sizes), **attributes)
    assert only(made).dtype == FLOAT
    found = [part.known for part in items(made)]
    assert len(found) == len(expected)
    for part, numbers in zip(found, expected, strict=True):
        assert part is not None
        assert part.shape == numbers.shape
        assert (part == numbers).all()


@pytest.mark.parametrize("sizes", [0, -1, [1, 2], [3]])
def test_sizes_that_do_not_fit_are_an_error_at_run_time(sizes: Any) -> None:
    with pytest.raises(NoRule):
        ran("SplitToSequence", X, known(sizes))


def test_a_part_that_keeps_its_axis_is_not_moved_again() -> None:
    row = free("row", 1, 3)
    (part,) = items(ran("SplitToSequence", row))
    assert (part.shape, part.dtype) == ((1, 3), FLOAT)
    (flat,) = items(ran("SplitToSequence", row, keepdims=0))
    assert (flat.terms == row.terms[0]).all()


def test_parts_are_joined_along_an_axis() -> None:
    made = only(ran("ConcatFromSequence", sequence(A, B), axis=0))
    assert made.shape == (4,)
    assert (made.terms == np.concatenate([A.terms, B.terms])).all()


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_parts_are_stacked_along_a_new_axis(axis: int) -> None:
    made = only(ran("ConcatFromSequence", sequence(A, B, C), axis=axis, new_axis=1))
    expected = np.stack([A.terms, B.terms, C.terms], axis=axis)
    assert made.shape == expected.shape
    assert (made.terms == expected).all()


def test_nothing_is_not_joined() -> None:
    with pytest.raises(Unproved, match="ConcatFromSequence of nothing"):
        ran("ConcatFromSequence", sequence(), axis=0)


def test_numbers_that_are_joined_stay_known() -> None:
    ones = known([1.0], np.float32)
    made = only(ran("ConcatFromSequence", sequence(ones, ones), axis=0))
    assert (made.terms == constants(np.ones(2, np.float32))).all()
    assert only(ran("ConcatFromSequence", sequence(ones), axis=0)).known is not None
    assert only(ran("SequenceConstruct", ones)).dtype == onnx.TensorProto.FLOAT
