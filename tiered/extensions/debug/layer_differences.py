"""Two models, layer by layer: where the difference begins, and how it grows.

A tensor of one model is paired with the tensor of the other with its name, or else with the
last of the nodes that its own was made from (`provenance.metadata` writes these down). Both models
run with a slice of these tensors as outputs, never with all of them at once: first some far apart,
then those between the last that agrees and the first that does not, until that one is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from tiered.extensions.debug.models import OutputRow, class_of, describe_output
from tiered.extensions.debug.pipeline_runs import ModelLike, folder_of, opened, samples_of
from tiered.extensions.debug.runtimes import Referee, refereed
from tiered.graph.core.dtypes import is_float
from tiered.graph.core.provenance import ORIGINS
from tiered.runtime.compare.outputs import OutputDifference, compare
from tiered.runtime.inputs.samples import Source, in_dtypes_of
from tiered.runtime.session import as_proto
from tiered.support.errors import RuntimeFailure
from tiered.support.numerics import Numerics
from tiered.verify.part_extraction import GraphPart, tapped
from tiered.verify.random_values import random_values

Allowed = tuple[Numerics, float | None, float | None, float | None]
"""The numeric class, rtol, atol and the least cosine."""
SLICE = 8
"""How many tensors are looked at in one run."""


@dataclass(frozen=True)
class Layer:
    """One tensor of both models.

    Attributes:
        place: of its node among those of the second model, from 0.
        node, op_type: that node.
        first, second: the tensor's name in each model.
        row: how far apart they are.
    """

    place: int
    node: str
    op_type: str
    first: str
    second: str
    row: OutputRow

    @property
    def ok(self) -> bool:
        return self.row.difference.ok

    def __str__(self) -> str:
        found = self.row.difference
        if found.reason and found.cosine is None:
            return found.reason
        apart = "" if found.cosine is None else f", 1 - cosine {1 - found.cosine:.3g}"
        return f"max abs {found.max_abs:.3g}{apart}"


@dataclass(frozen=True)
class LayerComparison:
    """The layers that were looked at, in order.

    Attributes:
        first_wrong: the earliest one that differs by more than is allowed, if one does.
        pairs: how many tensors the two models have in common.
        runs: how often each model ran.
        numerics: the allowed difference.
        referee: the runtime that ran them.
    """

    layers: tuple[Layer, ...]
    first_wrong: Layer | None
    pairs: int
    runs: int
    numerics: Numerics
    referee: Referee = field(default_factory=Referee)


@dataclass(frozen=True)
class _Pair:
    place: int
    node: str
    op_type: str
    first: str
    second: str


def layer_precision_compare(
    first: ModelLike,
    second: ModelLike,
    *,
    inputs: Iterable[Source] = (),
    seed: int = 0,
    numerics: Numerics | str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    min_cosine: float | None = None,
    every: bool = False,
    slice_size: int = SLICE,
) -> LayerComparison:
    """Compare two models layer by layer.

    Floats of two dtypes are compared in the wider one, with its tolerances, as outputs are.
    onnxruntime runs the models, unless one has 16-bit floats; see `debug/runtimes.py`.

    Args:
        first: the model that is right; a file or a proto.
        second: the model made from it.
        inputs: files or arrays, the first sample is used; made if there are none.
        seed: of inputs that are made.
        numerics, rtol, atol, min_cosine: the allowed difference; see `compare_models`.
        every: look at all layers, slice by slice, instead of searching the first wrong one.
        slice_size: how many tensors are looked at in one run.

    Raises:
        RuntimeFailure: the first model does not run.
        UsageError: a tolerance that the numeric class has not.
    """
    protos = as_proto(first), as_proto(second)
    folders = folder_of(first), folder_of(second)
    referee, feeds = _start(first, second, list(inputs), seed)
    pairs = _pairs(*protos)
    promised = class_of(numerics, min_cosine)
    allowed = promised, rtol, atol, min_cosine
    random = tuple(map(random_values, protos))
    scope = _Scope(pairs, protos, folders, feeds, allowed, referee, random)
    if every:
        for start in range(0, len(pairs), slice_size):
            scope.look(range(start, min(start + slice_size, len(pairs))))
    else:
        _search(scope, slice_size)
    layers = tuple(scope.looked[number] for number in sorted(scope.looked))
    wrong = next((layer for layer in layers if not layer.ok), None)
    return LayerComparison(layers, wrong, len(pairs), scope.runs, promised, referee)


def _start(
    first: ModelLike, second: ModelLike, sources: Sequence[Source], seed: int
) -> tuple[Referee, Mapping[str, Any]]:
    """Return the runtime that runs both models, and their feeds."""

    def tried(referee: Referee) -> tuple[Referee, Mapping[str, Any]]:
        with referee.open(first) as session:
            feeds = samples_of(first, session, sources, seed)[0].feeds
        if referee.why:  # of several runtimes, the one that runs the second model, too
            with referee.open(second) as session:
                given = {name: feeds[name] for name in session.inputs if name in feeds}
                session.run(in_dtypes_of(as_proto(second), given))
        return referee, feeds

    try:
        return refereed(first, second, tried)
    except RuntimeFailure:
        with opened(first) as session:  # a second model that does not run is wrong somewhere
            return Referee(), samples_of(first, session, sources, seed)[0].feeds


@dataclass
class _Scope:
    """The layers to compare, and those compared so far."""

    pairs: Sequence[_Pair]
    protos: tuple[onnx.ModelProto, onnx.ModelProto]
    folders: tuple[str, str]
    feeds: Mapping[str, Any]
    allowed: Allowed
    referee: Referee
    random: tuple[frozenset[str], ...]
    looked: dict[int, Layer] = field(default_factory=dict)
    runs: int = 0

    def look(self, numbers: Sequence[int]) -> None:
        """Run both models with some layers as outputs."""
        wanted = [number for number in numbers if number not in self.looked]
        if not wanted:
            return
        self.runs += 1
        chosen = [self.pairs[number] for number in wanted]
        first = self._values(0, [pair.first for pair in chosen])
        second = self._values(1, [pair.second for pair in chosen])
        if isinstance(first, str):
            raise RuntimeFailure(f"the first model does not run: {first}")
        if isinstance(second, str) and len(wanted) > 1:
            for number in wanted:  # one of them is why
                self.look([number])
            return
        for number, pair in zip(wanted, chosen, strict=True):
            is_random = pair.first in self.random[0] or pair.second in self.random[1]
            self.looked[number] = _layer(pair, first, second, self.allowed, is_random=is_random)

    def _values(self, side: int, names: Sequence[str]) -> Mapping[str, Any] | str:
        """Return tensors of a run by name; or a reason why the run fails."""
        try:
            probe = tapped(self.protos[side], names, {})
            with self.referee.open(probe, self.folders[side]) as session:
                feeds = {name: self.feeds[name] for name in session.inputs if name in self.feeds}
                return session.run(in_dtypes_of(self.protos[side], feeds))
        except RuntimeFailure as error:
            return str(error)


def _search(scope: _Scope, slice_size: int) -> None:
    """Compare layers until the first wrong one follows a right one."""
    low, high = -1, len(scope.pairs)
    while high - low > 1:
        places = _spread(low, high, slice_size)
        if high == len(scope.pairs):  # the first look
            places = sorted({*places, high - 1})
        scope.look(places)
        wrong = next((place for place in places if not scope.looked[place].ok), None)
        low = max((place for place in places if wrong is None or place < wrong), default=low)
        if wrong is None and high == len(scope.pairs):
            return
        high = high if wrong is None else wrong


def _spread(low: int, high: int, count: int) -> list[int]:
    """Return `count` places between two, evenly."""
    inside = high - low - 1
    count = min(count, inside)
    step = (inside + 1) / (count + 1)
    return sorted({min(high - 1, low + max(1, round(step * at))) for at in range(1, count + 1)})


def _pairs(first: onnx.ModelProto, second: onnx.ModelProto) -> list[_Pair]:
    """Return the tensors that answer to each other, in the order of the second model."""
    made = GraphPart.of(first).producer
    nodes = {node.name or next(iter(node.output), ""): node for node in first.graph.node}
    found = []
    for place, node in enumerate(second.graph.node):
        if node.op_type == "Constant":
            continue
        for at, name in enumerate(node.output):
            answer = name if name in made else _origin(node, at, nodes)
            if name and answer:
                label = node.name or node.output[0]
                found.append(_Pair(place, label, node.op_type, answer, name))
    return found


def _origin(node: onnx.NodeProto, at: int, nodes: Mapping[str, onnx.NodeProto]) -> str:
    """Return the outputs of the last original node of a node, by its metadata."""
    noted = next((entry.value for entry in node.metadata_props if entry.key == ORIGINS), "")
    sources = [nodes[name] for name in noted.split("; ") if name in nodes]
    if not sources or at >= len(sources[-1].output):
        return ""
    return sources[-1].output[at]


def _layer(
    pair: _Pair,
    first: Mapping[str, Any],
    second: Mapping[str, Any] | str,
    allowed: Allowed,
    *,
    is_random: bool = False,
) -> Layer:
    """Return how the two tensors of a pair compare, whatever their float dtypes are."""
    numerics, rtol, atol, min_cosine = allowed
    if isinstance(second, str):
        row = OutputRow(OutputDifference(pair.second, False, reason=f"does not run: {second}"))
    else:
        expected, actual = first[pair.first], second[pair.second]
        if _are_floats(expected, actual) and expected.dtype != actual.dtype:
            wider = _wider(expected.dtype, actual.dtype)
            expected, actual = expected.astype(wider), actual.astype(wider)
        found = compare(
            {pair.second: expected},
            {pair.second: actual},
            numerics,
            rtol=rtol,
            atol=atol,
            min_cosine=min_cosine,
            random=[pair.second] if is_random else (),
        )
        row = describe_output(found.outputs[0], expected, actual)
    return Layer(pair.place, pair.node, pair.op_type, pair.first, pair.second, row)


def _wider(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype that has all numbers of two float dtypes."""
    if one.itemsize == other.itemsize:
        return np.dtype(np.float32)
    return max(one, other, key=lambda dtype: dtype.itemsize)


def _are_floats(*values: Any) -> bool:
    return all(isinstance(value, np.ndarray) and is_float(value.dtype) for value in values)
