"""What the values of a large model are: recorded in one run of it, as far as they may be kept."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import onnx

from tiered.errors import OutOfMemory
from tiered.graph import Model, Stamp
from tiered.graph.core.dtypes import bits_of
from tiered.graph.io.export import export_model
from tiered.verify.extract import Part
from tiered.verify.live_extract import part_of
from tiered.verify.samples import Sample, Wanted, samples_for
from tiered.verify.sliced_session import SlicedSession

if TYPE_CHECKING:
    from tiered.runtime import Worker

RECORDED: Final = 1 << 28
"""Bytes of the values of one run that are kept, the smallest ones first."""


@dataclass
class RecordedBaseline:
    """A model at one moment, as something to cut from.

    Attributes:
        stamp: the moment.
        part: the model.
        samples: what it ran on; nothing if it did not run.
        values: of each such run, by name.
    """

    stamp: Stamp
    part: Part
    samples: list[Sample] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)


def recorded_baseline(
    model: Model, worker: Worker, wanted: Wanted, budget: int
) -> tuple[RecordedBaseline, str]:
    """Return a model as it is, with values of a run if that fits into the budget, else why not.

    Raises:
        RuntimeFailure: onnxruntime does not run it.
        UsageError: the user's inputs do not fit it.
    """
    state = RecordedBaseline(model.journal.stamp(), part_of(model))
    try:
        session = SlicedSession(state.part, model.folder, worker, budget // 2)
        state.samples = samples_for(_interface(model), session, wanted)
        sizes = _sizes(model)
        for sample in state.samples:
            feeds = sample.inputs.feeds
            names = [*_smallest(sizes, sample.inputs.dims), *state.part.outputs]
            state.values.append({**feeds, **session.run(feeds, names)})
    except OutOfMemory as error:
        return RecordedBaseline(state.stamp, state.part), str(error)
    return state, ""


def _interface(model: Model) -> onnx.ModelProto:
    """Return a model without large weights, of which inputs can be made."""
    return export_model(model, is_bare=True)


def weights_of(model: Model) -> int:
    """Return the bytes of the initializers of the main graph."""
    tensors = (value.default for value in model.main.initializers)
    return sum(tensor.nbytes for tensor in tensors if tensor is not None)


def _sizes(model: Model) -> dict[str, tuple[int, tuple[Any, ...]]]:
    """Return the bits of an element and the dims of the values whose type is known."""
    found = {}
    for node in model.main.topological_order():
        for value in node.outputs:
            if value is None or value.dtype is None or value.shape is None:
                continue
            if value.dtype != onnx.TensorProto.STRING and not value.is_graph_output:
                found[value.name] = (bits_of(value.dtype), tuple(value.shape))
    return found


def _smallest(sizes: dict[str, tuple[int, tuple[Any, ...]]], dims: dict[str, int]) -> list[str]:
    """Return the names of the smallest values that may be kept."""
    nbytes: dict[str, float] = {}
    for name, (bits, shape) in sizes.items():
        bound = [dim if isinstance(dim, int) else dims.get(str(dim)) for dim in shape]
        known = [dim for dim in bound if dim is not None]
        if len(known) == len(bound):
            nbytes[name] = math.prod(known) * bits / 8
    kept, total = list[str](), 0.0
    for name in sorted(nbytes, key=nbytes.__getitem__):
        total += nbytes[name]
        if total > RECORDED:
            break
        kept.append(name)
    return kept
