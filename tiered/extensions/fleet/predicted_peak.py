"""The memory that a job is expected to take, predicted from the bytes of its model.

An upper estimate from 14 runs of exported models of 16 kB to 4 MB: beyond the memory of an idle
process, a job takes at most 24 MB and 15 times the bytes of its file, and 60 MB more with --verify,
as the runtime is a process of its own. Weights of larger files stay on disk and are read as they
are needed.
"""

from __future__ import annotations

from typing import Final

_LEAST: Final = 32 << 20
_SMALL: Final = 16 << 20
"""The bytes of a file that take `_PER_SMALL_BYTE` each; those beyond take `_PER_LARGE_BYTE`."""
_PER_SMALL_BYTE: Final = 16
_PER_LARGE_BYTE: Final = 2
_RUNTIME: Final = 64 << 20
_RUNTIME_PER_BYTE: Final = 4


def predicted_peak(nbytes: int, *, runs: bool) -> int:
    """Return the bytes that a job takes beyond an idle process.

    Args:
        nbytes: of the files of the model.
        runs: whether the command runs the model.
    """
    own = _LEAST + _PER_SMALL_BYTE * min(nbytes, _SMALL)
    own += _PER_LARGE_BYTE * max(0, nbytes - _SMALL)
    return own + (_RUNTIME + _RUNTIME_PER_BYTE * nbytes if runs else 0)
