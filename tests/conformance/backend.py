"""The backend suite: the cases by which the onnx wheel tests runtimes, an op or a small net each.

A case is judged on onnxruntime, or on onnx.reference where onnxruntime does not reproduce the
expected outputs; where neither does, it is not run, and only the form of the result is judged.
"""

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, TypeProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from tests.conformance.judge import (
    EXACT_UP_TO,
    Feeds,
    Outcome,
    Outputs,
    Subject,
    Trial,
    count_nodes,
    describe,
    judge_levels,
    open_on_onnxruntime,
    optimize,
)
from tests.conformance.pool import Report
from tiered.runtime.compare.outputs import compare
from tiered.runtime.session import run_reference
from tiered.support.errors import RuntimeFailure

Array = np.ndarray[Any, Any]

PROMISES = {3: "reassociating", 4: "approximate"}
"""What the levels that are not exact promise."""

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True)
class BackendTask:
    name: str  # kind/test name
    levels: tuple[int, ...]


@dataclass(frozen=True)
class _DataSet:
    feeds: Feeds
    expected: dict[str, Any]


def case_names() -> list[str]:
    return list(_cases())


def judge_case(task: BackendTask, report: Report) -> Outcome:
    """Judge one case at every level."""
    # The numbers of the cases overflow, divide by zero and subtract infinities on purpose.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"onnx\.reference")
    case = _cases()[task.name]
    report("load")
    model, data_sets = _load(case)
    report("run the original")
    not_run = ""
    try:
        subject = _runnable_subject(case, model, data_sets)
    except _NotRunnable as error:
        subject, not_run = Subject(model), str(error)
    results, failures = judge_levels(subject, task.levels, optimize, report)
    nodes = {level: count_nodes(result) for level, result in results.items()}
    return Outcome(tuple(failures), not_run, {-1: count_nodes(model), **nodes})


@cache
def _cases() -> dict[str, TestCase]:
    with warnings.catch_warnings(), open(os.devnull, "w") as nowhere:
        warnings.simplefilter("ignore", RuntimeWarning)
        with contextlib.redirect_stdout(nowhere):
            found = {kind: load_model_tests(kind=kind) for kind in KINDS}
    return {f"{kind}/{case.name}": case for kind, cases in found.items() for case in cases}


class _NotRunnable(Exception):
    """No runtime reproduces the expected outputs of the original."""


def _runnable_subject(case: TestCase, model: ModelProto, data_sets: Sequence[_DataSet]) -> Subject:
    """Choose the first runtime that reproduces what the case expects."""
    reasons = []
    for open_model in (open_on_onnxruntime, _open_on_reference):
        try:
            runs = [open_model(model), open_model(model)]
            trials = [
                Trial(f"data set {index}", data.feeds, _Judge(case, model, data, runs).fault)
                for index, data in enumerate(data_sets)
            ]
        except (RuntimeFailure, AssertionError) as error:
            reasons.append(describe(error))
        else:
            return Subject(model, open_model, tuple(trials))
    raise _NotRunnable(" / ".join(reasons))


def _open_on_reference(model: ModelProto) -> Callable[[Feeds], Outputs]:
    return partial(run_reference, model)


class _Judge:
    """Knows what one data set must give: what the case expects, and up to level 2 the very bits.

    The original is run twice: where it draws random numbers, its own answer is no measure.

    Raises:
        AssertionError: the original itself does not give what the case expects.
        RuntimeFailure: it does not run.
    """

    def __init__(
        self,
        case: TestCase,
        model: ModelProto,
        data: _DataSet,
        runs: Sequence[Callable[[Feeds], Outputs]],
    ) -> None:
        self._case, self._model, self._data = case, model, data
        self._answer, again = (run(data.feeds) for run in runs)
        self._is_random = not compare(self._answer, again).ok
        _assert_expected(case, data.expected, self._answer)

    def fault(self, level: int, result: ModelProto, outputs: Outputs) -> str | None:
        try:
            _assert_expected(self._case, self._data.expected, outputs)
        except AssertionError as error:
            # The limits of the suite are narrower than what these levels promise of 16 bits.
            promised = PROMISES.get(level)
            if promised is None or not compare(self._answer, outputs, promised).ok:
                return " ".join(str(error).split())
        if level > EXACT_UP_TO or self._is_random:
            return None
        comparison = compare(self._answer, outputs)
        if comparison.ok or (self._rounds_late() and self._is_same_on_reference(result)):
            return None
        return str(comparison)

    def _rounds_late(self) -> bool:
        """Tell whether onnxruntime computes some of the case in float32, and rounds where it likes.

        It does so with what has 16 bits, and other nodes make it round at other places.
        """
        values = [*self._data.feeds.values(), *self._answer.values()]
        return any(
            isinstance(value, np.ndarray) and value.dtype.name in ("float16", "bfloat16")
            for value in values
        )

    def _is_same_on_reference(self, result: ModelProto) -> bool:
        before, after = (run_reference(m, self._data.feeds) for m in (self._model, result))
        return compare(before, after).ok


def _assert_expected(case: TestCase, expected: Outputs, outputs: Outputs) -> None:
    """Compare as the suite itself does; it can't subtract the dtypes that numpy does not know."""
    if list(expected) != list(outputs):
        raise AssertionError(f"outputs {list(outputs)}, expected {list(expected)}")
    pairs = [pair for name in expected for pair in _arrays(expected[name], outputs[name], name)]
    with np.errstate(all="ignore"):
        Runner.assert_similar_outputs(
            [old for old, _ in pairs], [new for _, new in pairs], rtol=case.rtol, atol=case.atol
        )


def _arrays(expected: Any, actual: Any, name: str) -> Iterator[tuple[Array, Array]]:
    """Yield the arrays to compare: of a sequence its items, of an absent optional none."""
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        if len(expected) != len(actual):
            raise AssertionError(f"output {name!r}: {len(actual)} items, expected {len(expected)}")
        for pair in zip(expected, actual, strict=True):
            yield from _arrays(*pair, name)
    elif expected is None or actual is None:
        if expected is not actual:
            raise AssertionError(f"output {name!r}: one of {expected} and {actual} is absent")
    else:
        old, new = np.asarray(expected), np.asarray(actual)
        if old.dtype == new.dtype and old.dtype.kind == "V":
            old, new = old.astype(np.float32), new.astype(np.float32)
        yield old, new


def _load(case: TestCase) -> tuple[ModelProto, list[_DataSet]]:
    if case.model is not None:
        sets = [
            ([_plain(value) for value in inputs], [_plain(value) for value in outputs])
            for inputs, outputs in case.data_sets or ()
        ]
        model = case.model
    else:
        folder = Path(str(case.model_dir))
        model = onnx.load(folder / "model.onnx")
        sets = [
            (_read(data, "input", model), _read(data, "output", model))
            for data in sorted(folder.glob("test_data_set_*"))
        ]
    return model, [_named(model, inputs, outputs) for inputs, outputs in sets]


def _named(model: ModelProto, inputs: list[Any], outputs: list[Any]) -> _DataSet:
    """Name the values of a data set, which may leave out the inputs that have a default."""
    names = [value.name for value in model.graph.input]
    if len(inputs) < len(names):
        defaults = {tensor.name for tensor in model.graph.initializer}
        names = [name for name in names if name not in defaults]
    results = [value.name for value in model.graph.output]
    return _DataSet(dict(zip(names, inputs, strict=True)), dict(zip(results, outputs, strict=True)))


def _read(folder: Path, prefix: str, model: ModelProto) -> list[Any]:
    values = getattr(model.graph, prefix)
    files = [folder / f"{prefix}_{index}.pb" for index in range(len(values))]
    return [
        _parsed(file.read_bytes(), value.type)
        for file, value in zip(files, values, strict=True)
        if file.exists()
    ]


def _parsed(content: bytes, declared: TypeProto) -> Any:
    match declared.WhichOneof("value"):
        case "sequence_type":
            return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
        case "optional_type":
            return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
        case _:
            return numpy_helper.to_array(TensorProto.FromString(content))


def _plain(value: Any) -> Any:
    """Return what a node case holds as numpy knows it."""
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return np.asarray(value) if isinstance(value, np.generic) else value
