"""How a changed interface relates to the one before, so that both models can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tiered.support.records import Record

Convert = Callable[[Any], Any]

_NONE: Final[Mapping[str, tuple[str, Convert | None]]] = {}


class ListMap(Record):
    """A list of what is found in the samples of a batch, one sample after the other.

    Attributes:
        axis: the axis of the list.
        steps: what each further sample adds to the elements, by the last index; one for all.
    """

    axis: int
    steps: tuple[int, ...]


class BatchMap(Record):
    """A batch of another size: where its samples are.

    Attributes:
        old: the size of the batch before.
        inputs: the axis of the batch, by input before.
        outputs: the axis of the batch by output before, the number of groups of all samples there,
            and of neighbours of one sample, -1 for one that is not known; a list of what is found;
            None for an output that is the same for every batch.
    """

    old: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, tuple[int, int, int] | ListMap | None]

    def named(self, earlier: InterfaceMap) -> BatchMap:
        """Return the same by the names before an earlier edit of the interface."""
        before = {name: source for name, (source, _) in earlier.tensors.items()}
        inputs = {before.get(name, name): axis for name, axis in self.inputs.items()}
        outputs = {before.get(name, name): place for name, place in self.outputs.items()}
        return BatchMap(self.old, inputs, outputs)


class PackMap(Record):
    """Rows that hold several sequences, where they had one.

    Attributes:
        inputs: the packed inputs, [rows, columns, ...].
        pooled: the outputs with one row for each sequence; the others are packed as the inputs.
        most: how many sequences the model takes, 0 for any number.
    """

    inputs: tuple[str, ...]
    pooled: frozenset[str]
    most: int = 0


class InterfaceMap(Record):
    """Which arrays go together, before and after an edit of the interface.

    Attributes:
        tensors: for a new input or output: the tensor before, and the conversion of its array.
            Without an entry, it is the tensor of its name.
        feeds: for an input before: the new input, and the conversion of its array, where the new
            one cannot be computed from tensors before.
        new: why outputs for the new interface cannot be compared; "" if they can.
        batch: where the samples of a batch of another size are; None if it has the same size.
        packed: which rows hold several sequences; None if none do.
    """

    tensors: Mapping[str, tuple[str, Convert | None]] = _NONE
    feeds: Mapping[str, tuple[str, Convert | None]] = _NONE
    new: str = ""
    batch: BatchMap | None = None
    packed: PackMap | None = None

    def after(self, earlier: InterfaceMap) -> InterfaceMap:
        """Return the map of an earlier edit and this one."""
        tensors = dict(earlier.tensors)
        for name, (source, convert) in self.tensors.items():
            first, before = earlier.tensors.get(source, (source, None))
            tensors[name] = first, _chained(before, convert)
        feeds = dict(self.feeds)
        for name, (source, convert) in earlier.feeds.items():
            last, now = self.feeds.get(source, (source, None))
            feeds[name] = last, _chained(now, convert)
        batch = earlier.batch
        if batch is None and self.batch is not None:
            batch = self.batch.named(earlier)
        new, packed = self.new or earlier.new, self.packed or earlier.packed
        if packed is not None and (tensors or feeds or batch is not None):
            new = new or "rows hold several sequences, and the interface changed otherwise too"
        return InterfaceMap(tensors, feeds, new, batch, packed)


def _chained(first: Convert | None, second: Convert | None) -> Convert | None:
    if first is None or second is None:
        return first or second
    return lambda array: second(first(array))


def converted(convert: Convert | None, array: Any) -> Any:
    """Return an array after a conversion, if there is one."""
    return array if convert is None else convert(array)
