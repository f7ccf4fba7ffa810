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


def reset_peak() -> None:
    """Start to count the peak of this process again, where the system can."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak_since_reset() -> int | None:
    """Return the most bytes that this process held since `reset_peak`, None if unknown."""
    with contextlib.suppress(OSError), open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
