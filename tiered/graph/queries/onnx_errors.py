"""The text of errors of onnx: the first cause, without all that follows from it."""

from __future__ import annotations

import re
from typing import Final

_MOST: Final = 400
"""The most characters of a cause; names of nodes and values may be long."""

_NEXT: Final = re.compile(r"\n(?=\(op_type:|\[\w+Error\])")
"""Where the next cause begins."""


def first_cause(error: BaseException) -> str:
    """Return the first cause in an error of onnx in one line, and how many more there are."""
    text = str(error).strip()
    if not text:
        return type(error).__name__
    causes = _NEXT.split(text)
    first = " ".join(causes[0].split())
    if len(first) > _MOST:
        first = f"{first[: _MOST // 2]} ... {first[-_MOST // 2 :]}"
    return f"{first} (and {len(causes) - 1:,} more)" if len(causes) > 1 else first
