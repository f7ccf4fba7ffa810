"""Change one token of the project at a time, and look whether a test notices: `make mutants`.

    python -m tests.mutants --count 200 --seed 0

Each mutant is made on a copy of the tree and tried by the test file that mirrors its module, then
by the nearest tests of its folder, as far as they come in `ALL_SECONDS`. A test that notices must
pass without the change, else it is left out of the trial. Of a mutant that they pass, the line is
printed: a test is missing or too far away, the line is not needed, or the change means the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import cyclopts
from rich.console import Console
from rich.table import Table

from tests.mutants import trial
from tests.mutants.every import folders, tried
from tests.mutants.nearest import tests_for
from tests.mutants.sites import ROOT, Mutant, chosen
from tests.mutants.trial import Outcome

NEAR: Final = ("file", "folder", "room", "none")


class Trials:
    """Mutants on a copy of the tree.

    Attributes:
        broken: the ids of tests that fail without any change.
    """

    def __init__(self, copy: Path, most: int, *, room: bool = False) -> None:
        self.broken: set[str] = set()
        self._copy = copy
        self._most = most
        self._room = room
        self._sound: set[str] = set()
        self._tried = 0

    def fate(self, mutant: Mutant) -> dict[str, str]:
        """Return which tests notice a mutant: how near they are, which one, and how."""
        for near, tests in tests_for(mutant, self._most, self._copy, room=self._room):
            outcome = self._noticed(mutant, tests)
            if outcome is not None:
                return {"near": near, "test": outcome.test, "how": outcome.word}
        return {"near": "none"}

    def _noticed(self, mutant: Mutant, tests: list[str]) -> Outcome | None:
        while True:
            left = [test for test in tests if test not in self.broken]
            outcome = self._outcome(mutant, left) if left else Outcome("passes")
            if outcome.word == "passes":
                return None
            blamed = [outcome.test] if outcome.test else left
            if self._pass_unchanged(blamed):
                return outcome
            print(f"fails without any change: {' '.join(blamed)}", flush=True)
            self.broken.update(blamed)

    def _outcome(self, mutant: Mutant, tests: list[str]) -> Outcome:
        """Return the outcome of tests while the mutant stands in the copy."""
        target = self._copy / mutant.path
        source, when = target.read_bytes(), target.stat().st_mtime
        target.write_bytes(mutant.applied_to(source))
        self._tried += 1
        try:
            # Bytecode is of a source with one time and size, so that each change needs its own.
            _set_time(target, when - 10 * self._tried)
            return trial.run(tests, self._copy, sorted(self.broken))
        finally:
            target.write_bytes(source)
            _set_time(target, when)

    def _pass_unchanged(self, tests: list[str]) -> bool:
        new = [test for test in tests if test not in self._sound]
        if new and trial.run(new, self._copy).word != "passes":
            return False
        self._sound.update(new)
        return True


def _set_time(path: Path, when: float) -> None:
    os.utime(path, (when, when))


def main(
    *,
    count: int = 200,
    seed: int = 0,
    under: str = "tiered",
    nearest: int = 6,
    room: bool = False,
    again: bool = False,
    every: bool = False,
    state: Path = Path("build/mutants.json"),
) -> None:
    """Try the mutants that the state file lacks, and print how many the nearest tests notice.

    Args:
        count: how many mutants.
        seed: of their choice.
        under: the folder or module that they are of.
        nearest: how many test files of the folder are tried, beside the module's own.
        room: go on with those of the folders above in its room, which are counted apart.
        again: try once more those that survived by the state file.
        every: try all that are not evaluated at import instead, in forks of one process for each
            folder, and print those that its tests do not notice, by line.
        state: a JSON file with the fate of each; a killed run goes on there.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    known: dict[str, Any] = json.loads(state.read_text("utf-8")) if state.exists() else {}
    state.parent.mkdir(parents=True, exist_ok=True)
    console = Console(highlight=False)
    if every:
        _try_every(under, console)
        return
    mutants = chosen(count, seed, under)
    fates: dict[str, dict[str, str]] = {}
    began = time.monotonic()
    trial.warm()
    with tempfile.TemporaryDirectory() as folder:
        copy = trial.copied(folder)
        trials = Trials(copy, nearest, room=room)
        for at, mutant in enumerate(mutants, 1):
            source = (copy / mutant.path).read_bytes()
            place = mutant.place(source)
            key = f"{place} #{hashlib.sha256(source).hexdigest()[:12]}"
            if key not in known or (again and known[key]["near"] in ("none", "room")):
                known[key] = trials.fate(mutant)
                state.write_text(json.dumps(known, indent=1), encoding="utf-8")
            fates[place] = known[key]
            near = known[key]["near"]
            word = {"none": "survives", "room": "survives its folder"}.get(near, near)
            console.print(
                f"{at}/{len(mutants)} {time.monotonic() - began:.0f} s {word}: {place}",
                markup=False,
                soft_wrap=True,
            )
    console.print(summary(fates))


def _try_every(under: str, console: Console) -> None:
    trial.warm()
    for modules, tests in folders(under):
        found = tried(modules, tests)
        for module in modules:
            mutants = [number for number in found.mutants if number[0] == module]
            left = [number for number in found.survivors if number[0] == module]
            source = (ROOT / module).read_bytes()
            for number in left:
                console.print(found.mutants[number].place(source), markup=False, soft_wrap=True)
            if mutants:
                console.print(f"{module}: {len(mutants) - len(left)} of {len(mutants)} are noticed")


def summary(fates: dict[str, dict[str, str]]) -> Table:
    """Return the table of how many mutants of each room the nearest tests notice."""
    table = Table("room", "mutants", *NEAR, "noticed")
    rooms: dict[str, Counter[str]] = {}
    for place, each in sorted(fates.items()):
        parts = Path(place.partition(":")[0]).parts
        room = "/".join(parts[1:3] if parts[1] == "extensions" else parts[1:2])
        rooms.setdefault(room, Counter())[each["near"]] += 1
    for room, found in (*rooms.items(), ("all", sum(rooms.values(), Counter[str]()))):
        noticed = found["file"] + found["folder"]
        share = f"{100 * noticed / found.total():.1f} %"
        table.add_row(room, *map(str, (found.total(), *(found[near] for near in NEAR))), share)
    return table


if __name__ == "__main__":
    app = cyclopts.App()
    app.default(main)
    app()
