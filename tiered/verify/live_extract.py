"""The part of a view, updated from the journal: the cost is that of the edits.

The number of a node is its id, which never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import onnx

from tiered.graph import Edit, Graph, Model, Node
from tiered.graph.core.edit import INTERFACE_EDITS, NODE_EDITS, Entry
from tiered.graph.core.types import write_type
from tiered.graph.io.export import export_function, export_node
from tiered.verify.part_extraction import GraphPart, Types, Weight

_HARMLESS = frozenset(
    {
        *(Edit.SET_TYPE, Edit.RENAME_NODE, Edit.SET_IR_VERSION, Edit.SET_DECLARATIONS),
        Edit.SET_ANNOTATIONS,
        *(Edit.FORGET_TYPES, Edit.SET_ORDER, Edit.SET_SKELETON),
    }
)
"""Edits that change no computation."""
_CONSTANTS = frozenset(
    {Edit.ADD_CONSTANT, Edit.REMOVE_CONSTANT, Edit.SET_CONSTANT, Edit.MOVE_CONSTANT}
)


def is_harmless(entries: Iterable[Entry]) -> bool:
    """Return whether edits change no computation."""
    return all(entry[0] in _HARMLESS for entry in entries)


def part_of(model: Model) -> GraphPart:
    """Return the part of a view as it is now; weights on disk stay there."""
    made = GraphPart(_frame(model), {}, _inputs(model), _outputs(model), _weights(model))
    made.exchange((), {node.id: _proto_of(node) for node in model.main.nodes})
    return made


def part_after(
    before: GraphPart, model: Model, entries: Iterable[Entry]
) -> tuple[GraphPart, set[int] | None]:
    """Return the part of a view after edits, and the numbers of the nodes that they touched.

    Args:
        before: its part before them.
        model: the view.
        entries: the edits.

    Returns:
        None for the numbers if any node may have changed.
    """
    after = before.copy()
    step = advance(after, model, entries)
    return (part_of(model), None) if step is None else (after, {*step.removed, *step.added})


@dataclass(frozen=True)
class PartEdits:
    """The changes that edits make to a part.

    Attributes:
        removed: the numbers of the nodes that they removed or changed.
        added: the new nodes, by number.
        weights: the changed weights; None for removed ones.
        rest: the other changed attributes of the part.
    """

    removed: tuple[int, ...]
    added: Mapping[int, onnx.NodeProto]
    weights: Mapping[str, Weight | None]
    rest: Mapping[str, Any]

    def apply(self, part: GraphPart) -> None:
        """Change the part before the edits into the part after them."""
        part.exchange(self.removed, self.added)
        for name, weight in self.weights.items():
            if weight is None:
                part.weights.pop(name, None)
            else:
                part.weights[name] = weight
        for name, value in self.rest.items():
            setattr(part, name, value)


def advance(part: GraphPart, model: Model, entries: Iterable[Entry]) -> PartEdits | None:
    """Update a part after edits; return None if any node may have changed.

    Args:
        part: the part before them; it is changed.
        model: the view.
        entries: the edits.
    """
    touched = _Touched(model)
    for entry in entries:
        touched.add(entry)
    if touched.all:
        return None
    nodes = model.main._nodes
    numbers = sorted(touched.numbers)
    added = {at: _proto_of(nodes[at]) for at in numbers if at in nodes}
    removed = tuple(at for at in numbers if at in part.nodes)
    rest: dict[str, Any] = {"frame": _frame(model)} if touched.frame else {}
    weights: dict[str, Weight | None] = {}
    if touched.borders:
        rest |= {"inputs": _inputs(model), "outputs": _outputs(model)}
    for name in touched.constants:
        now = _weight(model, name)
        if now is not part.weights.get(name):
            weights[name] = now
    step = PartEdits(removed, added, weights, rest)
    step.apply(part)
    return step


def types_of(model: Model, names: Iterable[str]) -> Types:
    """Return the known types of values of the main graph."""
    found = {}
    for name in names:
        value = model.main.value(name)
        if value is not None:
            found[name] = write_type(value.type)
    return found


class _Touched:
    """The nodes of the main graph that edits touched, directly or in one of their bodies.

    Attributes:
        frame: whether a local function or an opset changed.
        borders: whether an input or an output may have changed.
        constants: the names of the weights that may have changed.
        all: whether any node may have changed.
    """

    def __init__(self, model: Model) -> None:
        self.numbers: set[int] = set()
        self.frame = False
        self.borders = False
        self.constants: dict[str, None] = {}
        self.all = False
        self._model = model

    def add(self, entry: Entry) -> None:
        edit, subject = entry[0], entry[1]
        if edit in _HARMLESS and edit is not Edit.RENAME_NODE:
            return
        if edit in NODE_EDITS:
            if edit is Edit.FOLD_TO_INITIALIZER:
                self.borders = True
                self.constants[entry[3].name] = None
            self._node(subject)
            for other in entry[2:]:
                if isinstance(other, Graph):  # its graph before the edit
                    self._graph(other)
                elif isinstance(other, Node):
                    self._node(other)
        elif edit is Edit.RENAME_VALUE or edit in _CONSTANTS:
            self.borders = self.borders or edit is Edit.RENAME_VALUE or subject.is_graph_output
            self.constants[subject.name] = None
            if edit is Edit.RENAME_VALUE:
                self.constants[entry[2]] = None
            for node in (subject.producer, *subject._users.values()):
                if node is not None:
                    self._node(node)
            for graph in (subject.graph, *entry[2:]):
                if isinstance(graph, Graph):
                    self._graph(graph)
        elif edit in INTERFACE_EDITS:
            self.borders = True
            # An initializer may be an input from now on, or none any more.
            self.constants.update((value.name, None) for value in subject.initializers)
            self._graph(subject)
        elif edit in (Edit.ADD_FUNCTION, Edit.REMOVE_FUNCTION, Edit.SET_OPSET):
            self.frame = True
        else:
            self.all = True

    def _node(self, node: Node) -> None:
        self.numbers.add(node.id)
        if node.graph is not None:
            self._graph(node.graph)

    def _graph(self, graph: Graph) -> None:
        """Add the node of the main graph that contains a graph, if there is one."""
        while graph.parent_node is not None:
            self.numbers.add(graph.parent_node.id)
            if graph.parent_node.graph is None:
                return
            graph = graph.parent_node.graph
        self.frame = self.frame or graph is not self._model.main


def _proto_of(node: Node) -> onnx.NodeProto:
    if node.bodies:
        return export_node(node)
    copy = onnx.NodeProto()
    copy.CopyFrom(node.proto)
    return copy


def _frame(model: Model) -> onnx.ModelProto:
    """Return a model without its main graph."""
    frame = onnx.ModelProto(ir_version=model.ir_version)
    for domain, version in model.opset_imports.items():
        frame.opset_import.add(domain=domain, version=version)
    frame.functions.extend(export_function(function) for function in model.functions)
    return frame


def _weight(model: Model, name: str) -> Weight | None:
    """Return the contents of an initializer of the main graph; None if there is none."""
    value = model.main.values.get(name)
    return None if value is None or not value.is_initializer else value.default


def _weights(model: Model) -> dict[str, Weight]:
    held = ((value.name, value.default) for value in model.main.initializers)
    return {name: tensor for name, tensor in held if tensor is not None}


def _inputs(model: Model) -> dict[str, onnx.ValueInfoProto]:
    main = model.main
    return dict(zip((v.name for v in main.inputs), main.input_infos, strict=True))


def _outputs(model: Model) -> dict[str, onnx.ValueInfoProto]:
    main = model.main
    return dict(zip((v.name for v in main.outputs), main.output_infos, strict=True))
