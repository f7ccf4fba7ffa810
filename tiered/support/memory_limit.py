"""The memory that a run holds, and its limit: checked where memory is taken.

On Linux the figure leaves mapped files out; elsewhere it is the resident set. The limit and the
peak that is printed are of this figure. Native code does not survive a limit of the system in the
process that it is part of: only helper processes have one.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Final

from tiered.support.errors import MemoryLimitError

_COUNTED: Final = (b"RssAnon:", b"RssShmem:")
_POLL: Final = 0.01  # seconds


def held_by(pid: int | None = None) -> int:
    """Return the bytes that a process holds, this one without a number; 0 if it has ended."""
    if sys.platform != "linux":
        import psutil

        with contextlib.suppress(psutil.Error):
            return int(psutil.Process(pid).memory_info().rss)
        return 0
    total = 0
    with contextlib.suppress(OSError), open(f"/proc/{pid or 'self'}/status", "rb") as file:
        for line in file:
            if line.startswith(_COUNTED):
                total += int(line.split()[1]) * 1024
    return total


class _Meter:
    """Measures the process while a limit holds."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.base = self.peak = held_by()
        self._ended = threading.Event()

    def measure(self) -> int:
        held = held_by()
        self.peak = max(self.peak, held)
        return held

    def check(self, more: int) -> None:
        held = max(self.measure() + more, self.peak)
        if held > self.most:
            raise MemoryLimitError(
                f"the run needs {held / 1e6:,.1f} MB of memory, and --max-memory (memory.max) "
                f"allows {self.most / 1e6:,.1f} MB; without a model, tiered takes "
                f"{self.base / 1e6:,.1f} MB"
            )

    def watch(self) -> None:
        while not self._ended.wait(_POLL):
            self.measure()

    def end(self) -> None:
        self._ended.set()


_METERS: list[_Meter] = []
_PEAKS: list[int] = []
"""The peak of the last run with a limit."""


def check_memory(more: int = 0) -> None:
    """Check the limit of the run, if there is one.

    Args:
        more: the bytes that are about to be taken.

    Raises:
        MemoryLimitError: the run holds more, or would.
    """
    for meter in _METERS:
        meter.check(more)


@contextlib.contextmanager
def limited(nbytes: int | None) -> Iterator[None]:
    """Limit the bytes that this process may hold in the block, at its checks and at its end.

    Raises:
        MemoryLimitError: it holds more.
    """
    _PEAKS.clear()
    if nbytes is None:
        yield
        return
    meter = _Meter(nbytes)
    _METERS.append(meter)
    threading.Thread(target=meter.watch, daemon=True).start()
    try:
        meter.check(0)
        yield
        meter.check(0)
    finally:
        meter.end()
        _METERS.remove(meter)
        _PEAKS.append(meter.peak)


def limited_peak() -> int | None:
    """Return the most bytes that the last run held, if it had a limit."""
    return _PEAKS[-1] if _PEAKS else None
