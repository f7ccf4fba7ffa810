"""Operators that make constants: their numbers, and what is too large or no dense tensor."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known, only
from tiered.certify.evaluation.values import MOST_ELEMENTS, CheckedTensor, Unproved
from tiered.certify.rules.constant import CONSTANTS

STRING = int(onnx.TensorProto.STRING)


def ran(op: str, *inputs: CheckedTensor, **held: Any) -> CheckedTensor:
    return only(CONSTANTS[op](call(op, *inputs, **held)))


@pytest.mark.parametrize(
    ("held", "dtype", "numbers"),
    [
        ({"value_float": 1.5}, FLOAT, 1.5),
        ({"value_floats": [1.5, 2]}, FLOAT, [1.5, 2]),
        ({"value_int": 3}, INT64, 3),
        ({"value_ints": [3, 4]}, INT64, [3, 4]),
        ({"value_string": "a"}, STRING, "a"),
        ({"value_strings": ["a", "b"]}, STRING, ["a", "b"]),
        ({"value": onnx.numpy_helper.from_array(np.array([5]))}, INT64, [5]),
    ],
)
def test_a_constant_has_the_numbers_of_its_attribute(
    held: dict[str, Any], dtype: int, numbers: Any
) -> None:
    made = ran("Constant", **held)
    assert made.dtype == dtype
    assert made.known is not None
    assert made.known.tolist() == numbers


@pytest.mark.parametrize(
    ("name", "kind", "dtype"),
    [
        ("value_floats", onnx.AttributeProto.FLOATS, FLOAT),
        ("value_ints", onnx.AttributeProto.INTS, INT64),
        ("value_strings", onnx.AttributeProto.STRINGS, STRING),
    ],
)
def test_a_constant_may_be_an_empty_list(name: str, kind: Any, dtype: int) -> None:
    node = call("Constant")
    node.node.attribute.append(onnx.AttributeProto(name=name, type=kind))
    made = only(CONSTANTS["Constant"](node))
    assert (made.dtype, made.shape) == (dtype, (0,))


def test_a_sparse_constant_has_no_rule() -> None:
    tensor = onnx.numpy_helper.from_array(np.array([5]))
    with pytest.raises(Unproved, match="no dense tensor of numbers"):
        ran("Constant", sparse_value=onnx.helper.make_sparse_tensor(tensor, tensor, [9]))


@pytest.mark.parametrize("sizes", [[2, 3], [0, 2], [1], []])
def test_a_constant_of_a_shape_is_zero_or_its_value(sizes: list[int]) -> None:
    zeros = ran("ConstantOfShape", known(sizes))
    assert (zeros.dtype, zeros.shape) == (FLOAT, tuple(sizes))
    assert zeros.known is not None
    assert not zeros.known.any()
    sevens = ran("ConstantOfShape", known(sizes), value=onnx.numpy_helper.from_array(np.array([7])))
    assert (sevens.dtype, sevens.shape) == (INT64, tuple(sizes))
    assert sevens.known is not None
    assert (sevens.known == 7).all()


@pytest.mark.parametrize("sizes", [[-1], [2, -1], [MOST_ELEMENTS + 1], [MOST_ELEMENTS, 2]])
def test_a_shape_is_not_negative_and_of_few_elements(sizes: list[int]) -> None:
    with pytest.raises(Unproved, match="ConstantOfShape of"):
        ran("ConstantOfShape", known(sizes))
    assert ran("ConstantOfShape", known([MOST_ELEMENTS])).size == MOST_ELEMENTS


@pytest.mark.parametrize(
    ("bounds", "numbers"),
    [((0, 5, 2), [0, 2, 4]), ((5, 0, -2), [5, 3, 1]), ((0, 5, -1), []), ((1, 2, 1), [1])],
)
def test_a_range_is_counted(bounds: tuple[int, int, int], numbers: list[int]) -> None:
    for dtype in (np.int64, np.int32, np.float32):
        made = ran("Range", *(known(each, dtype) for each in bounds))
        assert made.known is not None
        assert made.known.dtype == dtype
        assert made.known.tolist() == numbers


def test_a_range_has_a_step_and_few_numbers() -> None:
    with pytest.raises(Unproved, match="Range"):
        ran("Range", known(0), known(5), known(0))
    with pytest.raises(Unproved, match="a Range of too many numbers"):
        ran("Range", known(0), known(2 * MOST_ELEMENTS + 2), known(2))
    with pytest.raises(Unproved, match="a bound of Range"):
        ran("Range", known(0), free("n", dtype=INT64), known(1))
    assert ran("Range", known(0), known(2 * MOST_ELEMENTS), known(2)).size == MOST_ELEMENTS
