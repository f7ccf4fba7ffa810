"""Valid dims in options: a size, or the name of a dim that stays dynamic."""

from __future__ import annotations

import re
from typing import Final

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
