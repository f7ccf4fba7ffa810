"""Hold the wrong passes against whole models.

`python -m tests.extensions.debug.acceptance --models DIR`.

Each is tried on the models, the smallest first, until it does harm on one. There it must be caught,
blamed, taken back exactly, and shown again by its bundle. On every model the right passes must not
be blamed. The result is a table on stdout; the exit code is 1 if anything is not as it must be.
"""

import argparse
import copy
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.extensions.debug.wrong_passes import WRONG, Wrong
from tiered import Model, Pass, PassContext, PassInfo, Sequential
from tiered.extensions.debug import (
    Blame,
    OutputOracle,
    Subject,
    bisect,
    load_bundle,
    replay,
    reproduce,
)
from tiered.runtime import feasible_inputs, shared_worker
from tiered.support.errors import TieredError, VerificationError
from tiered.verify import Verify


class Types:
    """An instrument that fails a pass after which a type contradicts the operands it comes from."""

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        try:
            model.check_view(types=True)
        except AssertionError as error:
            raise VerificationError(str(error)) from error


def is_taken_back(pass_: Pass, view: Model, inputs: Sequence[Mapping[str, Any]] = ()) -> bool:
    """Tell whether a pass fails verification, and leaves the model exactly as it was."""
    before = _content(view)
    try:
        with PassContext.isolated(instruments=[Types(), Verify(inputs=inputs)]):
            pass_(view)
    except TieredError:
        view.check_view()
        return _content(view) == before
    return False


def _content(model: Model) -> bytes:
    return bytes(model.to_proto().SerializeToString(deterministic=True))


@dataclass(frozen=True)
class Row:
    """What came of one wrong pass on one model."""

    name: str
    model: str
    rewrites: int
    blamed: str
    runs: int
    seconds: float
    part: str
    faults: tuple[str, ...]

    def __str__(self) -> str:
        cells = (
            f"`{self.name}`",
            self.model,
            self.rewrites,
            self.blamed,
            self.runs,
            f"{self.seconds:.1f}",
            self.part,
            ", ".join(self.faults) or "all as it must be",
        )
        return f"| {' | '.join(map(str, cells))} |"


def hold(case: Wrong, path: Path, oracle: OutputOracle) -> Row | None:
    """Return what came of a wrong pass on a model; None if it does no harm there."""
    started = time.perf_counter()
    passes = Sequential(["eliminate_identity", case.pass_, "eliminate_deadend"])
    subject = Subject(path, passes)
    blame = bisect(path, passes=passes, oracle=oracle)
    if blame is None:
        return None
    seconds = time.perf_counter() - started
    faults = []
    if blame.pass_name != case.name:
        faults.append(f"{blame.pass_name} is blamed")
    with tempfile.TemporaryDirectory() as folder:
        reproduce(subject, blame, oracle.sample.feeds).save(folder)
        bundle = load_bundle(folder)
        if not replay(bundle, case.pass_).fails:
            faults.append("the bundle does not show it")
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    if not is_taken_back(case.pass_, Model.load(path), [oracle.sample.feeds]):
        faults.append("not taken back")
    nodes = bundle.failure.nodes
    part = f"{nodes[0]} of {nodes[1]} nodes, {size / 1024:,.0f} KiB"
    blamed = f"#{blame.number} {blame.anchor}".strip()
    return Row(
        case.name, path.name, blame.rewrites, blamed, blame.runs, seconds, part, tuple(faults)
    )


def rows(paths: list[Path], cases: list[Wrong]) -> Iterator[Row]:
    """Yield a row for each wrong pass that does harm on a model."""
    missing = list(cases)
    for path in paths:
        try:
            oracle = OutputOracle(path)
        except TieredError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        for case in list(missing):
            if not _has_operator(path, case):
                continue
            row = hold(case, path, copy.copy(oracle))
            if row is not None:
                missing.remove(case)
                yield row
    for case in missing:
        print(f"{case.name} does no harm on any of the models", file=sys.stderr)


def _has_operator(path: Path, case: Wrong) -> bool:
    """Tell whether a pass changes anything at all in a model."""
    view = Model.load(path)
    mark = view.mark()
    try:
        case.pass_.apply(view, PassContext.isolated())
    except TieredError:
        return True
    return view.changed_since(mark)


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="names of wrong passes")
    parser.add_argument("--seeds", type=int, default=10, help="of inputs for the right passes")
    parser.add_argument("--levels", type=int, nargs="*", default=range(5))
    given = parser.parse_args()
    paths = sorted(given.models.glob("*.onnx"), key=lambda path: (path.stat().st_size, path.name))
    cases = [case for case in WRONG if not given.only or case.name in given.only]
    print("| pass | model | rewrites | blamed | runs | seconds | bundle | |")
    print("|---|---|---|---|---|---|---|---|")
    bad = 0
    for row in rows(paths, cases):
        print(row, flush=True)
        bad += bool(row.faults)
    for path in paths if not given.only or not cases else ():
        bad += sum(1 for _ in _false_alarms(path, given.levels, given.seeds))
    return 1 if bad else 0


def _false_alarms(path: Path, levels: list[int], seeds: int) -> Iterator[Blame]:
    """Yield and print what is blamed of the default pipeline, which is right."""
    try:
        feeds = [
            feasible_inputs(path, session=session, seed=seed, binding=seed % 2).feeds
            for session in (shared_worker().open(path),)
            for seed in range(seeds)
        ]
        oracle = OutputOracle(path, feeds)
    except TieredError as error:
        print(f"{path.name}: {error}", file=sys.stderr)
        return
    for level in levels:
        started = time.perf_counter()
        blame = bisect(path, oracle=copy.copy(oracle), opt_level=level)
        said = "a false alarm" if blame else "nothing blamed"
        seconds = time.perf_counter() - started
        print(f"{path.name} -O{level}, {seeds} seeds: {said} ({seconds:.0f} s)", flush=True)
        if blame is not None:
            print(blame, flush=True)
            yield blame


if __name__ == "__main__":
    sys.exit(main())
