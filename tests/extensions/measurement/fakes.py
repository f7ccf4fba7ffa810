"""A machine and processes that exist in numbers alone: nothing here takes time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tiered.runtime.worker.client import TimedRuns


class Machine:
    """A machine on which processes differ, runs vary, and the speed drifts.

    Args:
        seconds: of a run of each model.
        seed: of the noise.
        process: by how much processes of one model differ: the standard deviation of the
            logarithm.
        noise: the same of runs.
        drift: of the speed, for each second.
        opening: seconds to open a model.
    """

    def __init__(
        self,
        seconds: Sequence[float],
        *,
        seed: int = 0,
        process: float = 0.0,
        noise: float = 0.0,
        drift: float = 0.0,
        opening: float = 0.5,
    ) -> None:
        self._seconds, self._random = seconds, random.Random(seed)
        self._process, self._noise, self._drift = process, noise, drift
        self._opening = opening
        self.now = 0.0
        self.log: list[tuple[str, int]] = []
        self.is_interrupted: Callable[[], bool] = lambda: False

    @contextmanager
    def open(self, place: int) -> Iterator[Process]:
        """Open a model in a new process."""
        self.now += self._opening
        self.log.append(("open", place))
        yield Process(self, place, self._random.lognormvariate(0, self._process))
        self.log.append(("close", place))

    def run(self, place: int, by_chance: float) -> float:
        """Run a model once, and return the seconds."""
        speed = 1 + self._drift * self.now
        taken = self._seconds[place] * by_chance * speed
        if self._noise:
            taken *= self._random.lognormvariate(0, self._noise)
        self.now += taken
        return taken

    @property
    def opening(self) -> float:
        """The seconds to open a model."""
        return self._opening


class Process:
    """An open model."""

    def __init__(self, machine: Machine, place: int, by_chance: float) -> None:
        self._machine, self._place, self._by_chance = machine, place, by_chance

    def time(self, sample: int, runs: int, before: int) -> TimedRuns:
        """Time runs, as a worker does."""
        if self._machine.is_interrupted():
            raise KeyboardInterrupt
        self._machine.log.append(("time", self._place))
        for _ in range(before):
            self._machine.run(self._place, self._by_chance)
        taken = [self._machine.run(self._place, self._by_chance) for _ in range(runs)]
        worked = [each * 0.99 for each in taken]
        return TimedRuns(taken, worked, self._machine.opening, 1000 + sample, {})
