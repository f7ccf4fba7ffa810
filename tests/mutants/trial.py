"""Tests that run in a process of their own on a copy of the tree, under limits.

Where the system can fork, this process imports the libraries once and each trial is a fork of it;
elsewhere each is a new process.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.mutants.sites import ROOT

_BUILT: Final = ("build", "dist")
"""What is made in the tree; what is hidden is not copied either."""

CPU_SECONDS: Final = 20
"""Processor time that a test may take, and the import of the test files."""
ALL_SECONDS: Final = 15
"""Processor time after which no further test begins: those that ran have passed."""
SILENT_SECONDS: Final = 300
"""Time in which a process must have begun or ended a test."""
MEMORY: Final = 8 << 30
"""Bytes of data that the process may have."""

_CAN_FORK: Final = "fork" in multiprocessing.get_all_start_methods()
_LIBRARIES: Final = (
    "google.protobuf.json_format", "hypothesis.strategies", "ml_dtypes", "networkx",
    "numpy", "onnx.backend.test", "onnx.numpy_helper", "onnx.parser", "onnx.reference",
    "onnx.reference.ops", "onnx.shape_inference", "onnx.version_converter", "onnxruntime",
    "rich.console", "rich.table", "cyclopts",
)  # fmt: skip


class Outcome(NamedTuple):
    """What became of the tests of a trial.

    Attributes:
        word: "passes", "fails", "hangs" (longer than a limit) or "crashes".
        test: the id of the test that it happened in, or "" while the files were imported.
    """

    word: str
    test: str = ""


def copied(folder: str) -> Path:
    """Copy the tree to a folder, and return it."""
    ignored = shutil.ignore_patterns("__pycache__")
    for source in sorted(ROOT.iterdir()):
        if source.name.startswith(".") or source.name in _BUILT:
            continue
        if source.is_dir():
            shutil.copytree(source, Path(folder) / source.name, ignore=ignored)
        else:
            shutil.copy(source, folder)
    return Path(folder)


def warm() -> None:
    """Import the libraries that nearly all tests need, for the forks; never the package."""
    for name in _LIBRARIES if _CAN_FORK else ():
        importlib.import_module(name)


def run(tests: Sequence[str], copy: Path, without: Sequence[str] = ()) -> Outcome:
    """Return the outcome of test files, or of tests by their ids: the first that fails ends it.

    Args:
        tests: in this order.
        copy: the tree that they are of.
        without: ids of tests that are left out.
    """
    get_context = multiprocessing.get_context
    context = get_context("fork") if _CAN_FORK else get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, list(tests), copy, list(without)))
    process.start()
    sender.close()
    try:
        return _followed(process, receiver)
    finally:
        _end(process)
        receiver.close()


def _followed(process: BaseProcess, receiver: Connection) -> Outcome:
    test = ""
    while receiver.poll(SILENT_SECONDS):
        try:
            word, name = receiver.recv()
        except (EOFError, ConnectionResetError):
            process.join(SILENT_SECONDS)
            is_slow = process.exitcode == -_OUT_OF_TIME
            return Outcome("hangs" if is_slow else "crashes", test)
        if word != "begins":
            return Outcome(word, name)
        test = name
    return Outcome("hangs", test)


_OUT_OF_TIME: Final = getattr(signal, "SIGXCPU", 0)
"""The signal by which a process ends at its limit of processor time, where there is one."""


def _end(process: BaseProcess) -> None:
    """End a process and all that it started."""
    if hasattr(os, "killpg") and process.pid is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def _child(sender: Connection, tests: list[str], copy: Path, without: list[str]) -> None:
    if hasattr(os, "setsid"):
        os.setsid()
    with _quiet():
        os.chdir(copy)
        os.environ["PYTHONPATH"] = str(copy)
        sys.path[:] = [str(copy), *(path for path in sys.path if path not in ("", str(ROOT)))]
        for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "tiered")]:
            del sys.modules[name]
        left_out = [word for test in without for word in ("--deselect", test)]
        options = ["-q", "-x", "-p", "no:cacheprovider", *left_out, *tests]
        code = pytest.main(options, plugins=[_Reporter(sender)])
        sender.send(("passes" if code in (0, 5) else "fails", ""))  # 5: there was no test


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with open(os.devnull, "r+b") as nothing:
        for stream in range(3):
            os.dup2(nothing.fileno(), stream)
        yield


class _Reporter:
    """Sends where the tests are, and gives each the same processor time."""

    def __init__(self, sender: Connection) -> None:
        self.sender = sender
        _limit_memory()
        _limit_time()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if _limit_time() > ALL_SECONDS:
            self.sender.send(("passes", ""))
        self.sender.send(("begins", nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.sender.send(("fails", report.nodeid))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.sender.send(("fails", report.nodeid))


def _limit_memory() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time() -> float:
    """Let the process end after `CPU_SECONDS` more of processor time; return what it has used."""
    used = time.process_time()
    if sys.platform != "win32":
        import resource

        soft = int(used) + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
    return used
