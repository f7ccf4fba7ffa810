"""Rounds and iterations: models that run alternately, in new processes each round.

A round opens each model in a new process, warms it up, and runs the models alternately: in each
iteration every model has a block of runs. What a process has by chance (where its memory lies,
which core it is on) is the same for all its runs: two processes of one model may differ for good.
So the round is one observation, not the iteration. Source: Kalibera & Jones, Rigorous Benchmarking
in Reasonable Time, ISMM 2013; Mytkowicz et al., Producing Wrong Data Without Doing Anything
Obviously Wrong, ASPLOS 2009.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from tiered.runtime.opening import Clock
from tiered.runtime.worker.client import TimedRuns

ROUNDS: Final = 12
"""The default; a verdict takes 8, which leaves room for a limit that ends some."""
ITERATIONS: Final = 40
_BLOCK: Final = 0.005
"""Seconds of timed runs of one model in an iteration."""
_MOST_RUNS: Final = 100
_WARM: Final = 3
_LONG: Final = 0.1
"""Seconds of a run from which no run goes untimed: others cannot have cooled it down."""
_FEWEST: Final = 5
"""Iterations of a round of models that are not long, whatever the limit: they take 0.1 s."""


class ModelProcess(Protocol):
    """An open model in a process of its own."""

    def time(self, sample: int, runs: int, before: int) -> TimedRuns: ...


Opener = Callable[[int], AbstractContextManager[ModelProcess]]
"""Opens the model of a place in a new process."""


@dataclass(frozen=True)
class TrialPlan:
    """How long to measure.

    Attributes:
        seconds: the limit; a round that is begun has some iterations nevertheless.
        runs: the timed runs of each model, at most; None for as many as the rounds have.
        rounds, iterations: in all, and in each round.
        samples: how many inputs there are, one after the other.
        clock: which time counts.
    """

    seconds: float
    runs: int | None = None
    rounds: int = ROUNDS
    iterations: int = ITERATIONS
    samples: int = 1
    clock: Clock = "wall"


@dataclass
class Round:
    """What was measured of each model in one set of processes, by the model's place.

    Attributes:
        iterations: the median seconds of each; the last one may lack models.
        runs: how many runs were timed.
        wall, processor: seconds of all timed runs.
        started: seconds to open the model.
        memory: bytes that it added to the peak of its process, None if unknown.
        nodes: how many each provider takes.
        is_whole: whether it came to its end.
    """

    iterations: list[list[float]]
    runs: list[int]
    wall: list[float]
    processor: list[float]
    started: list[float]
    memory: list[int | None]
    nodes: list[Mapping[str, int]]
    is_whole: bool = False

    @classmethod
    def of(cls, count: int) -> Round:
        """Return a round before its first iteration."""
        zeros = [0.0] * count
        return cls([[] for _ in range(count)], [0] * count, [*zeros], [*zeros], [*zeros],
                   [None] * count, [{}] * count)  # fmt: skip

    @property
    def complete(self) -> int:
        """How many iterations all models have."""
        return min(map(len, self.iterations))

    def median(self, model: int) -> float:
        """Return the seconds of a model."""
        return statistics.median(self.iterations[model])

    def difference(self, of: int, to: int) -> float:
        """Return the logarithm of one model's time by that of another; the median."""
        pairs = zip(self.iterations[of], self.iterations[to], strict=False)
        return statistics.median(math.log(one / other) for one, other in pairs)


@dataclass
class Trials:
    """All rounds of some models; the last one may be interrupted."""

    count: int
    rounds: list[Round] = field(default_factory=list)

    @property
    def usable(self) -> list[Round]:
        """The whole rounds; if there is none, the first one with an iteration of all models."""
        whole = [each for each in self.rounds if each.is_whole]
        return whole or [each for each in self.rounds[:1] if each.complete]


def measure(
    trials: Trials,
    plan: TrialPlan,
    open_model: Opener,
    *,
    say: Callable[[str], None] = lambda text: None,
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Run the rounds of a plan; what is measured is in `trials` at any time.

    Args:
        trials: gets the rounds.
        plan: how long.
        open_model: opens a model in a new process.
        say: called with the progress.
        now: the clock of the limit.

    Raises:
        RuntimeFailure: a model fails.
    """
    start = now()
    rounds = plan.rounds if plan.runs is None else min(plan.rounds, plan.runs)
    for number in range(rounds):
        if number and now() - start >= plan.seconds:
            return
        say(f"round {number + 1} of {rounds}")
        until = start + plan.seconds * (number + 1) / rounds
        found = Round.of(trials.count)
        trials.rounds.append(found)
        share = None if plan.runs is None else _share(plan.runs, rounds, number)
        with ExitStack() as stack:
            opened: dict[int, ModelProcess] = {}
            for model in order(trials.count, number):
                opened[model] = stack.enter_context(open_model(model))
            models = [opened[place] for place in range(trials.count)]
            _run(found, models, plan, number, share, partial(_is_after, now, until))
        found.is_whole = True


def order(count: int, iteration: int) -> list[int]:
    """Return the places of the models in an iteration: each is first and last equally often."""
    first = iteration % count
    places = [*range(first, count), *range(first)]
    return places if iteration // count % 2 == 0 else places[::-1]


def _is_after(now: Callable[[], float], limit: float) -> bool:
    return now() >= limit


def _share(total: int, parts: int, number: int) -> int:
    """Return a part of a number that is divided as evenly as possible."""
    return total * (number + 1) // parts - total * number // parts


def _run(
    found: Round,
    models: Sequence[ModelProcess],
    plan: TrialPlan,
    number: int,
    runs: int | None,
    is_over: Callable[[], bool],
) -> None:
    """Warm the models of a round up, and run them alternately."""
    once = [_warmed(found, place, models[place], plan) for place in order(len(models), number)]
    typical = dict(zip(order(len(models), number), once, strict=True))
    fewest = 1 if max(once) >= _LONG else _FEWEST
    for iteration, sizes in enumerate(_sizes(typical, plan, runs)):
        if iteration >= fewest and is_over():
            return
        for place in order(len(models), number + iteration):
            before = int(typical[place] < _LONG)
            timing = models[place].time(iteration % plan.samples, sizes[place], before)
            _note(found, place, timing, plan.clock)


def _warmed(found: Round, place: int, model: ModelProcess, plan: TrialPlan) -> float:
    """Run a model on each sample before its first iteration; return the seconds of one run."""
    slowest = 0.0
    for sample in range(plan.samples):
        slowest = max(slowest, *model.time(sample, 1, 0).wall)
    timing = model.time(0, 1 if slowest >= _LONG else _WARM, 0)
    found.started[place], found.memory[place] = timing.started, timing.memory
    found.nodes[place] = timing.nodes
    return statistics.median(timing.wall)


def _sizes(
    typical: dict[int, float], plan: TrialPlan, runs: int | None
) -> Iterator[dict[int, int]]:
    """Yield the timed runs of each model in each iteration."""
    if runs is None:
        by_time = {
            place: min(_MOST_RUNS, max(1, math.ceil(_BLOCK / max(seconds, 1e-9))))
            for place, seconds in typical.items()
        }
        for _ in range(plan.iterations):
            yield by_time
        return
    iterations = min(plan.iterations, runs)
    for iteration in range(iterations):
        yield dict.fromkeys(typical, _share(runs, iterations, iteration))


def _note(found: Round, place: int, timing: TimedRuns, clock: Clock) -> None:
    times = timing.wall if clock == "wall" else timing.processor
    # A clock may stand still during a short run; a ratio needs a positive time.
    found.iterations[place].append(max(statistics.median(times), 1e-9))
    found.runs[place] += len(times)
    found.wall[place] += sum(timing.wall)
    found.processor[place] += sum(timing.processor)
    found.memory[place] = timing.memory
