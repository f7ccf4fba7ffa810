"""Every mutant of a folder's modules, tried by the folder's tests in forks: `--every`.

The modules are imported once with all their mutants (`schemata`). The tests run once to see which
of them reach an expression that a mutant would give another value; each mutant is then tried by
these alone. Those that are evaluated at import are left to the trials of random mutants.
"""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import pytest

from tests.mutants.schemata import Number, Schemata, Switch
from tests.mutants.sites import ROOT, Mutant

MOST_TESTS: Final = 25
"""How many tests a mutant is tried by: the fastest that tell it."""
CPU_SECONDS: Final = 8
"""Processor time that they may take."""

T = TypeVar("T")


class Folder(NamedTuple):
    """The mutants of the modules of a folder.

    Attributes:
        mutants: all of them, by number.
        survivors: those that its tests do not notice.
    """

    mutants: Mapping[Number, Mutant]
    survivors: Sequence[Number]


def folders(under: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the modules of each folder, and the files of the nearest tests.

    Args:
        under: a folder of the package, or one module.
    """
    top = ROOT / under
    by_folder: dict[Path, list[str]] = {}
    for path in [top] if top.is_file() else sorted(top.rglob("*.py")):
        by_folder.setdefault(path.parent, []).append(path.relative_to(ROOT).as_posix())
    for folder, modules in by_folder.items():
        tests = ROOT / "tests" / folder.relative_to(ROOT / "tiered")
        while not list(tests.glob("test_*.py")):
            tests = tests.parent
        yield modules, [str(path) for path in sorted(tests.glob("test_*.py"))]


def tried(modules: Sequence[str], tests: Sequence[str]) -> Folder:
    """Try all mutants of modules by files of tests.

    Raises:
        RuntimeError: the tests do not run without any change.
    """
    switch = Switch()
    schemata = Schemata(modules, switch)

    def trials() -> list[Number]:
        schemata.install()
        plugin = _Trials(switch, sorted(schemata.mutants))
        pytest.main(["-q", "-p", "no:cacheprovider", *tests], plugins=[plugin])
        return plugin.survivors

    survivors = in_fork(trials) if schemata.mutants else []
    if survivors is None:
        raise RuntimeError(f"the tests do not run: {' '.join(tests)}")
    return Folder(schemata.mutants, survivors)


def in_fork(function: Callable[[], T]) -> T | None:
    """Return what a function returns in a silent fork; None if that is ended by a signal."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        code = 1
        try:
            data = pickle.dumps(function())
            with open(sender, "wb") as pipe:
                pipe.write(data)
            code = 0
        finally:
            os._exit(code)
    os.close(sender)
    with open(receiver, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None


def limit(seconds: int) -> None:
    """Let this process end after so much processor time, or five times as much time."""
    import resource  # not on Windows

    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + seconds, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(5 * seconds)


class _Trials:
    def __init__(self, switch: Switch, mutants: list[Number]) -> None:
        self.survivors: list[Number] = []
        self._switch = switch
        self._mutants = mutants
        self._failed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed += report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = session.items
        telling = in_fork(lambda: self._telling(items))
        assert telling is not None
        for mutant in self._mutants:
            places = telling.get(mutant, [])[:MOST_TESTS]
            if not places or in_fork(partial(self._passes, mutant, items, places)):
                self.survivors.append(mutant)
        return True

    def _telling(self, items: Sequence[pytest.Item]) -> dict[Number, list[int]]:
        """Return the tests that give the expression of a mutant another value, fastest first."""
        found: defaultdict[Number, set[int]] = defaultdict(set)
        taken: dict[int, float] = {}
        for at, item in enumerate(items):
            # A test may fail by what an expression of a mutant changes where it is compared.
            for self._switch.compares in (True, False):
                told = self._switch.told = set[Number]()
                began, before = time.process_time(), self._failed
                _run(item)
                self._switch.told = None
                taken[at] = time.process_time() - began
                if self._failed == before:
                    if taken[at] < CPU_SECONDS:
                        for number in told:
                            found[number].add(at)
                    break
        return {number: sorted(places, key=taken.__getitem__) for number, places in found.items()}

    def _passes(self, mutant: Number, items: Sequence[pytest.Item], places: list[int]) -> bool:
        limit(CPU_SECONDS)
        self._switch.on = mutant
        for at in places:
            _run(items[at])
            if self._failed:
                return False
        return True


def _run(item: pytest.Item) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
