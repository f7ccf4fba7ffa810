"""Opset conversion on the ONNX backend cases and on whole models, counted beside onnx's converter.

Each case is converted to each opset, run, and compared with what the case expects and with the bits
that the original gives; then it is converted back, and compared again.
"""

import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any

import cyclopts
import onnx
from onnx import ModelProto, version_converter

from tests.conformance.backend import (
    _assert_expected,
    _cases,
    _load,
    _NotRunnable,
    _open_on_reference,
    _runnable_subject,
    case_names,
)
from tests.conformance.judge import (
    OpenModel,
    Subject,
    checker_verdict,
    describe,
    open_on_onnxruntime,
)
from tests.conformance.models import _trials, model_paths
from tests.conformance.pool import Lost, Report, run_tasks
from tiered import Model
from tiered.runtime.session import Session
from tiered.support.errors import OpsetError, RuntimeFailure

TARGETS = range(13, 24)
ROUNDS = 3  # the level whose promise other kernels keep
RUNTIMES = (open_on_onnxruntime, _open_on_reference)

Verdict = tuple[str, str]
"""What became of one conversion: right, unrun, blocked, wrong, invalid or error; and the detail."""


@dataclass(frozen=True)
class OpsetTask:
    name: str
    tool: str  # "tiered" or "onnx"
    targets: tuple[int, ...]


def convert_with_tiered(model: ModelProto, version: int) -> ModelProto:
    view = Model.from_proto(model)
    try:
        view.convert_opset(version)
        return view.to_proto()
    finally:
        view.close()


def convert_with_onnx(model: ModelProto, version: int) -> ModelProto:
    converted: ModelProto = version_converter.convert_version(model, version)
    return converted


TOOLS: dict[str, Callable[[ModelProto, int], ModelProto]] = {
    "tiered": convert_with_tiered,
    "onnx": convert_with_onnx,
}


def _fault_on(
    open_model: OpenModel, result: ModelProto, case: Any, data_sets: Iterable[Any]
) -> str | None:
    try:
        run = open_model(result)
        for data in data_sets:
            _assert_expected(case, data.expected, run(data.feeds))
    except (AssertionError, RuntimeFailure) as error:
        return " ".join(str(error).split())
    return None


def opset_of(model: ModelProto) -> int:
    return next((entry.version for entry in model.opset_import if not entry.domain), 0)


def judge_case(task: OpsetTask, report: Report) -> dict[str, Verdict]:
    """Return what became of each conversion of a case, there ("13") and back ("13 back")."""
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    case = _cases()[task.name]
    model, data_sets = _load(case)
    if opset_of(model) == 0:
        return {}
    try:
        subject = _runnable_subject(case, model, data_sets)
    except _NotRunnable:
        subject = Subject(model)

    def again(result: ModelProto) -> str | None:
        """Return what is wrong on each runtime."""
        said = [_fault_on(open_model, result, case, data_sets) for open_model in RUNTIMES]
        return None if None in said else " / ".join(filter(None, said))

    return _judge(model, subject, again, task, report)


def judge_model(task: OpsetTask, report: Report) -> dict[str, Verdict]:
    """Return what became of each conversion of a whole model."""
    path = Path(task.name)
    model = onnx.load(path)
    trials = _trials(path, model, report)
    subject = Subject(model, lambda proto: Session(proto).run, trials[:1])

    def again(result: ModelProto) -> str | None:
        raise RuntimeFailure("onnxruntime does not run it")

    return _judge(model, subject, again, task, report)


def _judge(
    model: ModelProto,
    subject: Subject,
    again: Callable[[ModelProto], str | None],
    task: OpsetTask,
    report: Report,
) -> dict[str, Verdict]:
    convert, verdicts = TOOLS[task.tool], dict[str, Verdict]()
    for target in task.targets:
        report(f"{task.tool} to {target}")
        result, verdict = _converted(convert, model, target, subject, again)
        verdicts[str(target)] = verdict
        if result is not None and task.tool == "tiered":
            _, verdicts[f"{target} back"] = _converted(
                convert, result, opset_of(model), subject, again
            )
    return verdicts


def _converted(
    convert: Callable[[ModelProto, int], ModelProto],
    model: ModelProto,
    target: int,
    subject: Subject,
    again: Callable[[ModelProto], str | None],
) -> tuple[ModelProto | None, Verdict]:
    try:
        result = convert(model, target)
    except OpsetError as error:
        return None, ("blocked", "; ".join(sorted({each.reason for each in error.blocked})))
    except Exception as error:  # noqa: BLE001 - onnx's converter raises RuntimeError for all
        return None, ("error", describe(error)[:300])
    if opset_of(result) != target:
        return None, ("wrong", f"opset {opset_of(result)}")
    verdict = checker_verdict(result, full=True)
    if verdict and not checker_verdict(subject.model, full=True):
        return None, ("invalid", verdict[:300])
    return result, _run(result, subject, again)


def _run(
    result: ModelProto, subject: Subject, again: Callable[[ModelProto], str | None]
) -> Verdict:
    """Run on the runtime that runs the original, then on the others; one that is right is enough.

    Runtimes have other kernels for some opsets, which round differently.
    """
    if subject.open_model is None:
        return "unrun", "no runtime reproduces the original"
    try:
        run = subject.open_model(result)
        answers = [(trial, run(trial.feeds)) for trial in subject.trials]
        if not any(trial.fault(0, result, answer) for trial, answer in answers):
            return "right", "the same bits"
        faults = [trial.fault(ROUNDS, result, answer) for trial, answer in answers]
        fault = next(filter(None, faults), None)
        if fault is None:
            return "right", "rounds differently"
    except RuntimeFailure as error:
        fault = describe(error)
        kind = "unrun"
    else:
        kind = "wrong"
    try:
        other = again(result)
    except RuntimeFailure as error:
        return kind, f"{fault[:200]} / {describe(error)[:200]}"
    return ("right", "on another runtime") if other is None else ("wrong", other[:300])


def main(
    *,
    models: Path | None = None,
    only: str | None = None,
    tools: str = "tiered,onnx",
    targets: str = ",".join(map(str, TARGETS)),
    jobs: int = os.cpu_count() or 1,
    json_out: Annotated[Path | None, cyclopts.Parameter(name="--json")] = None,
) -> None:
    """Convert the backend cases, or the models of a folder, to each opset and back.

    Args:
        models: a folder of *.onnx files, instead of the cases.
        only: glob over the names; by default "node/*" of the cases, and all models.
        tools: which converters, separated by commas.
        targets: the opsets.
        jobs: worker processes.
        json_out: file to write each verdict to.
    """
    wanted = tuple(int(target) for target in targets.split(","))
    if models is None:
        names = [name for name in case_names() if fnmatch(name, only or "node/*")]
    else:
        names = [str(path) for path in model_paths(models) if fnmatch(path.stem, only or "*")]
    judge = judge_case if models is None else judge_model
    found: dict[str, dict[str, dict[str, Verdict]]] = {}
    for tool in tools.split(","):
        tasks = [OpsetTask(name, tool, wanted) for name in names]
        for task, answer in run_tasks(judge, tasks, jobs=jobs, timeout=300.0):
            found.setdefault(tool, {})[task.name] = (
                dict.fromkeys(map(str, wanted), (answer.kind, answer.detail[:200]))
                if isinstance(answer, Lost)
                else answer
            )
        _show(tool, found.get(tool, {}).values())
    if json_out is not None:
        json_out.write_text(json.dumps(found, indent=1))
    ours = found.get("tiered", {}).values()
    kinds = {verdict[0] for verdicts in ours for verdict in verdicts.values()}
    sys.exit(1 if kinds - {"right", "unrun", "blocked"} else 0)


def _show(tool: str, answers: Iterable[dict[str, Verdict]]) -> None:
    there, back = Counter[str](), Counter[str]()
    for verdicts in answers:
        for key, (kind, _) in verdicts.items():
            (back if key.endswith("back") else there)[kind] += 1
    print(tool, "there:", dict(there), "back:", dict(back), flush=True)


if __name__ == "__main__":
    cyclopts.run(main)
