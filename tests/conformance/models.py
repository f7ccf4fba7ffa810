"""The models suite: whole models at every level, on two bindings of their dynamic dims."""

import hashlib
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import onnx
import onnx.backend.test
from onnx import ModelProto

import tiered
from tests.conformance.inputs import feeds_for
from tests.conformance.judge import (
    EXACT_UP_TO,
    Failure,
    Outcome,
    Outputs,
    Subject,
    Trial,
    canonical_bytes,
    count_nodes,
    describe,
    first_difference,
    growth_faults,
    judge_levels,
    open_on_onnxruntime,
    optimize,
)
from tests.conformance.pool import Report
from tiered.runtime.compare.outputs import Numerics, compare
from tiered.runtime.inputs.make import feasible_inputs
from tiered.runtime.session import Session
from tiered.support.errors import RuntimeFailure

_PROMISED = {3: Numerics.REASSOCIATING, 4: Numerics.APPROXIMATE}

_garbage: list[object] = []


@dataclass(frozen=True)
class ModelTask:
    path: Path
    levels: tuple[int, ...]


def model_paths(folder: Path) -> list[Path]:
    """Return the models of a folder and the light nets of the onnx wheel, the largest first."""
    light = Path(onnx.backend.test.__file__).parent / "data" / "light"
    paths = [*folder.glob("*.onnx"), *light.glob("light_*.onnx")]
    return sorted(paths, key=lambda path: (-path.stat().st_size, path.name))


def judge_model(task: ModelTask, report: Report) -> Outcome:
    """Judge one model at every level, and say what its optimised files hash to."""
    report("load")
    model = onnx.load(task.path)
    not_run = ""
    try:
        subject = Subject(model, open_on_onnxruntime, _trials(task.path, model, report))
    except RuntimeFailure as error:
        subject, not_run = Subject(model), describe(error)
    results, failures = judge_levels(subject, task.levels, optimize, report)
    digests: dict[int, str] = {}
    for level, result in results.items():
        report(f"O{level} file to file")
        written = _optimize_file(task.path, level)
        digests[level] = written.digest
        failures += [Failure(level, *fault) for fault in _file_faults(model, result, written)]
    nodes = {level: count_nodes(result) for level, result in results.items()}
    return Outcome(tuple(failures), not_run, {-1: count_nodes(model), **nodes}, digests)


def digest_model(task: ModelTask, report: Report) -> Outcome:
    """Say what the optimised files hash to in this process, which has seen other garbage."""
    seed = os.environ["PYTHONHASHSEED"]
    source = random.Random(f"{seed} {task.path.name}")
    _garbage.append([bytearray(source.randrange(4096)) for _ in range(source.randrange(20_000))])
    digests: dict[int, str] = {}
    for level in task.levels:
        report(f"O{level} file to file, PYTHONHASHSEED={seed}")
        try:
            digests[level] = _optimize_file(task.path, level).digest
        except tiered.TieredError as error:
            digests[level] = describe(error)
    return Outcome(digests=digests)


@dataclass(frozen=True)
class _Written:
    """What one call wrote: the sha256 and the size of its files, and the model in them."""

    digest: str
    size: int
    model: ModelProto


def _optimize_file(path: Path, level: int) -> _Written:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.onnx"
        tiered.optimize(path, out, opt_level=level)
        digest = hashlib.sha256()
        files = sorted(out.parent.iterdir())
        for file in files:
            digest.update(file.name.encode())
            digest.update(file.read_bytes())
        size = sum(file.stat().st_size for file in files)
        return _Written(digest.hexdigest(), size, onnx.load(out))


def _file_faults(
    model: ModelProto, result: ModelProto, written: _Written
) -> Iterator[tuple[str, str]]:
    yield from growth_faults(model.ByteSize(), written.size)
    if canonical_bytes(written.model) != canonical_bytes(result):
        yield "route", f"a path gives another {first_difference(result, written.model)}"


def _trials(path: Path, model: ModelProto, report: Report) -> tuple[Trial, ...]:
    """Run the original on both bindings, and on special values wherever inputs can have them."""
    report("open the original and make its inputs")
    session = Session(model)
    first, second = (feeds_for(path, model, session, binding=binding) for binding in (0, 1))
    special = feasible_inputs(model, special=True, session=session).feeds
    report("run the original")
    return (
        Trial("first binding", first, partial(_fault, session.run(first))),
        Trial("second binding", second, partial(_fault, session.run(second))),
        Trial("special values", special, partial(_exact_fault, session.run(special))),
    )


def _fault(expected: Outputs, level: int, _result: ModelProto, outputs: Outputs) -> str | None:
    comparison = compare(expected, outputs, _PROMISED.get(level, Numerics.EXACT))
    return None if comparison.ok else str(comparison)


def _exact_fault(expected: Outputs, level: int, result: ModelProto, outputs: Outputs) -> str | None:
    """Judge where outputs are promised bit for bit; a reassociation of infinities may make NaN."""
    return _fault(expected, level, result, outputs) if level <= EXACT_UP_TO else None
