"""The values that checks and rewrites of rules get: those of tiered, with `const_value`."""

from __future__ import annotations

from typing import Any

from tiered.graph import Tensor, Value


class RuleValue:
    """A value of a match: all that a `Value` has, and `const_value` of onnx_ir.

    Two are equal when their values are the same one; so is a rule value to its value.
    """

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        return getattr(self.value, name)

    def __eq__(self, other: object) -> bool:
        return bare(other) is self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    @property
    def const_value(self) -> Tensor | None:
        """The tensor of a constant, whose `numpy()` is its array; None for other values."""
        return self.value.tensor


def bare(found: Any) -> Any:
    """Return what a rule got or returned with values in place of rule values."""
    if isinstance(found, RuleValue):
        return found.value
    if isinstance(found, tuple | list):
        return type(found)(map(bare, found))
    return found


def wrapped(bound: dict[str, Any]) -> dict[str, Any]:
    """Return what a match bound with rule values in place of values, one for each value."""
    made = {found: RuleValue(found) for found in bound.values() if isinstance(found, Value)}
    return {
        name: made[found] if isinstance(found, Value) else found for name, found in bound.items()
    }
