"""run: the outputs of a model, or all its values, slice by slice, with statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
import onnx

from tiered.extensions.debug.pipeline_runs import ModelLike, samples_of
from tiered.graph import Model
from tiered.graph.io.export import export_model
from tiered.runtime import shared_worker
from tiered.support.errors import UsageError
from tiered.verify.part_extraction import GraphPart
from tiered.verify.sliced_session import SlicedSession

SLICE = 16
"""How many nodes run at once; their results are in memory together."""


@dataclass(frozen=True)
class ValueStatistics:
    """The contents of one value.

    Attributes:
        name: of the value.
        node, op_type: the node that computes it; "" for inputs and constants.
        dtype: of the elements; "sequence" or "optional" for what is no tensor.
        shape: None for what is no tensor.
        minimum, maximum: of the numbers that are no NaN; None where there are none.
        nans, infs, zeros: how many elements are NaN, ±Inf, ±0.
    """

    name: str
    node: str
    op_type: str
    dtype: str
    shape: tuple[int, ...] | None
    minimum: float | None = None
    maximum: float | None = None
    nans: int = 0
    infs: int = 0
    zeros: int = 0


class AllValues:
    """All values that nodes of the main graph compute, in order; iteration runs the model.

    A few nodes run at once. Their results are kept until the last node has read them, so that
    memory holds what a run of the model holds, and one slice. Each iteration runs the model again.

    Attributes:
        feeds: the inputs.
    """

    def __init__(self, session: SlicedSession, part: GraphPart, feeds: Mapping[str, Any]) -> None:
        self.feeds = dict(feeds)
        self._session = session
        self._part = part

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and the array of each value."""
        return self._session.stream(self.feeds)

    def statistics(self) -> Iterator[ValueStatistics]:
        """Yield the statistics of each value."""
        for name, value in self:
            yield self.describe(name, value)

    def describe(self, name: str, value: Any) -> ValueStatistics:
        """Return the statistics of a value."""
        at = self._part.producer.get(name)
        if at is None:
            return _described(name, "", "", value)
        node = self._part.nodes[at]
        return _described(name, node.name or node.output[0], node.op_type, value)


@overload
def run(
    model: ModelLike | Model,
    feeds: Mapping[str, Any] | None = None,
    *,
    all_values: Literal[False] = False,
    seed: int = 0,
) -> dict[str, Any]: ...
@overload
def run(
    model: ModelLike | Model,
    feeds: Mapping[str, Any] | None = None,
    *,
    all_values: Literal[True],
    seed: int = 0,
) -> AllValues: ...
def run(
    model: ModelLike | Model,
    feeds: Mapping[str, Any] | None = None,
    *,
    all_values: bool = False,
    seed: int = 0,
) -> dict[str, Any] | AllValues:
    """Run a model on onnxruntime, in another process, without optimisations of its own.

    Args:
        model: a file, a ModelProto or a Model.
        feeds: arrays of all inputs by name; without any, inputs are made.
        all_values: return all values that nodes compute, lazily, instead of the outputs.
        seed: of the inputs that are made.

    Raises:
        UsageError: an input is missing, or the model has no such input.
        ModelError: the file cannot be read.
        RuntimeFailure: onnxruntime does not run the model.
    """
    view = model if isinstance(model, Model) else _loaded(model)
    part = GraphPart.of(export_model(view, is_bare=True))
    session = SlicedSession(part, view.folder, shared_worker(), None, nodes=SLICE)
    proto = export_model(view, is_bare=True)
    given = samples_of(proto, session, [] if feeds is None else [feeds], seed)[0].feeds
    found = AllValues(session, part, given)
    return found if all_values else session.run(given)


def _loaded(model: ModelLike) -> Model:
    if isinstance(model, bytes):
        raise UsageError("run takes a path, a ModelProto or a Model, not bytes")
    if isinstance(model, onnx.ModelProto):
        return Model.from_proto(model)
    return Model.load(model)


def _described(name: str, node: str, op_type: str, value: Any) -> ValueStatistics:
    if not isinstance(value, np.ndarray | np.generic):
        kind = "optional" if value is None else "sequence"
        return ValueStatistics(name, node, op_type, kind, None)
    array = np.asarray(value)
    shown = ValueStatistics(name, node, op_type, _dtype(array), array.shape)
    if array.dtype.kind in "OSU" or not array.size:
        return shown
    is_plain = array.dtype.kind in "biufc"
    # 16-bit and smaller floats of ml_dtypes are exact in float32.
    numbers = array if is_plain else array.astype(np.float32)
    nans = np.isnan(numbers) if numbers.dtype.kind in "fc" else np.zeros(array.shape, bool)
    infs = int(np.isinf(numbers).sum()) if numbers.dtype.kind in "fc" else 0
    kept = numbers[~nans]
    if numbers.dtype.kind == "c":
        kept = np.abs(kept)
    low, high = (kept.min().item(), kept.max().item()) if kept.size else (None, None)
    return ValueStatistics(
        name, node, op_type, _dtype(array), array.shape, low, high,
        int(nans.sum()), infs, int((numbers == 0).sum()),
    )  # fmt: skip


def _dtype(array: np.ndarray[Any, Any]) -> str:
    return "string" if array.dtype.kind in "OSU" else array.dtype.name
