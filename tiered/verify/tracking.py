"""A view as a part to cut from, kept up by the journal: it costs what passes change.

Nodes go by their serial numbers, which they keep for life.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import onnx

from tiered.graph import Edit, Graph, Model, Node
from tiered.graph.export import export_function, export_node
from tiered.graph.journal import NODE_EDITS, Entry
from tiered.graph.types import write_type
from tiered.verify.cut import Part, Types, Weight

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
    made = Part(_frame(model), {}, {}, {}, {})
    made.exchange((), {node.id: _proto_of(node) for node in model.main.nodes})
    return _with_borders(made, model)


def moved(before: Part, model: Model, entries: Iterable[Entry]) -> tuple[Part, set[int] | None]:
    """Return a view as it is after edits, and the numbers of the nodes that they touched.

    Args:
        before: the view as it was before them.
        model: the view.
        entries: the edits.

    Returns:
        None for the numbers where any node may be another.
    """
    touched = _Touched(model)
    for entry in entries:
        touched.add(entry)
    if touched.all:
        return part_of(model), None
    frame = _frame(model) if touched.frame else before.frame
    after = replace(
        before,
        frame=frame,
        nodes=dict(before.nodes),
        reads=dict(before.reads),
        maker=dict(before.maker),
        readers=dict(before.readers),
    )
    there = {at: model.main._nodes[at] for at in touched.numbers if at in model.main._nodes}
    gone = [at for at in sorted(touched.numbers) if at in before.nodes]
    after.exchange(gone, {at: _proto_of(there[at]) for at in sorted(there)})
    return _with_borders(after, model), touched.numbers


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
        all: whether any node may be another.
    """

    def __init__(self, model: Model) -> None:
        self.numbers: set[int] = set()
        self.frame = False
        self.all = False
        self._model = model

    def add(self, entry: Entry) -> None:
        edit, subject = entry[0], entry[1]
        if edit in _HARMLESS:
            return
        if edit in NODE_EDITS:
            self._node(subject)
            for other in entry[2:]:
                if isinstance(other, Graph):  # that it was in before
                    self._graph(other)
                elif isinstance(other, Node):
                    self._node(other)
        elif edit is Edit.RENAME_VALUE or edit in _CONSTANTS:
            for node in (subject.producer, *subject._users.values()):
                if node is not None:
                    self._node(node)
            for graph in (subject.graph, *entry[2:]):
                if isinstance(graph, Graph):
                    self._graph(graph)
        elif edit in (Edit.SET_GRAPH_INPUTS, Edit.SET_GRAPH_OUTPUTS):
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


def _with_borders(part: Part, model: Model) -> Part:
    main = model.main
    part.inputs = dict(zip((v.name for v in main.inputs), main.input_infos, strict=True))
    part.outputs = dict(zip((v.name for v in main.outputs), main.output_infos, strict=True))
    weights: dict[str, Weight] = {}
    for value in main.initializers:
        if value.default is not None:
            weights[value.name] = value.default
    part.weights = weights
    return part
