"""The limits of the worker process: memory on each system, time, and who ends first."""

import faulthandler
import io
import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from tiered.runtime.worker import limits
from tiered.runtime.worker.limits import (
    LEAST,
    OUT_OF_MEMORY,
    MemoryLimit,
    die_after,
    end_before_parent,
    load_libraries,
    physical_memory,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")
MIB = 2**20


def files(monkeypatch: pytest.MonkeyPatch, held: dict[str, str]) -> dict[str, io.StringIO]:
    """Let files of the system have contents, by the end of their path; return what was opened."""
    opened: dict[str, io.StringIO] = {}

    class Kept(io.StringIO):
        def close(self) -> None:
            pass

    def fake(path: str, mode: str = "r") -> io.StringIO:
        name = next((name for name in held if path.endswith(name)), None)
        if name is None:
            raise FileNotFoundError(path)
        opened[path] = made = Kept("" if mode == "w" else held[name])
        return made

    monkeypatch.setattr(limits, "open", fake, raising=False)
    return opened


# --- what there is --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "group", "expected"),
    [([], "max\n", 4096 * 100), ([], "1000\n", 1000), ([300], "1000\n", 300),
     ([10**9], "10000000000\n", 4096 * 100), ([], None, 4096 * 100)],
)  # fmt: skip
def test_the_memory_is_the_least_of_machine_group_and_process(
    monkeypatch: pytest.MonkeyPatch, limit: list[int], group: str | None, expected: int
) -> None:
    total = SimpleNamespace(total=4096 * 100)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: total)
    monkeypatch.setattr(limits, "_limit_of_data", lambda: list(limit))
    files(monkeypatch, {} if group is None else {"memory.max": group})
    assert physical_memory() == expected


@linux
def test_the_limit_of_a_process_counts_if_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    for found, expected in (((123, 456), [123]), ((resource.RLIM_INFINITY, 456), [])):
        monkeypatch.setattr(resource, "getrlimit", lambda _, found=found: found)
        assert limits._limit_of_data() == expected
    monkeypatch.setattr(sys, "platform", "darwin")
    assert limits._limit_of_data() == []


# --- time -----------------------------------------------------------------------------------------


def test_a_request_ends_the_process_some_seconds_after_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[Any] = []
    monkeypatch.setattr(
        faulthandler, "dump_traceback_later", lambda after, **held: said.append((after, held))
    )
    monkeypatch.setattr(
        faulthandler, "cancel_dump_traceback_later", lambda: said.append("cancelled")
    )
    die_after(2.5)
    die_after(None)
    assert said == [(12.5, {"exit": True, "file": 2}), "cancelled"]


# --- the order in which processes end -------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "resident", "pages", "expected"),
    [(0, 0, 1000, 50), (0, 100, 1000, 150), (-500, 100, 1000, -350), (980, 0, 1000, 1000),
     (0, 1, 3000, 50), (0, 3, 3000, 51)],
)  # fmt: skip
def test_the_process_gets_the_score_of_its_parent_and_a_margin(
    monkeypatch: pytest.MonkeyPatch, score: int, resident: int, pages: int, expected: int
) -> None:
    parent = f"/proc/{os.getppid()}"
    held = {"oom_score_adj": f"{score}\n", "statm": f"9999 {resident} 5 1 0 1 0\n"}
    opened = files(monkeypatch, held)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": pages}.__getitem__, raising=False)
    end_before_parent()
    assert set(opened) == {
        f"{parent}/oom_score_adj", f"{parent}/statm", "/proc/self/oom_score_adj"
    }  # fmt: skip
    assert opened["/proc/self/oom_score_adj"].getvalue() == str(expected)


def test_where_there_is_no_score_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert files(monkeypatch, {}) == {}
    end_before_parent()
    opened = files(monkeypatch, {"oom_score_adj": "no number"})
    end_before_parent()
    assert list(opened) == [f"/proc/{os.getppid()}/oom_score_adj"]


# --- memory ---------------------------------------------------------------------------------------


class Limited:
    """The limits of the process, as a test gives and finds them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, hard: int) -> None:
        import resource

        self.set: list[tuple[int, int]] = []
        monkeypatch.setattr(resource, "getrlimit", lambda _: (0, hard))
        monkeypatch.setattr(resource, "setrlimit", lambda _, pair: self.set.append(pair))
        monkeypatch.setattr(limits, "_allocated", lambda: 100)


@linux
def test_linux_refuses_what_is_beyond_the_limit_from_now_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import resource

    none = resource.RLIM_INFINITY
    found = Limited(monkeypatch, none)
    limit = MemoryLimit()
    for nbytes in (50, 50, None, None, 70):
        limit.set(nbytes)
    assert found.set == [(150, none), (none, none), (170, none)]


@linux
def test_no_limit_is_above_the_hard_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Limited(monkeypatch, 160)
    limit = MemoryLimit()
    for nbytes in (50, 70, None):
        limit.set(nbytes)
    assert found.set == [(150, 160), (160, 160), (160, 160)]


def test_elsewhere_one_thread_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(limits, "_allocated", lambda: 100)
    watched: list[MemoryLimit] = []

    def watch(limit: MemoryLimit) -> None:
        watched.append(limit)

    monkeypatch.setattr(MemoryLimit, "watch", watch)
    limit = MemoryLimit()
    limit.set(None)
    assert watched == []
    for nbytes in (50, 60, None):
        limit.set(nbytes)
    assert limit._watcher is not None
    limit._watcher.join()
    assert watched == [limit]
    assert limit._watcher.daemon


def test_the_watcher_ends_the_process_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter([100, 150, 151])
    slept: list[float] = []
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(limits, "_allocated", lambda: next(taken))
    monkeypatch.setattr(time, "sleep", slept.append)

    def ended(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", ended)
    limit = MemoryLimit()
    limit._most = 150
    with pytest.raises(SystemExit) as found:
        limit.watch()
    assert found.value.code == OUT_OF_MEMORY == 77
    assert slept == [0.05, 0.05]


def test_without_a_kernel_that_refuses_the_process_ends_itself() -> None:
    code = (
        "import numpy, re, sys, time\n"
        "from tiered.runtime.worker import limits\n"
        "status = lambda: open('/proc/self/status').read()\n"
        "limits._allocated = lambda: int(re.search(r'VmRSS:\\s+(\\d+)', status())[1]) * 1024\n"
        "sys.platform = 'win32'\n"
        "limit = limits.MemoryLimit()\n"
        "limit.set(50 * 2**20)\n"
        "kept = numpy.ones(100 * 2**20, numpy.uint8)\n"
        "time.sleep(600)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=300)
    assert done.returncode == OUT_OF_MEMORY


@pytest.mark.parametrize(
    "figures",
    [{"rss": 5, "data": 12}, {"rss": 5, "pagefile": 12}, {"rss": 12}],
    ids=["linux", "windows", "macos"],
)
def test_what_is_allocated_is_what_the_system_limits(
    monkeypatch: pytest.MonkeyPatch, figures: dict[str, int]
) -> None:
    process = SimpleNamespace(memory_info=lambda: SimpleNamespace(**figures))
    monkeypatch.setattr(psutil, "Process", lambda: process)
    assert limits._allocated() == 12


@linux
def test_what_is_allocated_grows_with_an_array() -> None:
    before = limits._allocated()
    kept = np.ones(64 * MIB, np.uint8)  # malloc maps this much anew
    assert limits._allocated() >= before + kept.nbytes


def test_libraries_can_be_loaded_twice() -> None:
    load_libraries()
    load_libraries()
    assert LEAST == 4_000_000


class _Ended(Exception):
    pass


@pytest.mark.parametrize(
    ("most", "allocated", "looks"),
    [(100, [0, 100, 101], 3), (100, [101], 1), (0, [1], 1), (None, [5, 5, 5, 5], None)],
)
def test_a_watcher_ends_the_process_above_the_limit(
    monkeypatch: pytest.MonkeyPatch, most: int | None, allocated: list[int], looks: int | None
) -> None:
    limit, slept = MemoryLimit(), list[float]()

    def sleep(seconds: float) -> None:
        if len(slept) == len(allocated):
            raise TimeoutError
        slept.append(seconds)

    def end(status: int) -> None:
        assert status == OUT_OF_MEMORY
        raise _Ended

    monkeypatch.setattr(limits, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(limits, "os", SimpleNamespace(_exit=end))
    monkeypatch.setattr(limits, "_allocated", lambda: allocated[len(slept) - 1])
    limit._most = most
    with pytest.raises(TimeoutError if looks is None else _Ended):
        limit.watch()
    assert len(slept) == (len(allocated) if looks is None else looks)
