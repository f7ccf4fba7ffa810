"""Casts on bits: what changes no term, and what others share."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known, only
from tiered.certify.evaluation.forms import ChoiceForm
from tiered.certify.evaluation.values import CheckedTensor
from tiered.certify.rules.casts import cast

BOOL, DOUBLE = int(onnx.TensorProto.BOOL), int(onnx.TensorProto.DOUBLE)
HALF, BFLOAT, FLOAT8 = (
    int(getattr(onnx.TensorProto, name)) for name in ("FLOAT16", "BFLOAT16", "FLOAT8E4M3FN")
)
X = free("x", 2)
FLAG = free("flag", 2, dtype=BOOL)


def ran(x: CheckedTensor, to: int, **held: Any) -> CheckedTensor:
    return only(cast(call("Cast", x, to=to, **held)))


def is_same(one: CheckedTensor, other: CheckedTensor) -> bool:
    return bool((one.terms == other.terms).all())


def test_a_cast_to_the_same_dtype_is_its_operand() -> None:
    assert ran(X, FLOAT) is X
    assert only(cast(call("CastLike", X, free("z", 1)))) is X


def test_a_cast_like_another_has_its_dtype() -> None:
    made = only(cast(call("CastLike", FLAG, free("z", 1, dtype=INT64))))
    assert made.dtype == INT64
    assert is_same(made, ran(FLAG, INT64))


def test_known_numbers_are_cast() -> None:
    made = ran(known([0, 3]), FLOAT)
    assert made.known is not None
    assert made.known.tolist() == [0.0, 3.0]


def test_a_dtype_that_has_all_numbers_changes_no_term() -> None:
    narrow = free("x", 2, dtype=HALF)
    node = call("Cast", narrow, to=FLOAT)
    assert is_same(only(cast(node)), narrow)
    assert node.axioms == {"cast-wider"}
    node = call("Cast", X, to=HALF)
    assert not is_same(only(cast(node)), X)
    assert node.axioms == set()


@pytest.mark.parametrize(
    ("x", "one", "other", "expected"),
    [
        (FLAG, FLOAT, DOUBLE, True),  # 0 or 1 in each
        (FLAG, FLOAT, INT64, False),
        (X, HALF, BFLOAT, False),
        (X, INT64, BOOL, False),
        (X, FLOAT8, HALF, False),
    ],
)
def test_results_are_shared_where_every_dtype_has_them(
    x: CheckedTensor, one: int, other: int, expected: bool
) -> None:
    assert is_same(ran(x, one), ran(x, other)) is expected


def test_only_a_cast_to_8_bits_may_saturate() -> None:
    assert not is_same(ran(X, FLOAT8, saturate=1), ran(X, FLOAT8, saturate=0))
    assert is_same(ran(X, FLOAT8, saturate=1), ran(X, FLOAT8))
    assert not is_same(ran(X, FLOAT8), ran(X, FLOAT8, round_mode="up"))
    assert is_same(ran(X, HALF, saturate=1), ran(X, HALF, saturate=0))


def test_a_choice_of_numbers_is_one_of_cast_numbers() -> None:
    def chosen(one: CheckedTensor, other: CheckedTensor) -> CheckedTensor:
        x = free("chosen", 2)
        x.form = ChoiceForm(FLAG, one, other)
        return ran(x, INT64)

    numbers = [known(each, np.float32) for each in ([1, 2], [3, 4])]
    form = chosen(*numbers).form
    assert isinstance(form, ChoiceForm)
    assert form.condition is FLAG
    assert [side.known.tolist() for side in (form.one, form.other) if side.known is not None] == [
        [1, 2],
        [3, 4],
    ]
    assert chosen(numbers[0], X).form is None
    assert chosen(X, numbers[0]).form is None
