"""Invalidation of known elements when an edit changes what they were computed from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tiered.graph.core.types import TensorType
from tiered.graph.core.value import ELEMENT_DTYPES, NOT_INFERRED, Elements, NotInferred

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value


def forget_elements(value: Value) -> None:
    """Drop the elements of a value with a refined type, and those computed from it."""
    _forget([value], vague=True)
    forget_elements_below(value)


def forget_elements_below(value: Value) -> None:
    """Drop the elements that were computed from a value that is better known now."""
    for reader in value._users.values():
        _forget(reader._outputs)


def invalidate_partial_elements(value: Value) -> None:
    """Drop the elements that were computed from a value with unknown elements."""
    elements = value._elements
    if not isinstance(elements, NotInferred) and not _are_numbers(elements):
        forget_elements_below(value)


def forget_elements_of(node: Node) -> None:
    """Drop the elements of a node's outputs and of the values below: an input changed."""
    _forget(node._outputs)


def invalidate_elements(node: Node, before: Value | None, after: Value | None) -> None:
    """Drop partially known outputs when an input changes; fully known ones stay."""
    if before is None or after is None or not _are_equally_known(before, after):
        _forget(node._outputs, vague=True)


def _are_equally_known(before: Value, after: Value) -> bool:
    one, other = before._elements, after._elements
    if isinstance(one, NotInferred):
        return before._type is after._type or before._type == after._type
    if _are_numbers(one):
        return True
    if before._type != after._type:
        return False
    if one is None or isinstance(other, NotInferred) or other is None:
        return one is None and other is None
    return one.shape == other.shape and one.ravel().tolist() == other.ravel().tolist()


def _forget(outputs: Iterable[Value | None], *, vague: bool = False) -> None:
    pending = [value for value in outputs if value is not None]
    while pending:
        value = pending.pop()
        elements = value._elements
        if isinstance(elements, NotInferred) or (vague and _are_numbers(elements)):
            continue
        value._elements = NOT_INFERRED
        if elements is not None or _may_have_elements(value):
            for reader in value._users.values():
                pending += [output for output in reader._outputs if output is not None]


def _are_numbers(elements: Elements | None) -> bool:
    return elements is not None and all(
        isinstance(element, int) for element in elements.ravel().tolist()
    )


def _may_have_elements(value: Value) -> bool:
    kind = value._type
    return not isinstance(kind, TensorType) or kind.dtype in ELEMENT_DTYPES
