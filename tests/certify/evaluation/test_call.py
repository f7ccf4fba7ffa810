"""A node as rules see it: its operands, its attributes, and tensors that rules make."""

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known
from tiered.certify.domains.terms import constants
from tiered.certify.evaluation.call import axis_of
from tiered.certify.evaluation.forms import Dequantized, Fixed
from tiered.certify.evaluation.values import CheckedTensor, Unproved

X = free("x", 2, 3)
UINT8 = int(onnx.TensorProto.UINT8)


def test_operands_are_there_or_absent() -> None:
    node = call("Clip", X, None, known(1.0, np.float32))
    assert [node.has(at) for at in range(4)] == [True, False, True, False]
    assert node.operand(0) is X
    for at in (1, 3):
        with pytest.raises(Unproved, match=f"^Clip lacks operand {at}$"):
            node.operand(at)
    assert (node.op, node.opset, node.signed_zeros, node.axioms) == ("Clip", 21, True, set())


def test_attributes_have_values_and_defaults() -> None:
    node = call("Any", X, mode="näïve", axes=[1, 2], axis=-1, alpha=0.5)
    assert node.attributes == {"mode": "näïve", "axes": [1, 2], "axis": -1, "alpha": 0.5}
    assert node.get("axis", 3) == -1
    assert node.get("other", 3) == 3
    assert node.get("other") is None


def test_a_string_that_is_no_text_is_kept() -> None:
    node = call("Any", X)
    node.node.attribute.add(name="mode", type=onnx.AttributeProto.STRING, s=b"\xff")
    assert node.get("mode").encode("utf-8", "surrogateescape") == b"\xff"


def test_a_parameter_of_a_function_is_not_known() -> None:
    node = call("Any", X)
    node.node.attribute.add(name="axis", type=onnx.AttributeProto.INT, ref_attr_name="outer")
    with pytest.raises(Unproved, match="attribute axis is a parameter of a function"):
        node.get("axis")


def test_integers_are_an_attribute_or_an_operand() -> None:
    assert call("Any", X, axes=[1, 2]).integers("axes") == [1, 2]
    assert call("Any", X, axes=3).integers("axes", 1) == [3]
    assert call("Any", X, known([4, 5])).integers("axes", 1) == [4, 5]
    assert call("Any", X, known([4]), axes=[1]).integers("axes", 1) == [1]
    assert call("Any", X, known([4])).integers("axes") is None
    assert call("Any", X, None).integers("axes", 1) is None
    assert call("Any", X).integers("axes", 1) is None
    with pytest.raises(Unproved, match="axes of Any is not known"):
        call("Any", X, free("axes", 1, dtype=INT64)).integers("axes", 1)


def test_constants_have_numbers_and_terms() -> None:
    made = call("Any", X).constant(np.array([1, 2], np.float32), FLOAT, exact=INT64)
    assert made.known is not None
    assert made.known.tolist() == [1, 2]
    assert (made.dtype, made.shape, made.exact) == (FLOAT, (2,), INT64)
    assert (made.terms == constants(np.array([1, 2], np.float32))).all()


def test_a_made_tensor_has_terms_when_they_are_asked_for() -> None:
    made = call("Any", X).made(FLOAT, (3, 2), lambda: X.terms.T, exact=INT64)
    assert (made.dtype, made.shape, made.exact, made.known) == (FLOAT, (3, 2), INT64, None)
    assert (made.terms == X.terms.T).all()


def test_numbers_and_terms_move_alike() -> None:
    node = call("Any", X)
    x = CheckedTensor(FLOAT, (2, 3), lambda: X.terms, exact=INT64)
    moved = node.moved(x, np.transpose, (3, 2))
    assert (moved.dtype, moved.shape, moved.exact, moved.known) == (FLOAT, (3, 2), INT64, None)
    assert (moved.terms == X.terms.T).all()
    numbers = CheckedTensor(FLOAT, (2,), lambda: X.terms, np.array([1, 2], np.float32), exact=INT64)
    turned = node.moved(numbers, lambda a: a[::-1], (2,))
    assert turned.known is not None
    assert (turned.known.tolist(), turned.exact) == ([2, 1], INT64)


def test_forms_of_single_elements_move_with_them() -> None:
    node, integers = call("Any", X), free("integers", 2, 3, dtype=UINT8)
    held = Dequantized(integers, np.array([0.5], np.float32), np.array([3], np.uint8), 1)
    for form in (held, Fixed(frozenset(("Abs",)))):
        x = CheckedTensor(FLOAT, (2, 3), lambda: X.terms)
        x.form = form
        moved = node.moved(x, np.transpose, (3, 2)).form
        if form is not held:
            assert moved is form
            continue
        assert isinstance(moved, Dequantized)
        assert (moved.integers.terms == integers.terms.T).all()
        assert [moved.scale.item(), moved.zero.item()] == [0.5, 3]
        assert moved.integers.dtype == UINT8
    x = CheckedTensor(FLOAT, (2, 3), lambda: X.terms)
    x.form = Dequantized(integers, np.array([0.5, 1], np.float32), np.array([3, 3], np.uint8), 0)
    assert node.moved(x, np.transpose, (3, 2)).form is None


@pytest.mark.parametrize(
    ("axis", "rank", "expected"), [(0, 3, 0), (2, 3, 2), (-1, 3, 2), (-3, 3, 0), (0, 0, 0)]
)
def test_axes_are_counted_from_the_front(axis: int, rank: int, expected: int) -> None:
    assert axis_of(axis, rank) == expected


@pytest.mark.parametrize(("axis", "rank"), [(3, 3), (-4, 3), (1, 0), (-1, 0)])
def test_an_axis_that_is_not_there_is_refused(axis: int, rank: int) -> None:
    with pytest.raises(Unproved, match=f"^axis {axis} of a tensor of rank {rank}$"):
        axis_of(axis, rank)
