"""A fingerprint of a model, piece by piece, and the pieces that edits account for."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tiered.graph.core.edit import INTERFACE_EDITS, NODE_EDITS, Edit, Entry

if TYPE_CHECKING:
    from tiered.graph import Graph, Model, Node, Value
    from tiered.graph.core.tensor import Tensor


class Piece(NamedTuple):
    """A part of a model: its kind and its identity."""

    kind: str
    key: int


class Print(NamedTuple):
    """The label of a piece, the node whose body contains it (0: none), and its hash."""

    label: str
    around: int
    digest: object


Fingerprint = dict[Piece, Print]

MODEL = Piece("model", 0)


def fingerprint(model: Model, largest: int) -> Fingerprint:
    """Return the fingerprint of a model; tensors above `largest` bytes count by identity only."""
    found = {MODEL: Print("the model", 0, _of_model(model))}
    for graph in model.graphs():
        around = 0 if graph.parent_node is None else graph.parent_node.id
        found[_graph(graph)] = Print(f"graph {graph.name!r}", around, _of_graph(graph))
        for node in graph.nodes:
            digest = zlib.crc32(node.proto.SerializeToString(deterministic=True))
            found[_node(node)] = Print(f"node {node.label!r}", around, digest)
        for value in graph.initializers:
            digest_of = _of_tensor(value.default, largest)
            found[_value(value)] = Print(f"initializer {value.name!r}", around, digest_of)
    return found


def _of_model(model: Model) -> object:
    imports = tuple(model.opset_imports.items())
    functions = tuple(map(id, model.functions))
    return model.skeleton.SerializeToString(deterministic=True), imports, functions


def _of_graph(graph: Graph) -> object:
    infos = (*graph.input_infos, *graph.output_infos, *(info for _, info in graph.declarations))
    text = b"".join(info.SerializeToString(deterministic=True) for info in infos)
    imports = tuple(graph.opset_imports.items()) if graph.is_function else ()
    ends = tuple(value.id for value in (*graph.inputs, *graph.outputs))
    return graph.skeleton.SerializeToString(deterministic=True), zlib.crc32(text), ends, imports


def _of_tensor(tensor: Tensor | None, largest: int) -> object:
    if tensor is None or tensor.is_on_disk or tensor.nbytes > largest:
        return id(tensor)
    if tensor.proto is not None:
        return zlib.crc32(tensor.proto.SerializeToString(deterministic=True))
    array = tensor.numpy()
    if array.dtype == object:
        return tuple(array.ravel().tolist())
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data) if array.size else 0


def _node(node: Node) -> Piece:
    return Piece("node", node.id)


def _value(value: Value) -> Piece:
    return Piece("value", value.id)


def _graph(graph: Graph) -> Piece:
    # Bodies have no serial number of their own; they live as long as the model does.
    return Piece("graph", id(graph))


def unaccounted(before: Fingerprint, after: Fingerprint, edits: Iterable[Entry]) -> Iterator[str]:
    """Yield the pieces that differ between two fingerprints without an edit."""
    entries = list(edits)
    if any(entry[0] is Edit.EXCHANGE_CONTENT for entry in entries):
        return  # all pieces are others
    touched = {piece for entry in entries for piece in _touched(entry)}
    for piece in {**before, **after}:
        old, new = before.get(piece), after.get(piece)
        if old is not None and new is not None:
            if old.digest != new.digest and piece not in touched:
                yield f"{new.label} is another"
        elif not _is_touched(piece, before if new is None else after, touched):
            one = old or new
            assert one is not None
            yield f"{one.label} {'is gone' if new is None else 'is new'}"


def _is_touched(piece: Piece, where: Fingerprint, touched: set[Piece]) -> bool:
    """Return whether an edit touched a piece, or the node whose body contains it."""
    while piece in where:
        if piece in touched:
            return True
        piece = Piece("node", where[piece].around)
    return piece.kind == "node" and piece in touched


def _touched(entry: Entry) -> Iterator[Piece]:
    edit, subject, *rest = entry
    if edit in NODE_EDITS:
        yield _node(subject)
        if edit is Edit.EXCHANGE_OUTPUTS:
            yield _node(rest[1])
        elif edit is Edit.FOLD_TO_INITIALIZER:
            yield _value(rest[1])
    elif edit is Edit.RENAME_VALUE:
        yield _value(subject)
        if subject.producer is not None:
            yield _node(subject.producer)
        yield from map(_node, subject._users.values())
        yield from map(_graph, (*subject.output_of, *filter(None, (subject.input_of,))))
        if subject.graph is not None:
            yield _graph(subject.graph)
    elif edit in (*INTERFACE_EDITS, Edit.SET_DECLARATIONS, Edit.SET_ANNOTATIONS):
        yield _graph(subject)
        if edit is Edit.SET_GRAPH_INPUTS:
            yield from map(_value, (*rest[0], *subject.inputs))
    elif edit in (Edit.ADD_FUNCTION, Edit.REMOVE_FUNCTION):
        yield MODEL
        yield _graph(subject)
        yield from map(_node, subject.nodes)
    elif edit in (Edit.SET_OPSET, Edit.SET_IR_VERSION):
        yield MODEL
        if getattr(subject, "is_function", False):
            yield _graph(subject)
    elif edit is Edit.SET_SKELETON:
        yield _graph(subject) if hasattr(subject, "parent_node") else MODEL
    elif edit in (Edit.ADD_CONSTANT, Edit.REMOVE_CONSTANT, Edit.SET_CONSTANT, Edit.MOVE_CONSTANT):
        yield _value(subject)
