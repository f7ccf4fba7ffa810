"""The command line of the suites: run them, show what failed, exit with 1 if anything did."""

import dataclasses
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from rich.console import Console
from rich.table import Table

from tests.conformance.backend import BackendTask, case_names, judge_case
from tests.conformance.judge import Failure, Outcome
from tests.conformance.models import ModelTask, digest_model, judge_model, model_paths
from tests.conformance.pool import Lost, run_tasks

HASH_SEEDS = (0, 1, 2, 3, 4)

# Seconds that a worker may be silent: longer than the slowest step of one task takes.
_MODEL_TIMEOUT = 300.0
_CASE_TIMEOUT = 60.0

_console = Console()
if not _console.is_terminal:
    _console.width = 160  # a log is as wide as it needs to be


@dataclasses.dataclass
class Suite:
    """What one suite found, by the name of the model or case."""

    name: str
    outcomes: dict[str, Outcome]


def main(
    *,
    models: Path = Path("examples/models"),
    suite: Literal["models", "backend", "all"] = "all",
    levels: str = "0,1,2,3,4",
    jobs: int = os.cpu_count() or 1,
    only: str = "*",
    json_out: Annotated[Path | None, cyclopts.Parameter(name="--json")] = None,
) -> None:
    """Judge tiered.optimize on whole models and on the ONNX backend cases.

    Args:
        models: folder of *.onnx files, each with its inputs described in a .json beside it or not.
        suite: which suite to run.
        levels: the optimisation levels, separated by commas.
        jobs: worker processes.
        only: glob over the names of models and cases (node/test_abs).
        json_out: file to write everything to.
    """
    chosen = tuple(int(level) for level in levels.split(","))
    suites = []
    if suite in ("models", "all"):
        suites.append(_models_suite(models, chosen, jobs, only))
    if suite in ("backend", "all"):
        suites.append(_backend_suite(chosen, jobs, only))
    for one in suites:
        _show(one, chosen)
    if json_out is not None:
        json_out.write_text(json.dumps([dataclasses.asdict(one) for one in suites], indent=1))
    failed = any(outcome.failures for one in suites for outcome in one.outcomes.values())
    sys.exit(1 if failed else 0)


def _models_suite(folder: Path, levels: tuple[int, ...], jobs: int, only: str) -> Suite:
    tasks = [ModelTask(path, levels) for path in model_paths(folder) if fnmatch(path.stem, only)]
    outcomes: dict[str, Outcome] = {}
    with _console.status("models") as status:
        for task, answer in run_tasks(judge_model, tasks, jobs=jobs, timeout=_MODEL_TIMEOUT):
            outcomes[task.path.stem] = _outcome(answer)
            status.update(f"models: {len(outcomes)} of {len(tasks)} judged")
        for seed in HASH_SEEDS[1:]:
            status.update(f"models: again in a process with PYTHONHASHSEED={seed}")
            work = run_tasks(digest_model, tasks, jobs=jobs, timeout=_MODEL_TIMEOUT, hash_seed=seed)
            for task, answer in work:
                name = task.path.stem
                outcomes[name] = _with_seed(outcomes[name], _outcome(answer), seed)
    return Suite("models", outcomes)


def _backend_suite(levels: tuple[int, ...], jobs: int, only: str) -> Suite:
    outcomes: dict[str, Outcome] = {}
    with _console.status("backend: loading the cases") as status:
        tasks = [BackendTask(name, levels) for name in case_names() if fnmatch(name, only)]
        for task, answer in run_tasks(judge_case, tasks, jobs=jobs, timeout=_CASE_TIMEOUT):
            outcomes[task.name] = _outcome(answer)
            status.update(f"backend: {len(outcomes)} of {len(tasks)} judged")
    return Suite("backend", outcomes)


def _outcome(answer: Outcome | Lost) -> Outcome:
    if isinstance(answer, Outcome):
        return answer
    return Outcome((Failure(-1, answer.kind, answer.detail),))


def _with_seed(outcome: Outcome, other: Outcome, seed: int) -> Outcome:
    """Add what the process with another hash seed did differently."""
    digests = outcome.digests or {}
    different = [
        Failure(level, "seed", f"PYTHONHASHSEED={seed}, other garbage: other bytes ({digest})")
        for level, digest in (other.digests or {}).items()
        if digest != digests.get(level, digest)
    ]
    return dataclasses.replace(outcome, failures=(*outcome.failures, *other.failures, *different))


def _show(suite: Suite, levels: Iterable[int]) -> None:
    failed = {name: one.failures for name, one in suite.outcomes.items() if one.failures}
    not_run = {name: one.not_run for name, one in suite.outcomes.items() if one.not_run}
    if failed:
        table = Table("case", "level", "what", "detail", title=f"{suite.name}: failures")
        for name, failures in sorted(failed.items()):
            for failure in failures:
                level = f"O{failure.level}" if failure.level >= 0 else ""
                table.add_row(name, level, failure.kind, failure.detail[:400])
        _console.print(table)
        kinds = Counter(failure.kind for failures in failed.values() for failure in failures)
        _console.print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    if suite.name == "models":
        for name, reason in not_run.items():
            _console.print(f"{name} cannot be run, so only its form was judged: {reason}")
    total = len(suite.outcomes)
    _console.print(
        f"{suite.name}: {total - len(failed)} of {total} pass ({len(not_run)} not run); "
        f"nodes {_node_sums(suite, levels)}"
    )


def _node_sums(suite: Suite, levels: Iterable[int]) -> str:
    """Sum the nodes of the cases that every level answered."""
    columns = [-1, *levels]
    counts = [one.nodes for one in suite.outcomes.values() if one.nodes]
    complete = [nodes for nodes in counts if all(column in nodes for column in columns)]
    sums = {column: sum(nodes[column] for nodes in complete) for column in columns}
    return ", ".join(f"{'before' if c < 0 else f'O{c}'} {total:,}" for c, total in sums.items())


if __name__ == "__main__":
    cyclopts.run(main)
