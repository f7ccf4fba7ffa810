"""The memory that processes hold, as Linux reports it; mapped files do not count."""

from __future__ import annotations

import contextlib
import os

from tiered.support.memory_limit import held_by


def held_by_tree(pid: int) -> int:
    """Return the bytes that a process and all processes below it hold."""
    return held_by(pid) + sum(held_by_tree(child) for child in _children(pid))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found
