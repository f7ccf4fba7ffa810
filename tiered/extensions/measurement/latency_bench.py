"""Measure the latency of models on onnxruntime, one or several side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, get_args

from tiered.extensions.measurement.claims import LETTERS, Claim, parse_claim
from tiered.extensions.measurement.latency_result import Bench
from tiered.extensions.measurement.subjects import (
    MeasuredModel,
    ModelLike,
    opened,
    samples_of,
    sizes_of_inputs,
    subject,
)
from tiered.extensions.measurement.trials import ROUNDS, ModelProcess, TrialPlan, Trials, measure
from tiered.runtime.inputs.given_inputs import Given
from tiered.runtime.inputs.samples import Source
from tiered.runtime.opening import (
    CPU,
    RUNTIME_LEVELS,
    Clock,
    Opening,
    RuntimeLevel,
    installed_provider,
)
from tiered.runtime.worker.client import SECONDS
from tiered.support.errors import UsageError, did_you_mean

MINUTES: Final = 2.0
"""The default limit; small models take a part of it."""
MOST_ROUNDS: Final = 200
"""More narrow no interval that is of use, and statistics would take seconds."""


@dataclass(frozen=True)
class How:
    """How models are measured.

    Attributes:
        provider: the execution provider: its name, in full or short (`cuda`).
        threads: that a node may use; 0 leaves the number to onnxruntime.
        runtime_level: onnxruntime's own optimisations: off, basic, extended or all.
        clock: "wall", or "processor": the time of the one thread that runs the model.
        minutes: the limit of the measurement.
        runs: the timed runs of each model, at most; None for as many as the rounds have.
        rounds: how many times each model is opened, at most: more give narrower intervals.
    """

    provider: str = CPU
    threads: int = 1
    runtime_level: RuntimeLevel = "all"
    clock: Clock = "wall"
    minutes: float = MINUTES
    runs: int | None = None
    rounds: int = ROUNDS

    def opening(self) -> Opening:
        """Return how models are opened.

        Raises:
            UsageError: an attribute has a wrong value, or there is no such provider.
        """
        _check_one_of("runtime level", self.runtime_level, RUNTIME_LEVELS)
        _check_one_of("clock", self.clock, get_args(Clock))
        if self.threads < 0:
            raise UsageError(f"threads are 1 or more (0: onnxruntime's choice), not {self.threads}")
        if not (math.isfinite(self.minutes) and self.minutes > 0):
            raise UsageError(f"minutes are a number above 0, not {self.minutes:g}")
        if self.runs is not None and self.runs < 1:
            raise UsageError(f"runs are 1 or more, not {self.runs}")
        if not 1 <= self.rounds <= MOST_ROUNDS:
            raise UsageError(f"rounds are 1 to {MOST_ROUNDS}, not {self.rounds}")
        provider = installed_provider(self.provider)
        if self.clock == "processor" and (self.threads != 1 or provider != CPU):
            raise UsageError(
                "the clock 'processor' counts one thread on the CPU: use threads=1 and "
                f"{CPU}, or the clock 'wall'"
            )
        return Opening(self.runtime_level, self.threads, provider)


@dataclass(frozen=True)
class MeasurementJob:
    """Models that have run once, and their inputs: ready to be measured."""

    subjects: tuple[MeasuredModel, ...]
    feeds: Sequence[Sequence[Given]]
    inputs: tuple[str, ...]
    opening: Opening
    plan: TrialPlan

    def measure(self, trials: Trials, say: Callable[[str], None] = lambda text: None) -> None:
        """Measure; what is there so far is in `trials` at any time.

        Raises:
            RuntimeFailure: a model fails.
        """
        measure(trials, self.plan, self._opened, say=say)

    def result(self, trials: Trials, *, is_complete: bool = True) -> Bench:
        """Return what was measured; at least one iteration is there."""
        return Bench(
            tuple(each.name for each in self.subjects),
            tuple(each.file_bytes for each in self.subjects),
            tuple(trials.usable),
            self.opening,
            self.plan.clock,
            self.inputs,
            is_complete,
        )

    def _opened(self, place: int) -> AbstractContextManager[ModelProcess]:
        limit = max(SECONDS, self.plan.seconds)
        return opened(self.subjects[place], self.opening, self.feeds[place], limit)


def bench(
    *models: ModelLike,
    inputs: Iterable[Source] = (),
    seed: int = 0,
    dims: Mapping[str, int | str] | None = None,
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    provider: str = CPU,
    threads: int = 1,
    runtime_level: RuntimeLevel = "all",
    clock: Clock = "wall",
    minutes: float = MINUTES,
    runs: int | None = None,
    rounds: int = ROUNDS,
    expect: Iterable[str] = (),
) -> Bench:
    """Measure the latency of one model, or of several side by side.

    The models run alternately, each in a process of its own, in rounds of new processes; a round is
    one observation. Intervals are those of the median, at 99 %.

    Args:
        models: files, so that external data is found, or protos.
        inputs: files, folders or arrays, one after the other; by default inputs are made for the
            first model. Floats are fed to each model in its dtypes.
        seed: of the inputs that are made.
        dims, input_shapes: sizes of dynamic dims, where inputs are made.
        provider: the execution provider: its name, in full or short ("cuda").
        threads: that a node may use; 0 leaves the number to onnxruntime.
        runtime_level: onnxruntime's own optimisations: "off", "basic", "extended" or "all".
        clock: "wall", or "processor": the time of the one thread that runs the model, without
            that of other work on the machine.
        minutes: the limit of the measurement.
        runs: the timed runs of each model, at most; by default as many as the rounds have.
        rounds: how many times each model is opened, at most: more give narrower intervals.
        expect: expectations of ratios, as "B<=0.9*A": A is the first model.

    Raises:
        UsageError: an argument is wrong, or models take different inputs.
        ModelError: a file holds no model.
        RuntimeFailure: onnxruntime does not open or run a model.
        TargetError: an expectation does not hold.
    """
    if isinstance(expect, str):
        raise UsageError(f"expect takes a list of strings, not {expect!r}; write [{expect!r}]")
    how = How(provider, threads, runtime_level, clock, minutes, runs, rounds)
    claims = claims_of(expect, len(models))
    job = prepare(
        models, how, inputs=inputs, seed=seed, dims=dims or {}, input_shapes=input_shapes or {}
    )
    trials = Trials(len(models))
    job.measure(trials)
    found = job.result(trials)
    found.check(claims)
    return found


def claims_of(texts: Iterable[str], count: int) -> list[Claim]:
    """Parse expectations about some models; commas separate several in one string.

    Raises:
        UsageError: there are no models or too many, or one does not parse.
    """
    if not 1 <= count <= len(LETTERS):
        raise UsageError(f"bench takes 1 to {len(LETTERS)} models, not {count}")
    return [parse_claim(part, count) for text in texts for part in text.split(",")]


def prepare(
    models: Sequence[ModelLike],
    how: How,
    *,
    inputs: Iterable[Source] = (),
    seed: int = 0,
    dims: Mapping[str, int | str],
    input_shapes: Mapping[str, Sequence[int | str]],
) -> MeasurementJob:
    """Open and run each model once, on the inputs that will be used.

    Raises:
        UsageError: an argument is wrong, or models take different inputs.
        ModelError: a file holds no model.
        RuntimeFailure: onnxruntime does not open or run a model.
    """
    opening, seconds = how.opening(), how.minutes * 60
    subjects = [subject(model) for model in models]
    samples, feeds = samples_of(
        subjects,
        opening,
        inputs=inputs,
        seed=seed,
        sizes=sizes_of_inputs(subjects, input_shapes, dims),
        seconds=max(SECONDS, seconds),
    )
    plan = TrialPlan(seconds, how.runs, how.rounds, samples=len(samples), clock=how.clock)
    return MeasurementJob(tuple(subjects), feeds, tuple(map(str, samples)), opening, plan)


def _check_one_of(what: str, found: str, known: Sequence[str]) -> None:
    if found not in known:
        hint = did_you_mean(found, known)
        raise UsageError(f"no {what} {found!r}{hint} (there are: {', '.join(known)})")
