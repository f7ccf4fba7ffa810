"""What no runtime computes with: metadata, doc strings and inner names. Removed, and counted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import onnx

from tiered.graph.core.edit import Edit
from tiered.graph.core.tensor import Tensor
from tiered.graph.edits.operand_edits import set_proto
from tiered.graph.edits.value_edits import set_constant
from tiered.support.amounts import counted
from tiered.support.mark_keys import MARK_KEYS, MARKS

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.value import Value

METADATA, DOCS, NAMES = "metadata", "docs", "names"

OWN: Final = "tiered."
"""The first letters of entries that stay: they state what a file is, and what passes leave."""

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass
class _Lost:
    """How much was removed: the number and the bytes by what it was."""

    numbers: dict[str, int] = field(default_factory=dict)
    nbytes: dict[str, int] = field(default_factory=dict)

    def add(self, what: str, nbytes: int) -> None:
        self.numbers[what] = self.numbers.get(what, 0) + 1
        self.nbytes[what] = self.nbytes.get(what, 0) + nbytes

    def lines(self) -> list[str]:
        """Return a line for each kind, the largest first."""
        order = sorted(self.nbytes, key=lambda what: (-self.nbytes[what], what))
        return [f"{what}: {self._amount(what)}" for what in order]

    def _amount(self, what: str) -> str:
        places = counted(self.numbers[what], "place")
        return f"{counted(self.nbytes[what], 'byte')} in {places}"


def strip(model: ModelState, what: Collection[str]) -> list[str]:
    """Remove texts of a model, and return a line for each kind, with its number and bytes.

    Args:
        model: the model, edited in place.
        what: `metadata`, `docs` (doc strings), `names` (of nodes and of tensors; not those of
            inputs and outputs of graphs), `marks` (of results of tiered).
    """
    lost = _Lost()
    _set_skeleton(model.main, model, _bare(model.skeleton, what, lost))
    for graph in model.graphs():
        _set_skeleton(graph, graph, _bare(graph.skeleton, what, lost))
        _strip_declarations(graph, what, lost)
        for node in list(graph.nodes):
            proto = _bare(node.proto, what, lost)
            if proto is not None:
                set_proto(graph, node, proto)
        for value in graph.initializers:
            _strip_weight(graph, value, what, lost)
    if NAMES in what:
        _strip_names(model, lost)
    return lost.lines()


def _goes(key: str, what: Collection[str]) -> bool:
    """Return whether an entry of metadata is removed."""
    if key in MARK_KEYS:
        return MARKS in what
    return METADATA in what and not key.startswith(OWN)


def _bare(proto: Any, what: Collection[str], lost: _Lost) -> Any:
    """Return a copy of a message without its texts; None if it has none."""
    gone = [entry for entry in proto.metadata_props if _goes(entry.key, what)]
    is_described = DOCS in what and bool(proto.doc_string)
    if not gone and not is_described:
        return None
    bare = type(proto)()
    bare.CopyFrom(proto)
    if gone:
        kept = [entry for entry in proto.metadata_props if not _goes(entry.key, what)]
        del bare.metadata_props[:]
        bare.metadata_props.extend(kept)
        for entry in gone:
            lost.add(f"metadata {entry.key}", entry.ByteSize())
    if is_described:
        bare.ClearField("doc_string")
        lost.add("doc strings", len(proto.doc_string.encode()))
    return bare


def _set_skeleton(log: Graph, root: Any, bare: Any) -> None:
    if bare is not None:
        log._log(Edit.SET_SKELETON, root, root.skeleton)
        root.skeleton = bare


def _strip_declarations(graph: Graph, what: Collection[str], lost: _Lost) -> None:
    """Remove the texts of declarations; those of the interface of the model stay."""

    def bare(infos: Iterable[onnx.ValueInfoProto]) -> list[onnx.ValueInfoProto]:
        return [_bare(info, what, lost) or info for info in infos]

    def differ(after: Sequence[object], before: Sequence[object]) -> bool:
        return any(new is not old for new, old in zip(after, before, strict=True))

    before = [info for _, info in graph.declarations]
    after = bare(before)
    if differ(after, before):
        values = [value for value, _ in graph.declarations]
        graph.set_declarations(list(zip(values, after, strict=True)))
    if graph.is_main:
        return
    inputs, outputs = bare(graph.input_infos), bare(graph.output_infos)
    if differ(inputs, graph.input_infos):
        graph.set_graph_inputs(graph.inputs, inputs)
    if differ(outputs, graph.output_infos):
        graph.set_graph_outputs(graph.outputs, outputs)


def _strip_weight(graph: Graph, value: Value, what: Collection[str], lost: _Lost) -> None:
    tensor = value._tensor
    if tensor is not None and type(tensor.proto) is onnx.TensorProto:
        bare = _bare(tensor.proto, what, lost)
        if bare is not None:
            set_constant(graph, value, Tensor(bare, None, tensor._folder))


def _strip_names(model: ModelState, lost: _Lost) -> None:
    """Remove the names of nodes, and shorten those of tensors that no interface shows."""
    numbers = count()
    for graph in model.graphs():
        for node in list(graph.nodes):
            if node.name:
                lost.add("names of nodes", len(node.name.encode()))
                graph.rename_node(node, "")
    # Training graphs name tensors of the main graph.
    for value in () if model.skeleton.training_info else list(_inner(model)):
        name = _fresh(model, numbers)
        saved = len(value.name.encode()) - len(name)
        if saved > 0:
            places = 1 + value.n_users + (value.declared is not None)
            lost.add("names of tensors", saved * places)
            value.owner.rename_value(value, name)


def _inner(model: ModelState) -> Iterator[Value]:
    for graph in model.graphs():
        computed = (value for node in graph.topological_order() for value in node.outputs if value)
        # Not in the order of `values`, which undone edits change.
        for value in (*graph.initializers, *computed):
            if not value.is_graph_input and not value.is_graph_output and not value.pins:
                yield value


def _fresh(model: ModelState, numbers: Iterator[int]) -> str:
    """Return the next short name that is free in the whole model."""
    while True:
        number, name = next(numbers), ""
        while number or not name:
            number, digit = divmod(number, len(_DIGITS))
            name = _DIGITS[digit] + name
        if f"t{name}" not in model.names:
            return f"t{name}"
