"""Tensors of the checker: terms are made when asked for, and keys say which are equal."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from tests.certify.call import FLOAT, INT64, free, known
from tiered.certify.domains.terms import Array, digest
from tiered.certify.evaluation.values import (
    MOST_ELEMENTS,
    CheckedTensor,
    Misfit,
    TensorList,
    Unproved,
    broadcast_of,
    class_of,
    holds,
    numpy_dtype,
)
from tiered.graph.core.dtypes import integer_info

ALL = [
    "FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32",
    "INT64", "UINT64", "BOOL", "STRING", "COMPLEX64", "INT4", "UINT4", "FLOAT8E4M3FN",
]  # fmt: skip


def test_shapes_broadcast() -> None:
    assert broadcast_of([(2, 1), (3,), ()], "operands") == (2, 3)
    assert broadcast_of([], "operands") == ()
    assert broadcast_of([(0, 1), (4,)], "operands") == (0, 4)


def test_shapes_that_do_not_broadcast_name_the_sizes_to_repair() -> None:
    with pytest.raises(Misfit, match="operands do not broadcast") as refused:
        broadcast_of([(5, 1, 2), (4, 3), (4, 7)], "operands")
    assert set(refused.value.repairs) == {(2, 3), (2, 7), (3, 2), (3, 7), (7, 2), (7, 3)}
    with pytest.raises(Misfit) as refused:
        broadcast_of([(2, 4), (3, 5)], "operands")
    assert set(refused.value.repairs) == {(4, 5), (5, 4), (2, 3), (3, 2)}


def test_terms_are_made_once_and_not_before_they_are_asked_for() -> None:
    made: list[int] = []

    def make() -> Array:
        made.append(1)
        return free("x", 2).terms

    x = CheckedTensor(FLOAT, [2], make)
    assert (x.shape, x.size, x.rank, x.exact, x.known, x.form) == ((2,), 2, 1, FLOAT, None, None)
    assert not made
    assert x.terms is x.terms
    assert len(made) == 1
    scalar = free("s")
    assert (scalar.size, scalar.rank) == (1, 0)
    assert CheckedTensor(FLOAT, (), make, exact=INT64).exact == INT64


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no"), "operands that do not fit: no"),
        (IndexError("at"), "operands that do not fit: at"),
        (RecursionError(), "a chain of too many nodes"),
    ],
)
def test_terms_that_cannot_be_made_are_not_proved(error: Exception, reason: str) -> None:
    def make() -> Array:
        raise error

    with pytest.raises(Unproved, match=f"^{reason}$"):
        _ = CheckedTensor(FLOAT, (2,), make).terms


def test_tensors_of_too_many_elements_have_no_terms() -> None:
    assert MOST_ELEMENTS == 4_194_304

    def make() -> Array:
        raise ValueError("asked")

    with pytest.raises(Unproved, match="a tensor of more than 4,194,304 elements"):
        _ = CheckedTensor(FLOAT, (MOST_ELEMENTS + 1,), make).terms
    with pytest.raises(Unproved, match="asked"):
        _ = CheckedTensor(FLOAT, (MOST_ELEMENTS,), make).terms


def test_keys_are_those_of_contents() -> None:
    x = free("x", 2)
    plain = CheckedTensor(FLOAT, (2,), lambda: x.terms)
    assert plain.key == (FLOAT, (2,), digest(x.terms))
    assert CheckedTensor(INT64, (2,), lambda: x.terms).key != plain.key
    given = CheckedTensor(FLOAT, (2,), lambda: x.terms, key=("mine",))
    assert given.key == ("mine",)
    assert known([1, 2]).key == known([1, 2]).key != known([2, 1]).key
    assert known([1, 2]).key != known([[1, 2]]).key
    assert known([1, 2]).key != known([1, 2], np.int32).key


def test_keys_of_numbers_tell_zeros_apart_and_no_nans() -> None:
    def key(numbers: Array) -> object:
        return known(numbers, numbers.dtype).key

    nans = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)
    assert key(nans[:1]) == key(nans[1:])
    assert key(np.array([0.0], np.float32)) != key(np.array([-0.0], np.float32))
    halves = np.array([[0x7FC0, 0x3F80], [0xFFC1, 0x3F80]], np.uint16).view(ml_dtypes.bfloat16)
    assert key(halves[0]) == key(halves[1])
    assert key(np.arange(6).reshape(2, 3).T) == key(np.array([[0, 3], [1, 4], [2, 5]]))
    texts = np.array(["a", "b"], object)
    assert key(texts) == key(texts.copy()) != key(texts[::-1])


def test_numbers_are_those_of_constants() -> None:
    assert known([[3, 4]]).integers("axes") == [3, 4]
    assert known([1.5], np.float32).numbers("a bound").tolist() == [1.5]
    for ask in (free("x", 2).integers, free("x", 2).numbers):
        with pytest.raises(Unproved, match="axes is not known"):
            ask("axes")


def test_a_list_is_its_tensors_and_has_no_terms() -> None:
    a, b = free("a", 2), free("b", 3)
    pair = TensorList(FLOAT, [a, b])
    assert (pair.items, pair.shape) == ((a, b), ())
    assert pair.key == TensorList(FLOAT, [a, b]).key
    keys = {TensorList(FLOAT, each).key for each in ([a, b], [b, a], [a], [])}
    assert len({*keys, TensorList(INT64, []).key}) == 5
    with pytest.raises(Unproved, match="a sequence is no tensor"):
        _ = pair.terms


def test_dtypes_have_classes() -> None:
    found = {name: class_of(TensorProto.DataType.Value(name)) for name in ALL}
    kinds = {"BOOL": "bool", "STRING": "string", "COMPLEX64": "complex"}
    for name, kind in found.items():
        assert kind == kinds.get(name, "integer" if "INT" in name else "float")
    assert numpy_dtype(FLOAT) == np.float32
    assert numpy_dtype(TensorProto.BFLOAT16) == ml_dtypes.bfloat16


def test_a_dtype_holds_another_if_it_has_all_of_its_values() -> None:
    """By the numbers of bits: of integers, and of mantissa and exponent of floats."""
    bits = {"FLOAT16": (11, 5), "BFLOAT16": (8, 8), "FLOAT": (24, 8), "DOUBLE": (53, 11)}
    kinds = {name: numpy_dtype(TensorProto.DataType.Value(name)) for name in ALL if "INT" in name}
    spans = {name: integer_info(kind) for name, kind in kinds.items()}
    for wide in ALL:
        for narrow in ALL:
            expected = wide == narrow
            if wide in bits and narrow in bits:
                expected = all(w >= n for w, n in zip(bits[wide], bits[narrow], strict=True))
            if wide in spans and narrow in spans:
                to, of = spans[wide], spans[narrow]
                expected = bool(to.min <= of.min and of.max <= to.max)
            found = holds(TensorProto.DataType.Value(wide), TensorProto.DataType.Value(narrow))
            assert found is expected, (wide, narrow)


def test_strings_are_equal_by_their_text() -> None:
    def text(*words: str) -> CheckedTensor:
        made: np.ndarray[Any, Any] = np.array(words, object)
        return CheckedTensor(int(TensorProto.STRING), made.shape, lambda: made, made)

    one, same, other = text("a" * 40, "b"), text("".join(["a"] * 40), "b"), text("a", "b" * 40)
    assert one.key == same.key
    assert one.key != other.key
