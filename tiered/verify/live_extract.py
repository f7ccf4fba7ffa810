"""A view as a part to cut from, kept up by the journal: it costs what passes change.

Nodes go by their serial numbers, which they keep for life.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import onnx

from tiered.graph import Edit, Graph, Model, Node
from tiered.graph.core.journal import NODE_EDITS, Entry
from tiered.graph.core.types import write_type
from tiered.graph.io.export import export_function, export_node
from tiered.verify.extract import Part, Types, Weight

_HARMLESS = frozenset(
    {
        *(Edit.SET_TYPE, Edit.RENAME_NODE, Edit.SET_IR_VERSION, Edit.SET_DECLARATIONS),
        Edit.FORGET_TYPES,
    }
)
"""Edits that change nothing that is computed."""
_CONSTANTS = frozenset(
    {Edit.ADD_CONSTANT, Edit.REMOVE_CONSTANT, Edit.SET_CONSTANT, Edit.MOVE_CONSTANT}
)


def is_harmless(entries: Iterable[Entry]) -> bool:
    """Tell whether edits change nothing that is computed."""
    return all(entry[0] in _HARMLESS for entry in entries)


def part_of(model: Model) -> Part:
    """Return a view as it is now; weights stay where they are."""
    made = Part(_frame(model), {}, _inputs(model), _outputs(model), _weights(model))
    made.exchange((), {node.id: _proto_of(node) for node in model.main.nodes})
    return made


def moved(before: Part, model: Model, entries: Iterable[Entry]) -> tuple[Part, set[int] | None]:
    """Return a view as it is after edits, and the numbers of the nodes that they touched.

    Args:
        before: the view as it was before them.
        model: the view.
        entries: the edits.

    Returns:
        None for the numbers where any node may be another.
    """
    after = before.copy()
    step = advance(after, model, entries)
    return (part_of(model), None) if step is None else (after, {*step.gone, *step.come})


@dataclass(frozen=True)
class Step:
    """What edits made of a part.

    Attributes:
        gone, come: the numbers of the nodes that they took out or changed, and the nodes instead.
        weights: the weights that are others now; None for those that are gone.
        rest: the other attributes of the part that are others now.
    """

    gone: tuple[int, ...]
    come: Mapping[int, onnx.NodeProto]
    weights: Mapping[str, Weight | None]
    rest: Mapping[str, Any]

    def apply(self, part: Part) -> None:
        """Make of the part before the edits the one after them."""
        part.exchange(self.gone, self.come)
        if self.weights:
            weights = {**part.weights, **self.weights}
            part.weights = {name: w for name, w in weights.items() if w is not None}
        for name, value in self.rest.items():
            setattr(part, name, value)


def advance(part: Part, model: Model, entries: Iterable[Entry]) -> Step | None:
    """Make a part of what the view is after edits; None where any node may be another.

    Args:
        part: the view as it was before them; it is changed.
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
    come = {at: _proto_of(nodes[at]) for at in numbers if at in nodes}
    gone = tuple(at for at in numbers if at in part.nodes)
    rest: dict[str, Any] = {"frame": _frame(model)} if touched.frame else {}
    weights: dict[str, Weight | None] = {}
    if touched.borders:
        now = _weights(model)
        weights.update((name, w) for name, w in now.items() if part.weights.get(name) is not w)
        weights.update((name, None) for name in part.weights if name not in now)
        rest |= {"inputs": _inputs(model), "outputs": _outputs(model)}
    step = Step(gone, come, weights, rest)
    step.apply(part)
    return step


def types_of(model: Model, names: Iterable[str]) -> Types:
    """Return what is known of the types of values of the main graph."""
    found = {}
    for name in names:
        value = model.main.value(name)
        if value is not None:
            found[name] = write_type(value.type)
    return found


class _Touched:
    """The nodes of the main graph that edits touched: themselves, or in a body of theirs.

    Attributes:
        frame: whether a local function or an opset is another.
        borders: whether an input, an output or a weight may be another.
        all: whether any node may be another.
    """

    def __init__(self, model: Model) -> None:
        self.numbers: set[int] = set()
        self.frame = False
        self.borders = False
        self.all = False
        self._model = model

    def add(self, entry: Entry) -> None:
        edit, subject = entry[0], entry[1]
        if edit in _HARMLESS and edit is not Edit.RENAME_NODE:
            return
        if edit in NODE_EDITS:
            self.borders = self.borders or edit is Edit.FOLD_TO_INITIALIZER
            self._node(subject)
            for other in entry[2:]:
                if isinstance(other, Graph):  # that it was in before
                    self._graph(other)
                elif isinstance(other, Node):
                    self._node(other)
        elif edit is Edit.RENAME_VALUE or edit in _CONSTANTS:
            self.borders = True
            for node in (subject.producer, *subject._users.values()):
                if node is not None:
                    self._node(node)
            for graph in (subject.graph, *entry[2:]):
                if isinstance(graph, Graph):
                    self._graph(graph)
        elif edit in (Edit.SET_GRAPH_INPUTS, Edit.SET_GRAPH_OUTPUTS):
            self.borders = True
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
        """Note the node of the main graph that holds a graph, if one does."""
        while graph.owner is not None:
            self.numbers.add(graph.owner.id)
            if graph.owner.graph is None:
                return
            graph = graph.owner.graph
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


def _weights(model: Model) -> dict[str, Weight]:
    held = ((value.name, value.default) for value in model.main.initializers)
    return {name: tensor for name, tensor in held if tensor is not None}


def _inputs(model: Model) -> dict[str, onnx.ValueInfoProto]:
    main = model.main
    return dict(zip((v.name for v in main.inputs), main.input_infos, strict=True))


def _outputs(model: Model) -> dict[str, onnx.ValueInfoProto]:
    main = model.main
    return dict(zip((v.name for v in main.outputs), main.output_infos, strict=True))
