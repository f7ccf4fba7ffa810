"""What is known of the elements of a value, and when that is forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tiered.graph.core.types import TensorType
from tiered.graph.core.value import ELEMENT_DTYPES, NOT_INFERRED, Elements, NotInferred

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value


def forget_elements(value: Value) -> None:
    """Forget the elements of a value whose type is known better now, and those computed from it."""
    _forget([value], vague=True)
    forget_elements_below(value)


def forget_elements_below(value: Value) -> None:
    """Forget the elements that were computed from a value of which more is known now."""
    for reader in value._users.values():
        _forget(reader._outputs)


def forget_guesses_below(value: Value) -> None:
    """Forget what was computed from a value while not all of its numbers were known."""
    elements = value._elements
    if not isinstance(elements, NotInferred) and not _are_numbers(elements):
        forget_elements_below(value)


def forget_elements_of(node: Node) -> None:
    """Forget the elements that a node and those below it gave: it reads something else now."""
    _forget(node._outputs)


def reconsider_elements_of(node: Node, before: Value | None, after: Value | None) -> None:
    """Forget those elements that may be known better as a node reads one value for another.

    What the node gives is still the same, so numbers stay: of them no more can be known.
    """
    if before is None or after is None or not _say_the_same(before, after):
        _forget(node._outputs, vague=True)


def _say_the_same(before: Value, after: Value) -> bool:
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
