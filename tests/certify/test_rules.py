"""The rules compute what the test cases of ONNX say, on numbers and on terms in their place."""

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

from tiered.certify.domains.bits import RULES, Bits
from tiered.certify.domains.terms import Array, constants
from tiered.certify.evaluation.call import constant
from tiered.certify.evaluation.evaluate import NameScope, ProofSetting
from tiered.certify.evaluation.values import CheckedTensor, Unproved, class_of
from tiered.certify.rules.moves import MOVES
from tiered.certify.rules.resizing import RESIZING

# Without their optional operands these compute no shape of data, or nothing that is moved.
NOT_MOVED = {"Dropout", "Shape", "Size"}


OTHERWISE = {
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
}
"""Sizes that are rounded down: onnxruntime aligns the corners of the rounded ones."""
_AXIS_BY_AXIS = {b"half_pixel", b"align_corners", b"asymmetric", b"half_pixel_symmetric"}


@cache
def cases() -> tuple[TestCase, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(case for case in collect_testcases(None) if _is_plain(case))


def _is_plain(case: TestCase) -> bool:
    if case.kind != "node" or case.model is None or len(case.model.graph.node) != 1:
        return False
    node = case.model.graph.node[0]
    return not node.domain and node.op_type in RULES and bool(case.data_sets)


def _model(case: TestCase) -> onnx.ModelProto:
    assert case.model is not None
    return case.model


def _terms(numbers: Array) -> Callable[[], Array]:
    return lambda: constants(numbers)


def _moves() -> Iterator[TestCase]:
    return (case for case in cases() if _is_move(_model(case).graph.node[0]))


def _is_move(node: onnx.NodeProto) -> bool:
    if node.op_type not in RESIZING:
        return node.op_type in MOVES
    held = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    is_own = held.get("coordinate_transformation_mode", b"half_pixel") in _AXIS_BY_AXIS
    is_nearest = held.get("mode", b"nearest") == b"nearest"
    return is_nearest and is_own and "keep_aspect_ratio_policy" not in held


def evaluated(
    case: TestCase, *, are_unknown: bool
) -> tuple[list[CheckedTensor | None], list[Array]]:
    """Return what the rule makes of the inputs of a case, and what is expected."""
    graph = _model(case).graph
    assert case.data_sets is not None
    inputs, expected = case.data_sets[0]
    opsets = {each.domain: each.version for each in _model(case).opset_import}
    scope = NameScope(ProofSetting(Bits(), RULES, opsets, {}, trusts_runtime=True))
    for place, (info, given) in enumerate(zip(graph.input, inputs, strict=True)):
        if not isinstance(given, np.ndarray):
            raise Unproved("no tensor")
        dtype = info.type.tensor_type.elem_type
        if are_unknown and place == 0 and class_of(dtype) == "float":
            scope.values[info.name] = CheckedTensor(dtype, given.shape, _terms(given))
        else:
            scope.values[info.name] = constant(Bits(), given, dtype)
    scope.run(graph.node)
    return [scope.find(info.name) for info in graph.output], list(expected)


@pytest.mark.parametrize("name", sorted((MOVES.keys() | RESIZING.keys()) - NOT_MOVED))
@pytest.mark.parametrize("are_unknown", [False, True])
def test_moves_move_as_onnx_says(name: str, are_unknown: bool) -> None:
    checked = 0
    for case in _moves():
        node = _model(case).graph.node[0]
        if node.op_type != name or any(each.name == "reduction" for each in node.attribute):
            continue
        try:
            results, expected = evaluated(case, are_unknown=are_unknown)
        except (Unproved, onnx.checker.ValidationError):
            continue
        for result, numbers in zip(results, expected, strict=True):
            assert result is not None
            if not hasattr(numbers, "dtype"):
                continue
            assert result.shape == numbers.shape, case.name
            assert np.array_equal(result.terms, constants(numbers)), case.name
            checked += 1
    assert checked or name in {"Identity", "Flatten", "Size"}, "no case of ONNX is covered"


def test_numbers_are_computed_as_onnx_says() -> None:
    """What is known stays known, and is what the case expects: bits, but for rounded functions."""
    wrong: list[str] = []
    count = 0
    for case in cases():
        try:
            results, expected = evaluated(case, are_unknown=False)
        except Unproved:
            continue
        for result, numbers in zip(results, expected, strict=True):
            if result is None or result.known is None or not hasattr(numbers, "dtype"):
                continue
            count += 1
            if not _is_near(result.known, numbers) and case.name not in OTHERWISE:
                wrong.append(case.name)
    assert wrong == []
    assert count > 300


def _is_near(found: Array, expected: Any) -> bool:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if found.dtype.kind != "f":
        return bool(np.array_equal(found, expected))
    return bool(np.allclose(found, expected, rtol=1e-3, atol=1e-5, equal_nan=True))
