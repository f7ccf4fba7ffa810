"""What bounds the worker process: memory and, when its parent is gone, time."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import time
from typing import Final

OUT_OF_MEMORY = 77
"""The exit code of a process that took more than it was allowed."""
_GRACE = 10.0  # seconds that the parent has to end an overdue request by itself
_POLL = 0.05  # seconds
_MARGIN = 50  # thousandths of the machine's memory that the parent may grow during a request


def physical_memory() -> int:
    """Return the bytes of memory that this process could have at most."""
    import psutil

    found = [*_limit_of_data(), psutil.virtual_memory().total]
    with contextlib.suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max") as file:
        found.append(int(file.read()))
    return min(found)


def _limit_of_data() -> list[int]:
    """Return the limit of this process, if it has one."""
    if sys.platform != "linux":
        return []
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return [] if soft == resource.RLIM_INFINITY else [soft]


def die_after(seconds: float | None) -> None:
    """End this process after so long, unless called again before; None: never.

    The parent ends what is overdue. This is for a request that outlives its parent: a thread of
    the interpreter's own, which needs no Python code to run.
    """
    import faulthandler  # only a worker needs it

    if seconds is None:
        faulthandler.cancel_dump_traceback_later()
    else:
        faulthandler.dump_traceback_later(seconds + _GRACE, exit=True, file=2)


def end_before_parent() -> None:
    """Ask Linux to end this process before its parent, should memory run out.

    The process gets the score of its parent and a margin, and not the highest score: else Linux
    would end it first whatever its size, while another process takes the memory.
    """
    parent = f"/proc/{os.getppid()}"
    with contextlib.suppress(OSError, ValueError):
        with open(f"{parent}/oom_score_adj") as file:
            score = int(file.read())
        with open(f"{parent}/statm") as file:
            resident = int(file.read().split()[1])
        score += 1000 * resident // os.sysconf("SC_PHYS_PAGES")
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(min(1000, score + _MARGIN)))


class MemoryLimit:
    """A limit of the bytes that this process may allocate from now on.

    On Linux the kernel refuses more, which is an error like any other. Elsewhere a thread looks
    what there is, and ends the process if it is too much.
    """

    def __init__(self) -> None:
        self._base = _allocated()
        self._most: int | None = None
        self._watcher: threading.Thread | None = None

    def set(self, nbytes: int | None) -> None:
        """Allow `nbytes` bytes; None sets no limit."""
        most = None if nbytes is None else self._base + nbytes
        if most == self._most:
            return
        self._most = most
        if sys.platform == "linux":
            import resource

            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            soft = resource.RLIM_INFINITY if most is None else most
            if hard != resource.RLIM_INFINITY:
                soft = hard if most is None else min(most, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        elif self._watcher is None:
            self._watcher = threading.Thread(target=self.watch, daemon=True)
            self._watcher.start()

    def watch(self) -> None:
        """End the process once it exceeds the limit."""
        while True:
            time.sleep(_POLL)
            if self._most is not None and _allocated() > self._most:
                os._exit(OUT_OF_MEMORY)


LEAST: Final = 4_000_000
"""The smallest limit: Python and the libraries need so much for small objects."""


def load_libraries() -> None:
    """Load native libraries, and let them allocate their thread-local data.

    Without memory for that they end the process, or spoil it.
    """
    for library in ("numpy", "onnx", "networkx", "ml_dtypes"):
        importlib.import_module(library)
    import ml_dtypes
    import numpy as np
    import onnx

    with np.errstate(all="ignore"):
        np.ones(2, ml_dtypes.bfloat16) + np.ones(2, ml_dtypes.bfloat16)
    x = onnx.helper.make_tensor_value_info("x", 1, [1])
    y = onnx.helper.make_tensor_value_info("y", 1, [1])
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y]))
    onnx.checker.check_model(model, full_check=True)
    with contextlib.suppress(onnx.checker.ValidationError):
        onnx.checker.check_model(onnx.ModelProto())


def _allocated() -> int:
    """Return the bytes that this process uses: what Linux limits, and what Windows has promised."""
    import psutil  # only a worker needs it

    found = psutil.Process().memory_info()
    return int(getattr(found, "data", 0) or getattr(found, "pagefile", 0) or found.rss)
