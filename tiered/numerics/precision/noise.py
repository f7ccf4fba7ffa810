"""The signal to noise ratio of a quantised model: of its outputs, and of each product alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from tiered.graph.core.dtypes import is_float
from tiered.numerics.calibration.calibrate import SampledModel
from tiered.numerics.precision.budget import Budget, budget_of
from tiered.runtime import shared_worker
from tiered.support.numerics import decibels
from tiered.verify.random_values import random_values
from tiered.verify.sliced_session import open_model

Feeds = Mapping[str, Any]

_LOCAL = "/quantised alone"


class Noise:
    """The energy of a signal and of its error."""

    def __init__(self) -> None:
        self.signal = self.error = 0.0

    def add(self, exact: Any, found: Any) -> None:
        """Add the finite elements of an array of floats."""
        wide = np.asarray(exact, np.float64)
        is_finite = np.isfinite(wide) & (np.abs(wide) < 1e30)
        other = np.asarray(found, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            difference = np.where(is_finite, other - wide, 0.0)
        self.signal += float(np.square(wide[is_finite]).sum())
        self.error += float(np.square(difference).sum())

    @property
    def decibels(self) -> float:
        """The ratio in dB; infinite without an error."""
        return decibels(self.signal, self.error)


class FloatReference:
    """The outputs of a model of floats for samples, which quantised ones are compared with.

    Those that depend on random draws are not compared.

    Args:
        proto: the model.
        folder: where its external data is.
        feeds: the samples.
    """

    def __init__(self, proto: onnx.ModelProto, folder: str, feeds: Sequence[Feeds]) -> None:
        self.proto, self.folder, self.feeds = proto, folder, feeds
        drawn = random_values(proto)
        self._outputs = [
            {name: run[name] for name in run if name not in drawn}
            for run in _runs(proto, folder, feeds)
        ]

    def decibels(self, proto: onnx.ModelProto) -> float | None:
        """Return the ratio of a quantised model: the least of its outputs of floats; or None."""
        return self._ratio(_runs(proto, self.folder, self.feeds))

    def deployed(self, proto: onnx.ModelProto) -> float | None:
        """Return the ratio of a quantised model with onnxruntime's own optimisations; or None.

        Raises:
            RuntimeFailure: onnxruntime does not run it so.
        """
        return self._ratio(self._deployed(proto))

    def _deployed(self, proto: onnx.ModelProto) -> list[dict[str, Any]]:
        with open_model(shared_worker(), proto, folder=self.folder, setting="default") as running:
            return [running.run(each) for each in self.feeds]

    def _ratio(self, found: Sequence[Mapping[str, Any]]) -> float | None:
        noise: dict[str, Noise] = defaultdict(Noise)
        for exact, outputs in zip(self._outputs, found, strict=True):
            for name, array in _floats(exact).items():
                noise[name].add(array, outputs[name])
        return min((each.decibels for each in noise.values()), default=None)

    def differing(self, proto: onnx.ModelProto) -> float | None:
        """Return the share of elements that differ, in the worst output; None without any."""
        share = budget_of("relative<=0")
        pairs = zip(self._outputs, _runs(proto, self.folder, self.feeds), strict=True)
        return share.worst_of([share.measure(exact, found) for exact, found in pairs])

    def metric(
        self, proto: onnx.ModelProto, budget: Budget, *, is_deployed: bool = False
    ) -> float | None:
        """Return what a budget limits, of a quantised model: that of the worst sample.

        None if no output has an element to compare.

        Args:
            proto: the quantised model.
            budget: the limit.
            is_deployed: run it with onnxruntime's own optimisations.

        Raises:
            RuntimeFailure: onnxruntime does not run it so.
        """
        runs = self._deployed(proto) if is_deployed else _runs(proto, self.folder, self.feeds)
        pairs = zip(self._outputs, runs, strict=True)
        return budget.worst_of([budget.measure(exact, found) for exact, found in pairs])

    def shapes(self, names: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of values of the main graph for the first sample, in order."""
        with SampledModel(self.proto, self.folder) as running:
            found = running.stream(self.feeds[0], names)
            return {name: array.shape for name, array in found if isinstance(array, np.ndarray)}

    def alone(self, proto: onnx.ModelProto, names: Collection[str]) -> dict[str, float]:
        """Return the ratio of each product, when it alone is quantised, by the name of its output.

        Args:
            proto: the quantised model.
            names: the outputs of the products, in the main graph.
        """
        probe = _probe(self.proto, proto, names)
        wanted = {each for name in names for each in (name, f"{name}{_LOCAL}")}
        noise: dict[str, Noise] = defaultdict(Noise)
        waiting: dict[str, Any] = {}
        with SampledModel(probe, self.folder) as running:
            for feeds in self.feeds:
                for name, array in running.stream(feeds, wanted):
                    owner = name.removesuffix(_LOCAL)
                    other = waiting.pop(owner, None)
                    if other is None:
                        waiting[owner] = array
                    elif owner == name:
                        noise[owner].add(array, other)
                    else:
                        noise[owner].add(other, array)
        return {name: each.decibels for name, each in noise.items()}


def _runs(proto: onnx.ModelProto, folder: str, feeds: Sequence[Feeds]) -> list[dict[str, Any]]:
    with SampledModel(proto, folder) as running:
        return [running.run(each) for each in feeds]


def _floats(outputs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: array
        for name, array in outputs.items()
        if isinstance(array, np.ndarray) and is_float(array.dtype)
    }


def _probe(
    exact: onnx.ModelProto, quantized: onnx.ModelProto, names: Collection[str]
) -> onnx.ModelProto:
    """Return the exact model with each quantised product beside it, which reads exact values."""
    probe = onnx.ModelProto()
    probe.CopyFrom(exact)
    graph = probe.graph
    known = {name for node in graph.node for name in node.output}
    constants = {tensor.name for tensor in graph.initializer}
    for node in quantized.graph.node:
        is_product = any(name in names for name in node.output)
        if not is_product and any(name in known for name in node.output):
            continue
        made = graph.node.add()
        made.CopyFrom(node)
        if is_product:
            made.name = f"{node.output[0]}{_LOCAL}"
            made.output[0] += _LOCAL
    graph.initializer.extend(
        tensor for tensor in quantized.graph.initializer if tensor.name not in constants
    )
    versions = {each.domain for each in probe.opset_import}
    probe.opset_import.extend(
        each for each in quantized.opset_import if each.domain not in versions
    )
    return probe
