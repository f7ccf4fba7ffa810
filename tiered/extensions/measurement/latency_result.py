"""What a measurement of latency comes to: medians, ratios, verdicts and remarks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tiered.extensions.measurement.claims import LETTERS, Claim, parse_claim
from tiered.extensions.measurement.medians import (
    CONFIDENCE,
    MedianInterval,
    drift,
    fewest_for,
    median_interval,
    ratio_interval,
    spread,
)
from tiered.extensions.measurement.trials import Round
from tiered.runtime.opening import Clock, Opening
from tiered.support.amounts import counted
from tiered.support.errors import TargetError

NO_DIFFERENCE: Final = "no difference"
_BUSY: Final = 0.1
"""The share of the time without the processor from which other work is reported."""


@dataclass(frozen=True)
class ModelLatency:
    """One model.

    Attributes:
        letter: its place: A is the first.
        name: its file, or what it is called in messages.
        latency: seconds of one run.
        runs: how many were timed.
        start: seconds to open it.
        memory: bytes that opening and running it add to the peak of a process, None if unknown.
        file_bytes: the size of the model with its external data.
    """

    letter: str
    name: str
    latency: MedianInterval
    runs: int
    start: MedianInterval
    memory: int | None
    file_bytes: int


@dataclass(frozen=True)
class Ratio:
    """The latency of one model by that of another, in the same processes' lifetime.

    Attributes:
        of, to: their letters.
        interval: of the ratio; below 1 the first one is faster.
        verdict: "faster", "slower", "no difference", or "too few rounds" for one of these.
    """

    of: str
    to: str
    interval: MedianInterval
    verdict: str


@dataclass(frozen=True)
class Bench:
    """The latency of models, and how it was measured.

    Attributes:
        names, file_bytes: of the models.
        rounds: what was measured in each set of processes.
        opening: level, threads and provider of onnxruntime.
        clock: which time counts.
        inputs: the inputs that the models ran on, in words.
        is_complete: whether all rounds that were planned are there.
    """

    names: tuple[str, ...]
    file_bytes: tuple[int, ...]
    rounds: tuple[Round, ...]
    opening: Opening
    clock: Clock
    inputs: tuple[str, ...] = ()
    is_complete: bool = True

    @cached_property
    def models(self) -> tuple[ModelLatency, ...]:
        """The models in their order."""
        return tuple(self._latency(place) for place in range(len(self.names)))

    @cached_property
    def ratios(self) -> tuple[Ratio, ...]:
        """Each model but the first beside the first."""
        return tuple(self.ratio(place, 0) for place in range(1, len(self.names)))

    def ratio(self, of: int, to: int) -> Ratio:
        """Return the ratio of the latencies of two models, by their places."""
        differences = [each.difference(of, to) for each in self.rounds]
        interval = ratio_interval(differences)
        return Ratio(LETTERS[of], LETTERS[to], interval, _verdict(interval))

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know of the machine and of the figures."""
        return tuple(self._remarks())

    def check(self, claims: Iterable[Claim | str]) -> None:
        """Raise unless all expectations hold with their whole intervals.

        Raises:
            UsageError: one does not parse.
            TargetError: it names those that do not hold.
        """
        parsed = [
            parse_claim(claim, len(self.names)) if isinstance(claim, str) else claim
            for claim in claims
        ]
        failed = [text for text in map(self.shortfall, parsed) if text]
        if failed:
            raise TargetError("\n  ".join(failed))

    def shortfall(self, claim: Claim) -> str:
        """Return why an expectation does not hold; an empty string if it does."""
        found = self.ratio(claim.of, claim.to)
        ratio, name = found.interval, f"{found.of}/{found.to}"
        said = f"{name} is {ratio.median:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
        if ratio.confidence < CONFIDENCE:
            return f"expected {claim}: not shown, {_few(len(self.rounds))}; {said}"
        if claim.holds(ratio):
            return ""
        if claim.is_refuted(ratio):
            return f"expected {claim}: {said}"
        return f"expected {claim}: not shown, {said}; more --rounds narrow the interval"

    def _latency(self, place: int) -> ModelLatency:
        known = [each.memory[place] for each in self.rounds]
        memory = [each for each in known if each is not None]
        return ModelLatency(
            LETTERS[place],
            self.names[place],
            median_interval([each.median(place) for each in self.rounds]),
            sum(each.runs[place] for each in self.rounds),
            median_interval([each.started[place] for each in self.rounds]),
            round(statistics.median(memory)) if memory else None,
            self.file_bytes[place],
        )

    def _remarks(self) -> Iterator[str]:
        if not self.is_complete:
            yield "interrupted: the figures are those of the rounds until then"
        if len(self.rounds) < fewest_for():
            yield _few(len(self.rounds))
        yield from self._nodes_elsewhere()
        speeds = [_speed(each, len(self.names)) for each in self.rounds]
        change, share = drift(speeds), spread(speeds)
        beside = "; ratios are not affected, as the models alternate" if self.names[1:] else ""
        if change is not None:
            kind = "slower" if change > 1 else "faster"
            yield (
                f"the machine drifted: the last rounds were {abs(change - 1):.0%} {kind} than the "
                f"first ones{beside}"
            )
        elif share is not None:
            yield f"the machine is unsteady: rounds differ by {share:.0%}{beside}"
        waiting = self._waiting()
        if waiting is not None:
            yield (
                f"the machine is busy: runs waited for the processor {waiting:.0%} of their time; "
                "the clock 'processor' leaves that out"
            )

    def _nodes_elsewhere(self) -> Iterator[str]:
        """Yield which models have nodes that the provider does not take."""
        provider = self.opening.provider
        for name, nodes in zip(self.names, self.rounds[0].nodes, strict=True):
            left = sum(count for each, count in nodes.items() if each != provider)
            if left:
                yield f"{name}: {left} of {sum(nodes.values())} nodes are not taken by {provider}"

    def _waiting(self) -> float | None:
        """Return the share of the time that a model of one thread was not running, if it counts."""
        if self.opening.threads != 1 or self.opening.provider != Opening.provider:
            return None
        wall = sum(sum(each.wall) for each in self.rounds)
        share = 1 - sum(sum(each.processor) for each in self.rounds) / max(wall, 1e-9)
        return share if share >= _BUSY and self.clock == "wall" else None


def _verdict(ratio: MedianInterval) -> str:
    if ratio.confidence < CONFIDENCE:
        return "too few rounds"
    if ratio.high < 1:
        return "faster"
    return "slower" if ratio.low > 1 else NO_DIFFERENCE


def _few(rounds: int) -> str:
    return (
        f"{counted(rounds, 'round is', 'rounds are')} too few for a {CONFIDENCE:.0%} interval, "
        f"which takes {fewest_for()} (--rounds, --minutes and --runs limit them)"
    )


def _speed(each: Round, count: int) -> float:
    """Return the geometric mean of the seconds of all models in a round."""
    logs: Sequence[float] = [math.log(each.median(place)) for place in range(count)]
    return math.exp(statistics.mean(logs))
