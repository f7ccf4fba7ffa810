"""tune: a model in, its fastest form on this machine out."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import onnx

from tiered.extensions.measurement.latency_bench import How
from tiered.extensions.measurement.subjects import ModelLike, samples_of, sizes_of_inputs, subject
from tiered.extensions.tuning.blocks import blocks_of
from tiered.extensions.tuning.cache import GainCache
from tiered.extensions.tuning.choices import Probe, choices_of
from tiered.extensions.tuning.found import Found
from tiered.extensions.tuning.judges import (
    CommandJudge,
    Judge,
    Objective,
    RuntimeJudge,
    SizeJudge,
    objective_of,
)
from tiered.extensions.tuning.log import Log
from tiered.extensions.tuning.machine import digest_of_arrays, machine_text, sizes_text
from tiered.extensions.tuning.maker import Maker, check_candidates, digest_of
from tiered.extensions.tuning.model_forms import Choice, Made, ModelForm
from tiered.extensions.tuning.output_tolerance import OutputTolerance, parse_budget
from tiered.extensions.tuning.search import Search
from tiered.extensions.tuning.tuning_result import Tuned
from tiered.graph import Model
from tiered.pipeline.instruments import Trace
from tiered.runtime.inputs.samples import Source, read_samples
from tiered.runtime.opening import CPU, Clock, Opening, RuntimeLevel
from tiered.runtime.worker.client import SECONDS
from tiered.support.amounts import counted
from tiered.support.errors import UsageError

MINUTES: Final = 5.0
_ONNXRUNTIME: Final = "onnxruntime_cpu"
"""The backend that is tried beside the default one where onnxruntime's CPU provider runs."""
_ROUND: Final = 2.0
"""The most seconds of one form in a round; runs that take longer are timed once."""

_UNUSED: Final[Mapping[Objective, tuple[str, ...]]] = {
    "latency": (), "memory": ("clock",), "size": ("threads", "runtime_level", "clock"),
}  # fmt: skip
"""Settings of onnxruntime without effect on what is made small."""


@dataclass(frozen=True)
class TuningTask:
    """What is tuned, and how.

    Attributes:
        model: the file or the proto.
        how: how onnxruntime runs it; `minutes` limits the search.
        objective: what is made small.
        budget: how far outputs may move.
        backend: the target; None to try the default one, and that of onnxruntime on the CPU.
        candidates: files with other forms of the model.
        inputs, seed, dims, input_shapes: what the forms run on.
        command: one that prints a cost, instead of onnxruntime.
        log: a file for the rounds, None for none.
        resume: whether to go on with the rounds of that file.
        cache: a folder for gains of decisions, None for none.
        judge: measures, instead of all of these.
    """

    model: ModelLike
    how: How
    objective: Objective = "latency"
    budget: OutputTolerance = field(default_factory=lambda: parse_budget("reassociating"))
    backend: str | None = None
    candidates: tuple[str, ...] = ()
    inputs: tuple[Source, ...] = ()
    seed: int = 0
    dims: Mapping[str, int | str] = field(default_factory=dict)
    input_shapes: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    command: str | None = None
    log: str | None = None
    resume: bool = False
    cache: str | None = None
    judge: Judge | None = None

    def check(self) -> None:
        """Check all that can be checked before a model is read.

        Raises:
            UsageError: a setting is wrong, or two do not go together.
        """
        objective_of(self.objective)
        check_candidates(self.candidates)
        if self.backend is not None:
            from tiered.targets import get_backend

            get_backend(self.backend)
        if self.command is not None:
            CommandJudge(self.command)
            if self.objective != "latency":
                raise UsageError(
                    f"--measure decides what is made small: leave --objective {self.objective} out"
                )
        if self.resume and self.log is None:
            raise UsageError("resume needs the log of the search that ended")
        self.how.opening()
        self._check_effects()

    def _check_effects(self) -> None:
        """Raise if a setting of onnxruntime is given where nothing depends on it."""
        names: tuple[str, ...] = ("provider", "threads", "runtime_level", "clock")
        kind = "--measure"
        if self.command is None:
            kind = f"--objective {self.objective}"
            names = () if self.judge is not None else _UNUSED[self.objective]
        for name in names:
            found = getattr(self.how, name)
            if found != getattr(How, name):
                option = name.replace("_", "-")
                raise UsageError(f"--{option} {found} has no effect with {kind}: leave it out")

    @property
    def judged_by(self) -> str | None:
        """What measures instead of onnxruntime; None if that does."""
        kind = type(self.judge)
        return self.command if self.judge is None else f"{kind.__module__}.{kind.__qualname__}"

    def starts(self) -> tuple[list[ModelForm], ModelForm]:
        """Return the forms to begin with, the original first, and the reference."""
        backends = [self.backend or ""]
        is_here = self.how.opening().provider == CPU and self.command is None
        if self.backend is None and is_here:
            backends.append(_ONNXRUNTIME)
        levels = [level for level in (3, 2, 0, 4) if level <= self.budget.level]
        forms = [ModelForm(level, backend) for level in levels for backend in backends]
        for file in self.candidates:
            again = (ModelForm(self.budget.reference, backend, file=file) for backend in backends)
            forms += [ModelForm(None, file=file), *again]
        return [ModelForm(None), *forms], ModelForm(self.budget.reference, backends[0])


def tune(
    model: ModelLike,
    out: str | os.PathLike[str] | None = None,
    *,
    backend: str | None = None,
    inputs: Iterable[Source] = (),
    seed: int = 0,
    dims: Mapping[str, int | str] | None = None,
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    provider: str = CPU,
    threads: int = 1,
    runtime_level: RuntimeLevel = "all",
    clock: Clock = "wall",
    minutes: float = MINUTES,
    objective: Objective = "latency",
    budget: str = "reassociating",
    candidates: Iterable[str | os.PathLike[str]] = (),
    measure: str | None = None,
    log: str | os.PathLike[str] | None = None,
    resume: bool = False,
    cache: str | os.PathLike[str] | None = None,
    judge: Judge | None = None,
) -> Tuned:
    """Search the form of a model that is best on this machine, by measurement.

    The result is never proved worse than the original, and it is -O3 (-O2 if outputs must be
    exact) unless another form is proved to be better. Outputs are within the budget.

    Args:
        model: a file, or a ModelProto, which is not changed.
        out: the file to write: whole, or not at all.
        backend: the target; by default the standard operators, and with onnxruntime's CPU provider
            also its own ones.
        inputs: samples to measure and to verify with: files, folders, dicts of arrays; by default
            they are made.
        seed: of the inputs that are made.
        dims, input_shapes: sizes of dynamic dims, where inputs are made.
        provider, threads, runtime_level, clock: how onnxruntime runs, as for `tiered.bench`.
        minutes: the limit of the search; the confirmation of its result may take longer.
        objective: what is made small: "latency", "memory" (the peak of a process) or "size".
        budget: how far outputs may move: "exact", "reassociating", or "cosine>=0.999".
        candidates: files with other forms of the model, such as results of other tools.
        measure: a command that prints a cost; `{model}` stands for the file. It replaces
            onnxruntime as the judge.
        log: a file for what is measured; with `resume` an interrupted search goes on from there.
        resume: take over what the log holds.
        cache: a folder for gains of decisions, by block and machine, for models with equal blocks.
        judge: measures forms, instead of onnxruntime or a command.

    Raises:
        UsageError: an argument is wrong.
        ModelError: a file cannot be read or written.
        RuntimeFailure: the model cannot be measured.
    """
    how = How(provider, threads, runtime_level, clock, minutes)
    task = TuningTask(
        model if isinstance(model, onnx.ModelProto) else os.fspath(model),
        how,
        objective,
        parse_budget(budget),
        backend,
        tuple(os.fspath(file) for file in candidates),
        tuple(inputs),
        seed,
        dims or {},
        input_shapes or {},
        measure,
        None if log is None else os.fspath(log),
        resume,
        None if cache is None else os.fspath(cache),
        judge,
    )
    task.check()
    if out is not None and _is_same(model, os.fspath(out)):
        raise UsageError(f"{os.fspath(out)!r} is the model that is read; write to another file")
    with tuning(task) as run:
        run.search()
        tuned = run.result(is_complete=True)
        if out is not None:
            run.view(tuned.form).save(os.fspath(out))
        run.end()
    return tuned


class TuningRun:
    """A search for one task, and what it has found at any time."""

    def __init__(
        self, task: TuningTask, folder: str, say: Callable[[str], None], now: Callable[[], float]
    ) -> None:
        self._task, self._say, self._now = task, say, now
        self._maker = Maker(task.model, folder)
        starts, reference = task.starts()
        machine = machine_text(task.how, task.objective, task.judged_by)
        key = {"model": digest_of(task.model), "machine": machine, "budget": str(task.budget),
               "backend": task.backend or "", "candidates": [*map(digest_of, task.candidates)],
               "inputs": digest_of_arrays(read_samples(task.inputs)), "seed": task.seed,
               "dims": {**task.dims},
               "input shapes": {name: [*dims] for name, dims in task.input_shapes.items()},
               }  # fmt: skip
        self._shapes = sizes_of_inputs([subject(task.model)], task.input_shapes, task.dims)
        judge, sizes = _judge_of(task, task.how.opening())
        self._judge, self._log = judge, Log(judge, task.log, key, resume=task.resume)
        self._cache = GainCache(task.cache, f"{machine}, {sizes}" if sizes else machine)
        self._began = now()
        self._search = Search(self, self._log, starts, reference, self._elapsed, self._cache, say)
        self._reference = reference

    def _elapsed(self) -> float:
        return (self._now() - self._began) / (self._task.how.minutes * 60)

    # --- the workshop of the search ---------------------------------------------------------------

    def made(self, form: ModelForm) -> Made | None:
        """Return a form; None if it cannot be made."""
        return self._maker.made(form)

    def failure(self, form: ModelForm) -> str:
        """Return why a form cannot be made."""
        return self._maker.failure(form)

    def choices(self, form: ModelForm) -> Iterable[Choice]:
        """Yield what a form may decide otherwise."""
        trace = Trace()
        result = self._maker.result(form, trace)
        made, start = self._maker.made(form), ModelForm(None, file=form.file)
        path = "" if made is None else made.path
        probes = (
            Probe(lambda: Model.load(path), form.backend),
            Probe(lambda: self._maker.loaded(start), form.backend),
        )
        return choices_of(form, result, blocks_of(trace), probes, self._task.budget)

    def fault(self, made: Made) -> str:
        """Return how a form exceeds the budget; an empty string if it does not."""
        if made.form == ModelForm(None):
            return ""
        self._say(f"verifying {made.form}")
        task = self._task
        return task.budget.fault(task.model, made.path, task.inputs, task.seed, self._shapes)

    def forget(self, made: Made) -> None:
        """Delete the files of a form."""
        self._maker.forget(made)

    # --- the run ----------------------------------------------------------------------------------

    def search(self) -> None:
        """Search until the end, or until the time is over.

        Raises:
            RuntimeFailure: the model cannot be measured.
        """
        try:
            self._search.run()
        finally:
            self._cache.save()

    @property
    def may_settle(self) -> bool:
        """Whether a search that is interrupted has a result: the starts were measured."""
        return bool(self.found.tried)

    def settle(self) -> None:
        """End a search that is interrupted."""
        self._search.settle()

    @property
    def found(self) -> Found:
        """What is found so far."""
        return self._search.found

    def result(self, *, is_complete: bool) -> Tuned:
        """Return what was found; the reference, too, is held to the budget."""
        change = self._log.drift()
        if change is not None:
            kind = "more" if change > 1 else "less"
            self.found.notes.append(
                f"the machine drifted: the last rounds cost {abs(change - 1):.0%} {kind} than the "
                "first ones; ratios are not affected, as the forms of a round drift together"
            )
        failed, said = self._judge.failed if isinstance(self._judge, CommandJudge) else (0, "")
        if failed:
            self.found.notes.append(
                f"the command failed {counted(failed, 'time')}; the last time it {said}"
            )
        return Tuned.of(self._search.found, self._reference, self._task.budget, self._maker,
                        is_complete=is_complete, fault=self.fault,
                        measured=self._log.measured, hits=self._cache.hits)  # fmt: skip

    def view(self, form: ModelForm) -> Model:
        """Return the model of a form.

        Raises:
            TieredError: it cannot be made.
        """
        return self._maker.view(form)

    def end(self) -> None:
        """Forget the log of a search that came to its end."""
        self._log.remove()


@contextmanager
def tuning(
    task: TuningTask,
    say: Callable[[str], None] = lambda text: None,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[TuningRun]:
    """Prepare a search; its files last as long as the block.

    Raises:
        UsageError: a setting is wrong, or a log was written for something else.
        ModelError: a file cannot be read.
        RuntimeFailure: the model does not run.
    """
    with tempfile.TemporaryDirectory(prefix="tiered-tune-") as folder:
        yield TuningRun(task, folder, say, now)


def _is_same(model: ModelLike, out: str) -> bool:
    if isinstance(model, onnx.ModelProto):
        return False
    return os.path.realpath(model) == os.path.realpath(out)


def _judge_of(task: TuningTask, opening: Opening) -> tuple[Judge, str]:
    """Return what measures the forms of a task, and the sizes of dynamic dims if it knows them."""
    if task.judge is not None:
        return task.judge, ""
    if task.command is not None:
        return CommandJudge(task.command), ""
    if task.objective == "size":
        return SizeJudge(), ""
    subjects = [subject(task.model), *(subject(file) for file in task.candidates)]
    samples, (feeds, *_) = samples_of(
        subjects,
        opening,
        inputs=task.inputs,
        seed=task.seed,
        sizes=sizes_of_inputs(subjects, task.input_shapes, task.dims),
        seconds=SECONDS,
    )
    judge = RuntimeJudge(opening, samples, task.how.clock, task.objective, _ROUND)
    return judge, sizes_text(subjects[0].proto, feeds)
