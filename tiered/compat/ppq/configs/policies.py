"""Policies of quantisation: which properties go together, and how halves are rounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, IntFlag
from typing import Any, Final

import numpy as np

from tiered.support.errors import UsageError

Array = np.ndarray[Any, Any]


class QuantizationProperty(IntFlag):
    """A property of a policy."""

    PER_TENSOR = 1
    PER_CHANNEL = 2
    LINEAR = 4
    EXPONENTIAL = 8
    SYMMETRICAL = 16
    ASYMMETRICAL = 32
    POWER_OF_2 = 64


_P = QuantizationProperty
_CHOICES: Final = (
    (_P.PER_TENSOR, _P.PER_CHANNEL),
    (_P.LINEAR, _P.EXPONENTIAL),
    (_P.SYMMETRICAL, _P.ASYMMETRICAL),
)
"""Of each pair a policy has exactly one."""


class QuantizationPolicy:
    """Properties that go together.

    A policy has one of PER_TENSOR and PER_CHANNEL, one of LINEAR and EXPONENTIAL, and one of
    SYMMETRICAL and ASYMMETRICAL; POWER_OF_2 goes with LINEAR only.

    Args:
        policy: the properties, joined by `|` or `+`.

    Raises:
        UsageError: they do not go together.
    """

    __slots__ = ("properties",)

    def __init__(self, policy: int) -> None:
        if not 0 <= policy < 2 * _P.POWER_OF_2:
            raise UsageError(f"{policy} has bits that are no property of a policy")
        self.properties = QuantizationProperty(policy)
        for one, other in _CHOICES:
            if self.has_property(one) == self.has_property(other):
                had = "both" if self.has_property(one) else "neither"
                raise UsageError(
                    f"a policy has one of {one.name} and {other.name}; this one has {had}"
                )
        if self.has_property(_P.POWER_OF_2) and self.has_property(_P.EXPONENTIAL):
            raise UsageError("POWER_OF_2 is about the scale of a LINEAR policy")

    def has_property(self, wanted: QuantizationProperty) -> bool:
        """Return whether the policy has a property."""
        return bool(self.properties & wanted)

    @property
    def is_symmetric(self) -> bool:
        """Whether the offset is 0."""
        return self.has_property(_P.SYMMETRICAL)

    @property
    def is_per_channel(self) -> bool:
        """Whether there is a scale for each index of an axis."""
        return self.has_property(_P.PER_CHANNEL)

    @property
    def is_power_of_2(self) -> bool:
        """Whether scales are powers of two."""
        return self.has_property(_P.POWER_OF_2)

    def to_dict(self) -> dict[str, bool]:
        """Return each property by its name, and whether the policy has it."""
        return {each.name: self.has_property(each) for each in QuantizationProperty if each.name}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantizationPolicy) and other.properties == self.properties

    def __hash__(self) -> int:
        return hash(self.properties)

    def __repr__(self) -> str:
        names = " + ".join(name for name, has in self.to_dict().items() if has)
        return f"QuantizationPolicy({names})"


class RoundingPolicy(Enum):
    """Which integer a number becomes; the first five differ for halves only."""

    ROUND_HALF_EVEN = 0
    ROUND_HALF_UP = 1
    ROUND_HALF_DOWN = 2
    ROUND_HALF_TOWARDS_ZERO = 3
    ROUND_HALF_FAR_FROM_ZERO = 4
    ROUND_HALF_FAR_FORM_ZERO = 4
    ROUND_UP = 6


def rounded(numbers: Array, rounding: RoundingPolicy) -> Array:
    """Return numbers rounded to integers, in their own dtype."""
    found: Array = _ROUND[rounding](numbers)
    return found


def _half_up(numbers: Array) -> Array:
    # x - floor(x) is exact, x + 0.5 is not.
    below = np.floor(numbers)
    found: Array = below + (numbers - below >= 0.5)
    return found


def _half_down(numbers: Array) -> Array:
    below = np.floor(numbers)
    found: Array = below + (numbers - below > 0.5)
    return found


_ROUND: Final[Mapping[RoundingPolicy, Callable[[Array], Array]]] = {
    RoundingPolicy.ROUND_HALF_EVEN: np.rint,
    RoundingPolicy.ROUND_HALF_UP: _half_up,
    RoundingPolicy.ROUND_HALF_DOWN: _half_down,
    RoundingPolicy.ROUND_HALF_TOWARDS_ZERO: lambda x: np.copysign(_half_down(np.abs(x)), x),
    RoundingPolicy.ROUND_HALF_FAR_FROM_ZERO: lambda x: np.copysign(_half_up(np.abs(x)), x),
    RoundingPolicy.ROUND_UP: np.ceil,
}
