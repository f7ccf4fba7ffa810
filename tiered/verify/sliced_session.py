"""Running a model slice by slice, so that no more of its weights are in memory than may be.

A slice is a group of successive nodes. Values that later slices read are kept until then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx

from tiered.graph.core.types import type_proto_of
from tiered.runtime.external_data import with_files
from tiered.runtime.session import as_proto
from tiered.support.amounts import counted
from tiered.support.errors import RAISED, OutOfMemory, RuntimeFailure
from tiered.targets.custom import Key
from tiered.verify.changed_region import bytes_read
from tiered.verify.custom_ops import known, open_defined, references
from tiered.verify.part_extraction import GraphPart, Types, cut

if TYPE_CHECKING:
    from tiered.runtime import Worker, WorkerSession
    from tiered.runtime.session import ModelLike, Runner


_OVERRIDABLE_SINCE: Final = 4
"""The first IR version whose initializers callers may feed on onnxruntime."""


class SlicedSession:
    """A model that runs in slices; `inputs`, `outputs` and `run` are those of `Session`.

    Args:
        part: the model.
        folder: where its external data is.
        worker: where it runs.
        how: as for `Worker.open`.
        most: the bytes of weights that a slice may have; with None each node is a slice.
        nodes: how many nodes a slice may have, whatever their weights, instead of `most`.
        keeps_open: open each slice once, for all runs, until `close`; all weights are then in
            memory together.

    Raises:
        OutOfMemory: one node alone reads more than that.
    """

    def __init__(
        self,
        part: GraphPart,
        folder: str,
        worker: Worker,
        most: int | None,
        *,
        nodes: int | None = None,
        keeps_open: bool = False,
        **how: Any,
    ) -> None:
        self.inputs = tuple(name for name in part.inputs if name not in part.weights)
        self.outputs = tuple(part.outputs)
        self._part = part
        self._folder = folder
        self._worker = worker
        self._how = how
        # onnxruntime lets no one feed an initializer of so old a file.
        self._fixed = part.weights if part.frame.ir_version < _OVERRIDABLE_SINCE else {}
        self._own = references(_operators(part))
        if nodes is None:
            self._slices = list(_slices(part, most, self._own))
        else:
            self._slices = _grouped(part, nodes, self._own)
        self._last = _last_reads(part, self._slices)
        self._open: dict[tuple[int, tuple[str, ...]], WorkerSession] | None = None
        if keeps_open:
            self._open = {}

    def close(self) -> None:
        """Close the slices that are kept open."""
        while self._open:
            self._open.popitem()[1].close()

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return values by name: any of the main graph, not only outputs.

        Raises:
            RuntimeFailure: a slice does not run.
        """
        wanted = self.outputs if outputs is None else tuple(outputs)
        values: dict[str, Any] = {**feeds, **self._defaults(feeds)}
        for at, nodes in enumerate(self._slices):
            made = {name for number in nodes for name in self._part.nodes[number].output}
            results = [name for name in made if name in wanted or self._last.get(name, at) > at]
            if results:
                values.update(self._run_slice(nodes, sorted(results), values))
            for name in [n for n in values if self._last.get(n, at) <= at and n not in wanted]:
                del values[name]
        return {name: self._value(name, values) for name in wanted}

    def stream(
        self, feeds: Mapping[str, Any], wanted: Collection[str] | None = None
    ) -> Iterator[tuple[str, Any]]:
        """Yield values that nodes compute, in order; a value is dropped after its last use.

        Args:
            feeds: the inputs.
            wanted: the names of the values; None for all. Only nodes that they need run.

        Raises:
            RuntimeFailure: a slice does not run.
        """
        values: dict[str, Any] = {**feeds, **self._defaults(feeds)}
        needed = self._part.nodes.keys() if wanted is None else self._part.needed(wanted)
        for at, whole in enumerate(self._slices):
            nodes = [number for number in whole if number in needed]
            made = [name for number in nodes for name in self._part.nodes[number].output if name]
            names = [name for name in made if wanted is None or name in wanted]
            kept = dict.fromkeys(name for name in made if self._last.get(name, at) > at)
            results = list(dict.fromkeys((*names, *kept)))
            if results:
                values.update(self._run_slice(nodes, results, values))
            yield from ((name, values[name]) for name in names)
            for name in [name for name in values if self._last.get(name, at) <= at]:
                del values[name]

    def _run_slice(
        self, nodes: Collection[int], results: Sequence[str], values: Mapping[str, Any]
    ) -> dict[str, Any]:
        reads = [name for name in self._part.border(nodes, results) if name not in self._fixed]
        missing = [name for name in reads if name not in values]
        if missing:
            raise RuntimeFailure(f"cannot run the model: it has no input for {missing[0]!r}")
        feeds = {name: values[name] for name in reads}
        own = self._own_results(nodes, feeds)
        if own is not None:
            return own
        if self._open is None:
            with self._opened(nodes, results, feeds) as session:
                return session.run(feeds)
        key = (next(iter(nodes)), tuple(results))
        if key not in self._open:
            self._open[key] = self._opened(nodes, results, feeds)
        return self._open[key].run(feeds)

    def _opened(
        self, nodes: Collection[int], results: Sequence[str], feeds: Mapping[str, Any]
    ) -> WorkerSession:
        model = cut(self._part, nodes, bare_types(feeds), results, list(feeds))
        for info in model.graph.output:
            info.ClearField("type")
        folder = with_files(model, self._folder)
        return open_defined(self._worker, model, folder=folder, **self._how)

    def _own_results(
        self, nodes: Collection[int], feeds: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the outputs of a Python reference, None if the slice has none.

        Raises:
            RuntimeFailure: it raises, or returns another number of arrays.
        """
        node = self._part.nodes[next(iter(nodes))]
        function = self._own.get((node.domain, node.op_type))
        if function is None:
            return None
        operands = [self._operand(name, feeds) for name in node.input]
        attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        name = f"the reference of {node.domain}::{node.op_type}"
        try:
            made = function(*operands, **attributes)
        except RAISED as error:  # it is the user's
            raise RuntimeFailure(f"{name} failed: {type(error).__name__}: {error}") from error
        results = made if isinstance(made, tuple | list) else (made,)
        if len(results) != len(node.output):
            raise RuntimeFailure(
                f"{name} returned {counted(len(results), 'array')}; "
                f"the node has {counted(len(node.output), 'output')}"
            )
        return {to: np.asarray(each) for to, each in zip(node.output, results, strict=True) if to}

    def _operand(self, name: str, feeds: Mapping[str, Any]) -> Any:
        """Return an operand, None where it is absent."""
        if not name:
            return None
        return feeds[name] if name in feeds else self._part.array(name, self._folder)

    def _defaults(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Return the defaults of the inputs without feeds."""
        names = (name for name in self._part.inputs if name not in {**feeds, **self._fixed})
        part, folder = self._part, self._folder
        return {name: part.array(name, folder) for name in names if name in part.weights}

    def _value(self, name: str, values: Mapping[str, Any]) -> Any:
        return values[name] if name in values else self._part.array(name, self._folder)


def _operators(part: GraphPart) -> onnx.ModelProto:
    """Return a model of the nodes alone, to look for operators."""
    bare = onnx.ModelProto()
    bare.functions.extend(part.frame.functions)
    bare.graph.node.extend(part.nodes.values())
    return bare


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


def _slices(part: GraphPart, most: int | None, alone: Container[Key] = ()) -> Iterator[list[int]]:
    """Yield the nodes in order, in groups that read at most `most` bytes of weights.

    Nodes of some operators are each a group of their own.
    """
    if most is None:
        yield from ([at] for at in part.in_order(part.nodes))
        return
    waiting: list[int] = []
    nbytes = 0
    for at in part.in_order(part.nodes):
        size = bytes_read(part, [at])
        if size > most:
            raise OutOfMemory(f"a single node reads {size / 2**20:,.0f} MiB of weights")
        node = part.nodes[at]
        is_alone = (node.domain, node.op_type) in alone
        if waiting and (is_alone or nbytes + size > most):
            yield waiting
            waiting, nbytes = [], 0
        waiting.append(at)
        nbytes += size
        if is_alone:
            yield waiting
            waiting, nbytes = [], 0
    if waiting:
        yield waiting


def _grouped(part: GraphPart, count: int, alone: Container[Key]) -> list[list[int]]:
    """Return the nodes in order, `count` in a group; nodes of some operators are alone."""
    groups: list[list[int]] = []
    is_open = False
    for at in part.in_order(part.nodes):
        is_alone = (part.nodes[at].domain, part.nodes[at].op_type) in alone
        if is_open and not is_alone and len(groups[-1]) < count:
            groups[-1].append(at)
        else:
            groups.append([at])
            is_open = not is_alone
    return groups


def _last_reads(part: GraphPart, slices: Iterable[Sequence[int]]) -> dict[str, int]:
    """Return the last slice that reads each value."""
    return {
        name: at
        for at, nodes in enumerate(slices)
        for number in nodes
        for name in part.reads[number]
    }


def feeds_for(proto: onnx.ModelProto, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of some values that a model takes as inputs, also in place of defaults."""
    is_old = proto.ir_version < _OVERRIDABLE_SINCE
    fixed = {tensor.name for tensor in proto.graph.initializer} if is_old else ()
    names = (info.name for info in proto.graph.input if info.name not in fixed)
    return {name: values[name] for name in names if name in values}


@contextmanager
def open_model(
    worker: Worker, model: ModelLike, *, folder: str = "", **how: Any
) -> Iterator[Runner]:
    """Open a model in a worker, with the definitions of its custom operators.

    Args:
        worker: where to run.
        model, folder, how: as for `Worker.open`.

    Raises:
        MissingOperator: the runtime has no such operator, and nothing defines it.
        RuntimeFailure: the runtime cannot load it.
        BackendError: a definition is wrong.
    """
    proto = as_proto(model) if any(each.reference for each in known().values()) else None
    if proto is None or not references(proto):
        with open_defined(worker, model, folder=folder, **how) as session:
            yield session
        return
    if isinstance(model, str | os.PathLike):
        folder = os.path.dirname(os.path.abspath(model))
    how.pop("label", None)  # each part has its own
    yield SlicedSession(GraphPart.of(proto), folder, worker, sys.maxsize, **how)
