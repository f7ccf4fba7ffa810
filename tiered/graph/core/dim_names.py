"""Valid dims in options: a size, or the name of a dim that stays dynamic."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from typing import Final

from tiered.support.errors import UsageError, did_you_mean

_NAME: Final = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")
_NO_NAMES: Final = frozenset({"none", "null", "nan", "inf", "true", "false"})

EXPECTED: Final = "expected a size from 1 on, a name such as batch, or -1 to keep the dim"


def is_dim_name(text: str) -> bool:
    """Return whether a string can name a dim: a word that is neither a number nor a constant."""
    return _NAME.fullmatch(text) is not None and text.lower() not in _NO_NAMES


def is_dim(dim: object) -> bool:
    """Return whether a value is a valid dim; a negative size keeps the dim as it is."""
    if isinstance(dim, str):
        return is_dim_name(dim)
    return isinstance(dim, int) and not isinstance(dim, bool) and dim != 0


def check_named(wanted: Iterable[str], known: Collection[str], owner: str = "") -> None:
    """Check that the inputs of a model have dims of some names.

    Args:
        wanted: the names.
        known: those that the inputs have.
        owner: what begins the message: a pass and a colon.

    Raises:
        UsageError: no input has a dim of one of the names.
    """
    for name in wanted:
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "all of them have sizes or no names"
            hint = did_you_mean(name, known)
            raise UsageError(f"{owner}no input of the model has a dim {name!r}{hint}; {there}")


def check_sizes(dims: Mapping[str, object]) -> None:
    """Check that what dims are to have are sizes.

    Raises:
        UsageError: one is no integer, or negative.
    """
    for name, size in dims.items():
        if type(size) is bool or not isinstance(size, Integral) or size < 0:
            raise UsageError(f"the dim {name!r} is to be {size!r}; expected a size: 0 or more")
