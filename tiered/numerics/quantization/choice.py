"""The choice among ways to quantise, by measurement on samples that were held back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from tiered.numerics.calibration.observers import METHODS, Method

Choice = Literal[Method, "auto"]
"""A method of the calibration, or the best of them."""


class Chosen(NamedTuple):
    """The method of the calibration that was taken.

    Attributes:
        method: it.
        ratios: the ratio of the outputs in dB with each method that was tried; empty if none was.
    """

    method: Method
    ratios: Mapping[Method, float]

    def record(self) -> dict[str, Any]:
        """Return the choice as JSON has it, ratios as `ratio_record` returns them."""
        ratios = {name: ratio_record(ratio) for name, ratio in self.ratios.items()}
        return {"method": self.method, "ratios": ratios}

    def __str__(self) -> str:
        tried = ", ".join(f"{name} {ratio:.1f} dB" for name, ratio in self.ratios.items())
        return f"ranges by {self.method}, the best on samples held back: {tried}"


def ratio_record(ratio: float | None) -> float | str | None:
    """Return a ratio as JSON has it: "inf" without noise, "-inf" without signal."""
    return ratio if ratio is None or math.isfinite(ratio) else str(ratio)


def candidates(choice: Choice) -> Sequence[Method]:
    """Return the methods to try."""
    others = (method for method in METHODS if method != "mse")
    return ("mse", *others) if choice == "auto" else (choice,)


def chosen(choice: Choice, ratio: Callable[[Method], float | None]) -> Chosen:
    """Return the method with the largest ratio; the first of equal ones.

    Args:
        choice: what the user asked for.
        ratio: returns that of the outputs with a method, in dB; None if no output is of floats. It
            is not called if there is only one method.
    """
    first, *others = candidates(choice)
    if not others:
        return Chosen(first, {})
    found = {method: ratio(method) for method in (first, *others)}
    known = {method: each for method, each in found.items() if each is not None}
    best = max(known, key=lambda method: known[method], default=first)
    return Chosen(best, known)
