"""Judges: they measure the cost of some forms side by side, one round at a time.

A round is one observation of each form: its cost as a logarithm, in the same unit for all of them.
Only differences within a round count, so a machine that slows down slows all of them.
"""

from __future__ import annotations

import math
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final, Literal, Protocol, get_args

from tiered.extensions.measurement.subjects import MeasuredModel, open_subject, opened, subject
from tiered.extensions.measurement.trials import ModelProcess, TrialPlan, Trials, measure, order
from tiered.extensions.tuning.model_forms import Made
from tiered.runtime.inputs.given_inputs import Given
from tiered.runtime.inputs.samples import Sample, in_dtypes_of
from tiered.runtime.opening import Clock, Opening
from tiered.runtime.worker.client import SECONDS, Worker
from tiered.support.errors import RuntimeFailure, UsageError, did_you_mean

Objective = Literal["latency", "memory", "size"]
"""What is made small: the seconds of a run, the peak of memory, or the bytes of the file."""

MODEL: Final = "{model}"
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
"""A number that is no part of a name; its unit may follow. Commas are read to be refused."""
_ITERATIONS: Final = 10
"""Blocks of runs of each form in a round."""
ATTEMPTS: Final = 3
"""How often a command may fail on a form before the form is one that fails."""
_LAST: Final = 300
"""Characters of the end of an output that an error repeats."""


class Judge(Protocol):
    """Measures forms."""

    @property
    def is_exact(self) -> bool:
        """Whether every round has the same costs: one is enough."""
        ...

    def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
        """Return the logarithm of the cost of each form, from one round.

        Args:
            forms: what to measure, side by side.
            number: of the round: the order changes with it.
            apart: whether each form has a process of its own.

        Raises:
            RuntimeFailure: one of them fails.
        """
        ...


def objective_of(text: str) -> Objective:
    """Return the objective that a string names.

    Raises:
        UsageError: there is no such objective.
    """
    known: tuple[Objective, ...] = get_args(Objective)
    for objective in known:
        if text == objective:
            return objective
    hint = did_you_mean(text, known)
    raise UsageError(f"no objective {text!r}{hint} (there are: {', '.join(known)})")


class SizeJudge:
    """Weighs files."""

    is_exact = True

    def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
        """Return the logarithm of the bytes of each file."""
        return [math.log(max(1, form.nbytes)) for form in forms]


class RuntimeJudge:
    """Runs forms on onnxruntime, in new processes each round.

    Args:
        opening: level, threads and provider.
        samples: what they run on.
        clock: which time counts.
        objective: "latency", or "memory", which takes a process for each form.
        seconds: the limit of a round of one form.
    """

    is_exact = False

    def __init__(
        self,
        opening: Opening,
        samples: Sequence[Sample],
        clock: Clock,
        objective: Objective,
        seconds: float,
    ) -> None:
        self._opening, self._samples, self._clock = opening, samples, clock
        self._objective, self._seconds = objective, seconds

    def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
        """Return the logarithm of the seconds or bytes of each form.

        Raises:
            RuntimeFailure: one of them fails, or the peak of memory is not known here.
        """
        places = order(len(forms), number)
        turned = [forms[place] for place in places]
        trials, count = Trials(len(forms)), len(forms)
        plan = TrialPlan(self._seconds * count, rounds=1, iterations=_ITERATIONS,
                    samples=len(self._samples), clock=self._clock)  # fmt: skip
        with ExitStack() as stack:
            if apart or self._objective == "memory":
                opener = self._apart([*map(_subject_of, turned)])
            else:
                opener = stack.enter_context(self._together([*map(_subject_of, turned)]))
            measure(trials, plan, opener)
        (found,) = trials.rounds
        costs = [0.0] * count
        for at, place in enumerate(places):
            if self._objective == "memory":
                costs[place] = _log_of(found.memory[at])
            else:
                # By pairs of blocks that ran right after each other.
                costs[place] = math.log(found.median(0)) + found.difference(at, 0)
        return costs

    def _feeds(self, each: MeasuredModel) -> list[Given]:
        return [in_dtypes_of(each.proto, sample.inputs.feeds) for sample in self._samples]

    def _apart(
        self, subjects: Sequence[MeasuredModel]
    ) -> Callable[[int], AbstractContextManager[ModelProcess]]:
        """Return what opens each form in a process of its own."""
        limit = max(SECONDS, self._seconds)
        return lambda place: opened(
            subjects[place], self._opening, self._feeds(subjects[place]), limit
        )

    @contextmanager
    def _together(
        self, subjects: Sequence[MeasuredModel]
    ) -> Iterator[Callable[[int], AbstractContextManager[ModelProcess]]]:
        """Return what opens all forms in one new process."""
        with Worker(seconds=max(SECONDS, self._seconds)) as worker:
            worker.ready()

            @contextmanager
            def open_form(place: int) -> Iterator[ModelProcess]:
                session = open_subject(worker, subjects[place], self._opening)
                session.hold(self._feeds(subjects[place]))
                yield session
                session.close()

            yield open_form


def _subject_of(form: Made) -> MeasuredModel:
    return subject(form.path)


def _log_of(nbytes: int | None) -> float:
    if nbytes is None:
        raise RuntimeFailure(
            "the peak of memory of a process is not known on this system; "
            "use the objective latency or size"
        )
    return math.log(max(1, nbytes))


class CommandJudge:
    """Runs a command of the user's own that prints a cost; no shell is involved.

    A device may be busy or lost for a moment, so a command that fails runs again.

    Args:
        command: its words as in a shell; `{model}` stands for the file.
        seconds: the longest that one run may take.

    Attributes:
        failed: how many runs failed, and what the last of them said.

    Raises:
        UsageError: the command does not parse, or does not name the model.
    """

    is_exact = False

    def __init__(self, command: str, seconds: float = 600.0) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--measure {command!r}: {error}") from error
        if not any(MODEL in word for word in self._words):
            raise UsageError(
                f"--measure {command!r} lacks {MODEL}, which stands for the file of the model"
            )
        self._shown, self._seconds = f"--measure {command!r}", seconds
        self.failed = (0, "")

    def costs(self, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
        """Return the logarithm of what the command prints for each form.

        Raises:
            UsageError: there is no such program.
            RuntimeFailure: it fails again and again, takes too long, or prints no number above 0.
        """
        costs = [0.0] * len(forms)
        for place in order(len(forms), number):
            costs[place] = math.log(self._cost(forms[place]))
        return costs

    def _cost(self, form: Made) -> float:
        for _ in range(ATTEMPTS):
            ended = self._run(form.path)
            if not ended.returncode:
                # A path that is repeated has numbers of its own.
                return _number_in(ended.stdout.replace(form.path, MODEL), self._shown)
            said = " ".join((ended.stderr or ended.stdout).split())[-_LAST:]
            failure = f"ended with exit code {ended.returncode} on {form.form}"
            failure += f": {said}" if said else ""
            self.failed = (self.failed[0] + 1, failure)
        raise RuntimeFailure(f"{self._shown} {failure}")

    def _run(self, path: str) -> subprocess.CompletedProcess[str]:
        words = [word.replace(MODEL, path) for word in self._words]
        try:
            return subprocess.run(
                words, capture_output=True, timeout=self._seconds, stdin=subprocess.DEVNULL,
                check=False, text=True, errors="replace",
            )  # fmt: skip
        except OSError as error:
            raise UsageError(f"{self._shown}: cannot run {words[0]!r}: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            raise RuntimeFailure(f"{self._shown} took more than {self._seconds:g} s") from error


def _number_in(text: str, shown: str) -> float:
    """Return the last number of the last line that is not empty."""
    lines = [line for line in text.splitlines() if line.strip()]
    numbers: list[str] = _NUMBER.findall(lines[-1]) if lines else []
    if not numbers:
        said = repr(lines[-1][:_LAST]) if lines else "nothing"
        raise RuntimeFailure(
            f"{shown} printed {said}; expected a number in its last line: 'latency: 1.25 ms'"
        )
    found = numbers[-1].rstrip(",")
    if "," in found:
        raise RuntimeFailure(f"{shown} printed {found}; expected a number without commas")
    cost = float(found)
    if not (math.isfinite(cost) and cost > 0):
        raise RuntimeFailure(f"{shown} printed {found}; expected a number above 0")
    return cost
