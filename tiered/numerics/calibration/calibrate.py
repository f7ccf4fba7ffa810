"""calibrate: run a model on samples, a few nodes at a time, and measure planned tensors only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx

from tiered.analysis.roles.masks import LARGEST, mask_limits
from tiered.graph import Model, Value
from tiered.graph.intervals.interval import Interval
from tiered.graph.intervals.range_analysis import Ranges, ranges
from tiered.graph.io.export import export_model
from tiered.numerics.calibration.observers import Method, Range, Seen, observer_of, ranges_of
from tiered.runtime import shared_worker
from tiered.runtime.inputs.bound_model import BoundModel
from tiered.runtime.inputs.samples import Source, Wanted, read_samples, samples_for
from tiered.verify.part_extraction import GraphPart
from tiered.verify.sliced_session import SlicedSession

SLICE: Final = 128
"""How many nodes run at once; their planned tensors are in memory together."""

MADE: Final = 8
"""How many samples are made for a model without any from the user."""

Feeds = Mapping[str, Any]
OnFound = Callable[[str], None]


@dataclass(frozen=True)
class Calibration:
    """The measured ranges of values of the main graph.

    Attributes:
        ranges: by name; a value without any finite number has none.
        samples: how many samples were run.
        is_made: whether they were made, because the user gave none.
    """

    ranges: Mapping[str, Range]
    samples: int
    is_made: bool = False
    proven: Mapping[str, Interval] = field(default_factory=dict)

    def interval(self, name: str) -> tuple[float, float] | None:
        """Return the range to represent: measured, and inside of what is proven."""
        found = self.ranges.get(name)
        if found is None:
            return None
        low, high = found.low, found.high
        proof = self.proven.get(name)
        if proof is not None and max(low, proof.low) <= min(high, proof.high):
            low, high = max(low, proof.low), min(high, proof.high)
        return low, high


class SampledModel:
    """A model that runs on samples, slice by slice, in the worker; each slice is opened once.

    Use it as a context manager.

    Args:
        proto: the model.
        folder: where its external data is.
        nodes: how many nodes run at once.
    """

    def __init__(self, proto: onnx.ModelProto, folder: str = "", *, nodes: int = SLICE) -> None:
        self._proto = proto
        self._session = SlicedSession(
            GraphPart.of(proto), folder, shared_worker(), None, nodes=nodes, keeps_open=True
        )

    @classmethod
    def of(cls, model: Model) -> SampledModel:
        """Return a model as it is now."""
        return cls(export_model(model, is_bare=True), model.folder)

    def __enter__(self) -> SampledModel:
        return self

    def __exit__(self, *error: object) -> None:
        self._session.close()

    def samples(
        self, given: Iterable[Source] = (), *, seed: int = 0, count: int = MADE
    ) -> list[dict[str, Any]]:
        """Return the user's samples, each with all inputs; without any, `count` made ones.

        Raises:
            ModelError: a file cannot be read.
            UsageError: a file belongs to no input.
            RuntimeFailure: no inputs were found that the model accepts.
        """
        read = read_samples(given)
        if read:
            wanted = Wanted(read, seed=seed)
            return [each.inputs.feeds for each in samples_for(self._proto, self._session, wanted)]
        bound = BoundModel(self._proto)
        seeds = (Wanted(bindings=1, seed=seed + number) for number in range(count))
        made = (samples_for(self._proto, self._session, wanted, bound)[0] for wanted in seeds)
        return [each.inputs.feeds for each in made]

    def stream(self, feeds: Feeds, names: Collection[str]) -> Iterator[tuple[str, Any]]:
        """Yield the named values of the main graph, inputs included, for a sample."""
        wanted = frozenset(names)
        yield from ((name, array) for name, array in feeds.items() if name in wanted)
        yield from self._session.stream(feeds, wanted)

    def run(self, feeds: Feeds) -> dict[str, Any]:
        """Return the outputs for a sample."""
        return self._session.run(feeds)


def calibrate(
    model: Model,
    planned: Iterable[Value],
    given: Iterable[Source] = (),
    *,
    method: Method = "mse",
    percentile: float = 99.999,
    levels: int = 255,
    seed: int = 0,
    samples: int = MADE,
    on_sample: OnFound = lambda message: None,
) -> Calibration:
    """Measure the ranges of planned values of the main graph.

    No other value is looked at. NaN, Inf, numbers of 1e30 and more, and the masks of scores
    decide no range. Memory holds one sample: what later nodes read, and a slice of planned values.

    Args:
        model: the model, which is not edited.
        planned: values of floats; those of bodies cannot be measured.
        given: the user's samples: files, folders or dicts of arrays; without any they are made.
        method: "minmax", "percentile", "mse" or "entropy".
        percentile: of the numbers that the method of that name keeps.
        levels: the steps between the ends of a range, for the method "mse".
        seed: of made samples.
        samples: how many of them are made.
        on_sample: called before each sample, for progress.

    Raises:
        UsageError: an unknown method, or a file of inputs that belongs to no input.
        ModelError: a file of inputs cannot be read.
        RuntimeFailure: onnxruntime does not run the model.
    """
    values = {value.name: value for value in planned if value.owner.is_main}
    read = list(given)
    with SampledModel.of(model) as running:
        feeds = running.samples(read, seed=seed, count=samples)
        limits = mask_limits(model, feeds)
        seen = {
            name: Seen(observer_of(method, percentile, levels), limits.get(value, -np.inf), LARGEST)
            for name, value in values.items()
        }
        for number, each in enumerate(feeds, 1):
            on_sample(f"calibrating: sample {number} of {len(feeds)}")
            for name, array in (*_defaults(values, each), *running.stream(each, seen)):
                if isinstance(array, np.ndarray):
                    seen[name].observe(array)
    proofs = _proofs(model.analysis(ranges), values)
    return Calibration(ranges_of(seen), len(feeds), not read, proofs)


def _defaults(values: Mapping[str, Value], feeds: Feeds) -> Iterator[tuple[str, Any]]:
    """Yield the defaults of inputs that a sample does not feed."""
    for name, value in values.items():
        if value.default is not None and name not in feeds:
            yield name, value.default.numpy()


def _proofs(known: Ranges, values: Mapping[str, Value]) -> dict[str, Interval]:
    """Return the proven interval of each value that has one."""
    return {name: known[value] for name, value in values.items() if known.has_proof(value)}
