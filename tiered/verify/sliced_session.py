"""Running a model slice by slice, so that no more of its weights are in memory than may be.

A slice is a run of nodes that follow on each other. What later slices read is kept until then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx

from tiered.errors import OutOfMemory, RuntimeFailure
from tiered.runtime.dtypes import type_proto_of
from tiered.runtime.external_data import with_files
from tiered.verify.extract import Part, Types, cut
from tiered.verify.region import bytes_read

if TYPE_CHECKING:
    from tiered.runtime import Worker


class SlicedSession:
    """A model that runs in slices; `inputs`, `outputs` and `run` are those of `Session`.

    Args:
        part: the model.
        folder: where its external data is.
        worker: where it runs.
        most: the bytes of weights that a slice may have; with None each node is a slice.

    Raises:
        OutOfMemory: one node alone reads more than that.
    """

    def __init__(self, part: Part, folder: str, worker: Worker, most: int | None) -> None:
        self.inputs = tuple(name for name in part.inputs if name not in part.weights)
        self.outputs = tuple(part.outputs)
        self._part = part
        self._folder = folder
        self._worker = worker
        self._slices = list(_slices(part, most))
        self._last = _last_reads(part, self._slices)

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return values by name: any of the main graph, not only outputs.

        Raises:
            RuntimeFailure: a slice does not run.
        """
        wanted = self.outputs if outputs is None else tuple(outputs)
        values: dict[str, Any] = {**feeds, **self._defaults(feeds)}
        for at, nodes in enumerate(self._slices):
            made = {name for number in nodes for name in self._part.nodes[number].output}
            results = [
                name for name in made if name in wanted or self._last.get(name, -1) > at
            ]
            if results:
                values.update(self._run_slice(nodes, sorted(results), values))
            for name in [n for n in values if self._last.get(n, -1) <= at and n not in wanted]:
                del values[name]
        return {name: self._value(name, values) for name in wanted}

    def _run_slice(
        self, nodes: Collection[int], results: Sequence[str], values: Mapping[str, Any]
    ) -> dict[str, Any]:
        reads = self._part.border(nodes, results)
        missing = [name for name in reads if name not in values]
        if missing:
            raise RuntimeFailure(f"cannot run the model: it has no input for {missing[0]!r}")
        feeds = {name: values[name] for name in reads}
        model = cut(self._part, nodes, bare_types(feeds), results, reads)
        for info in model.graph.output:
            info.ClearField("type")
        folder = with_files(model, self._folder)
        with self._worker.open(model, folder=folder) as session:
            return session.run(feeds)

    def _defaults(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Return the defaults of the inputs that nobody fed."""
        names = (name for name in self._part.inputs if name not in feeds)
        return {name: self._part.array(name) for name in names if name in self._part.weights}

    def _value(self, name: str, values: Mapping[str, Any]) -> Any:
        return values[name] if name in values else self._part.array(name)


def bare_types(values: Mapping[str, Any]) -> Types:
    """Return the types of values, but for their shapes."""
    types: dict[str, onnx.TypeProto] = {}
    for name, value in values.items():
        try:
            types[name] = type_proto_of(value)
        except TypeError as error:
            raise RuntimeFailure(f"cannot run with {name!r} as an input: {error}") from error
        if types[name].HasField("tensor_type"):
            types[name].tensor_type.ClearField("shape")
    return types


def _slices(part: Part, most: int | None) -> Iterator[list[int]]:
    """Yield the nodes in order, in groups that read so many bytes of weights at most."""
    if most is None:
        yield from ([at] for at in part.in_order(part.nodes))
        return
    waiting: list[int] = []
    nbytes = 0
    for at in part.in_order(part.nodes):
        size = bytes_read(part, [at])
        if size > most:
            raise OutOfMemory(f"a single node reads {size / 2**20:,.0f} MiB of weights")
        if waiting and nbytes + size > most:
            yield waiting
            waiting, nbytes = [], 0
        waiting.append(at)
        nbytes += size
    if waiting:
        yield waiting


def _last_reads(part: Part, slices: Iterable[Sequence[int]]) -> dict[str, int]:
    """Return the last slice that reads each value."""
    return {
        name: at
        for at, nodes in enumerate(slices)
        for number in nodes
        for name in part.reads[number]
    }
