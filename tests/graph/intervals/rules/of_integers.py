"""Intervals of small models whose inputs are integers between two limits."""

from collections.abc import Sequence

import pytest

from tests.small import named, parsed
from tiered import Interval, ranges

Limits = tuple[int, int]

_NAMES = "abcd"
_FLOAT = 1


def interval_of(
    nodes: str,
    *limits: Limits,
    dtype: int = _FLOAT,
    dims: str = "3",
    more: str = "",
    opset: int = 21,
) -> Interval:
    """Return the interval of y, which nodes compute of a, b, ...: numbers between these limits.

    Args:
        nodes: the text of the nodes.
        limits: the lowest and the highest integer, for each of a, b, ...
        dtype: that of a, b, ...
        dims: their dims.
        more: constants of the nodes, each followed by a comma.
    """
    inputs, constants, casts = [], [more] if more else [], []
    for name, (low, high) in zip(_NAMES, limits, strict=False):
        inputs.append(f"int32[{dims}] in_{name}")
        constants.append(f"int32 low_{name} = {{{low}}}, int32 high_{name} = {{{high}}},")
        casts.append(f"cut_{name} = Clip(in_{name}, low_{name}, high_{name})")
        casts.append(f"{name} = Cast<to = {dtype}>(cut_{name})")
    held = " ".join(constants).rstrip(",")
    text = f"({', '.join(inputs)}) => (int32 kept) <{held}> {{ {' '.join(casts)}  {nodes}  kept = Neg(in_a) }}"
    return interval_in(text, opset=opset)


def interval_in(text: str, *, opset: int = 21) -> Interval:
    """Return the interval of y in a model."""
    of = parsed(text, opset=opset)
    return of.analysis(ranges)[named(of, "y")]


def assert_bounds(found: Interval, expected: Sequence[float], *, error: float = 1e-4) -> None:
    """Assert that an interval has all of the expected one, which is without NaN, and no more."""
    low, high = expected
    assert not found.may_be_nan
    assert found.low <= low
    assert found.high >= high
    assert (found.low, found.high) == pytest.approx((low, high), rel=error, abs=error)
