"""A model for a batch of another size: each sample is compared with a run of its own.

The model before takes a batch of its size. The samples of the new batch go through it in parts of
that size, and the outputs are put together again. The last part begins again at the first sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tiered.graph.core.interface_map import BatchMap, InterfaceMap, ListMap
from tiered.support.errors import RuntimeFailure

if TYPE_CHECKING:
    import onnx

    from tiered.runtime.inputs.samples import Wanted

Outputs = dict[str, Any]


def parts(size: int, batch: BatchMap) -> list[list[int]]:
    """Return the samples of each run of the model before."""
    starts = range(0, size, batch.old)
    return [[(start + at) % size for at in range(batch.old)] for start in starts]


def part_of(feeds: Mapping[str, Any], samples: Sequence[int], batch: BatchMap) -> Outputs:
    """Return the inputs of a run of the model before."""
    return {
        name: array.take(samples, axis=batch.inputs[name]) if name in batch.inputs else array
        for name, array in feeds.items()
    }


def batch_size(feeds: Mapping[str, Any], batch: BatchMap) -> int:
    """Return how many samples there are.

    Raises:
        RuntimeFailure: no input has them.
    """
    for name, axis in batch.inputs.items():
        if name in feeds:
            return int(feeds[name].shape[axis])
    raise RuntimeFailure("no input of the batch goes on")


def joined(
    runs: Sequence[Mapping[str, Any]], indices: Sequence[Sequence[int]], batch: BatchMap, size: int
) -> Outputs:
    """Return the outputs of the runs as those of one batch.

    Raises:
        RuntimeFailure: where the samples are in an output is not known, or an output that is the
            same for every batch differs between the runs.
    """
    found: Outputs = {}
    for name in runs[0]:
        arrays = [run[name] for run in runs]
        place = batch.outputs.get(name)
        if isinstance(place, ListMap):
            found[name] = _list_of(name, arrays, indices, batch.old, place)
        elif place is not None:
            found[name] = _joined(name, arrays, indices, batch.old, size, place)
        elif name in batch.outputs:
            first, *others = arrays
            if any(_bytes(array) != _bytes(first) for array in others):
                raise RuntimeFailure(f"output {name!r} of the model before differs by sample")
            found[name] = first
    return found


def _list_of(
    name: str, arrays: Sequence[Any], indices: Sequence[Sequence[int]], old: int, place: ListMap
) -> Any:
    """Return the lists of all runs as one; what a run has of a sample again is left out.

    Raises:
        RuntimeFailure: which entries are those of such a sample is not known.
    """
    steps, found = np.array(place.steps), []
    for number, (array, samples) in enumerate(zip(arrays, indices, strict=True)):
        own = [at for at, each in enumerate(samples) if each == number * old + at]
        kept = array if len(own) == old else _of_first(name, array, samples, len(own), place)
        found.append(kept + (steps * (number * old)).astype(array.dtype))
    return np.concatenate(found, axis=place.axis)


def _of_first(name: str, array: Any, samples: Sequence[int], count: int, place: ListMap) -> Any:
    """Return the entries of the first samples, by the number of the sample in each."""
    if len(set(samples)) == 1:  # the same entries for each
        return array.take(range(array.shape[place.axis] // len(samples)), axis=place.axis)
    at = next((at for at, step in enumerate(place.steps) if step), None)
    if at is None:
        raise RuntimeFailure(f"which sample the entries of output {name!r} are of is not known")
    numbers = array if len(place.steps) == 1 else array.take(at, axis=-1)
    rows = np.moveaxis(numbers, place.axis, 0).reshape(array.shape[place.axis], -1)
    return array.compress(rows[:, 0] < count * place.steps[at], axis=place.axis)


def _joined(
    name: str,
    arrays: Sequence[Any],
    indices: Sequence[Sequence[int]],
    old: int,
    size: int,
    place: tuple[int, int, int],
) -> Any:
    axis, outer, inner = place
    first, *others = arrays
    if isinstance(first, list):
        if any(len(each) != len(first) for each in others):
            raise RuntimeFailure(f"output {name!r} has another length for other samples")
        tensors = zip(*arrays, strict=True)
        return [_joined(name, each, indices, old, size, place) for each in tensors]
    shape = first.shape
    if outer == inner == -1:
        raise RuntimeFailure(f"where the samples are in output {name!r} is not known")
    outer = shape[axis] // (old * inner) if outer == -1 else outer
    inner = shape[axis] // (old * outer) if inner == -1 else inner
    before, after = shape[:axis], shape[axis + 1 :]
    whole: Any = np.empty((*before, outer, size, inner, *after), first.dtype)
    front = (slice(None),) * (axis + 1)
    for array, samples in zip(arrays, indices, strict=True):
        if array.shape != shape:
            raise RuntimeFailure(f"output {name!r} has another shape for other samples")
        whole[(*front, list(samples))] = array.reshape((*before, outer, old, inner, *after))
    return whole.reshape((*before, outer * size * inner, *after))


def _bytes(found: Any) -> list[bytes]:
    """Return the elements of a tensor, or of those of a sequence."""
    return [array.tobytes() for array in (found if isinstance(found, list) else [found])]


# --- the samples of the new batch -----------------------------------------------------------------


def wanted_sizes(
    model: onnx.ModelProto, wanted: Wanted, relation: InterfaceMap, batch: BatchMap
) -> Iterator[Wanted]:
    """Yield what is to be made: each with another size of a dynamic batch.

    Args:
        model: the model after.
        wanted: what the user asked for.
        relation: how the interfaces relate.
        batch: where the samples are.
    """
    sources = {name: source for name, (source, _) in relation.tensors.items()}
    dims = {info.name: info.type.tensor_type.shape.dim for info in model.graph.input}
    axes = {
        name: batch.inputs[sources.get(name, name)]
        for name in dims
        if sources.get(name, name) in batch.inputs
    }
    made = replace(wanted, given=())
    if all(dims[name][axis].HasField("dim_value") for name, axis in axes.items()):
        yield made
        return
    other = 3 if batch.old == 1 else 1
    for size in (2 * batch.old, other):
        shapes = dict(wanted.shapes)
        for name, axis in axes.items():
            known = list(shapes.get(name) or [dim.dim_param for dim in dims[name]])
            known[axis] = size
            shapes[name] = known
        yield replace(made, bindings=1, shapes=shapes)


def alike(fed: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the samples that have the sizes of the first one."""
    shapes = {name: array.shape for name, array in fed[0].items()}
    return [feeds for feeds in fed if all(feeds[name].shape == shapes[name] for name in shapes)]


def stacked(fed: Sequence[Mapping[str, Any]], size: int, batch: BatchMap) -> Outputs:
    """Return a batch of `size` of samples of one size; they begin again if they are too few."""
    first = fed[0]
    found = dict(first)
    for name, axis in batch.inputs.items():
        if name in first:
            every = np.concatenate([feeds[name] for feeds in fed], axis=axis)
            found[name] = every.take([at % every.shape[axis] for at in range(size)], axis=axis)
    return found
