"""`diff`: what changed between any two models, made by any tool."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import onnx

from tiered.extensions.differences.constant_pairing import ConstantPair, change_of, constants_of
from tiered.extensions.differences.model_difference import Difference, PortChange, Renamed, Setting
from tiered.extensions.differences.node_matching import Matching
from tiered.extensions.differences.places import places_of
from tiered.graph import Model
from tiered.graph.core.types import read_type
from tiered.pipeline.result import ModelStatistics

if TYPE_CHECKING:
    from tiered.graph import Function, Graph, Node, Value

_ModelLike = onnx.ModelProto | Model | str | os.PathLike[str]


def diff(first: _ModelLike, second: _ModelLike) -> Difference:
    """Return what differs between two models; nothing is run, and neither is changed.

    Args:
        first: the model before: a file, a ModelProto or a Model.
        second: the model after, made by any tool.

    Raises:
        ModelError: a file cannot be read, or holds no ONNX model.
    """
    models = _opened(first), _opened(second)
    found = [*_matchings(*models)]
    alone = [*_alone(models, found)]
    pairs = [(each.label, pair) for each in found for pair in each.constants]
    changes = [change_of(pair, label) for label, pair in (*pairs, *alone)]
    places = [place for each in found for place in places_of(each)]
    changed = sum(len(place.changes) for place in places)
    return Difference(
        files=(_name(first, "before"), _name(second, "after")),
        before=ModelStatistics.of(models[0]),
        after=ModelStatistics.of(models[1]),
        settings=tuple(_settings(*models)),
        ports=tuple(_ports(found[0])),
        functions=tuple(_functions(*models)),
        tensors=tuple(change for change in changes if change is not None),
        places=tuple(places),
        renamed=tuple(name for each in found for name in _renamed(each)),
        texts=sum(_texts(*pair) for each in found for pair in each.partners[0].items()),
        same_nodes=sum(len(each.partners[0]) for each in found) - changed,
        same_tensors=changes.count(None),
        matchings=tuple(found),
    )


def _opened(model: _ModelLike) -> Model:
    if isinstance(model, Model):
        return model
    return Model.from_proto(model) if isinstance(model, onnx.ModelProto) else Model.load(model)


def _name(model: _ModelLike, default: str) -> str:
    if isinstance(model, Model):
        return model.source or default
    return default if isinstance(model, onnx.ModelProto) else os.fspath(model)


# --- graphs ---------------------------------------------------------------------------------------


def _matchings(first: Model, second: Model) -> Iterator[Matching]:
    """Yield the graphs of both models, the main ones first, with their nodes paired."""
    roots: list[tuple[Graph, Graph, str]] = [(first.main, second.main, "")]
    there = {function.id: function for function in second.functions}
    roots += [
        (function, there[function.id], function_name(function))
        for function in first.functions
        if function.id in there
    ]
    for one, other, label in roots:
        pending = [Matching(one, other, label).match()]
        while pending:
            found = pending.pop()
            yield found
            pending += reversed([*_bodies(found)])


def _bodies(found: Matching) -> Iterator[Matching]:
    for node in found.nodes[0]:
        other = found.partners[0].get(node)
        if other is None or not node.bodies:
            continue
        there = {body.attribute: body for body in other.bodies}
        for body in node.bodies:
            if body.attribute in there:
                label = "/".join(filter(None, (found.label, f"{node.label}.{body.attribute}")))
                yield Matching(body, there[body.attribute], label, found).match()


def function_name(function: Function) -> str:
    """Return the name of a local function with its domain."""
    domain, name, overload = function.id
    return "::".join(filter(None, (domain, name))) + (f":{overload}" if overload else "")


def _alone(
    models: tuple[Model, Model], found: Iterable[Matching]
) -> Iterator[tuple[str, ConstantPair]]:
    """Yield the constants of graphs that only one model has, with the label of the graph."""
    known = {graph for each in found for graph in each.graphs}
    for side, model in enumerate(models):
        for graph in model.graphs():
            if graph not in known:
                for constant in constants_of(graph):
                    yield (
                        _label(graph),
                        ConstantPair(*((None, constant) if side else (constant, None))),
                    )


def _label(graph: Graph) -> str:
    """Return the place of a graph in its model."""
    from tiered.graph import Function

    if isinstance(graph, Function):
        return function_name(graph)
    if graph.parent_node is None:
        return ""
    parts = (_label(graph.parent_node.owner), f"{graph.parent_node.label}.{graph.attribute}")
    return "/".join(filter(None, parts))


def _renamed(found: Matching) -> Iterator[Renamed]:
    partners = found.partners[0]
    for node, other in ((node, partners[node]) for node in found.nodes[0] if node in partners):
        if node.name != other.name:
            yield Renamed(found.label, "node", node.name, other.name)
        for one, two in zip(node._outputs, other._outputs, strict=False):
            if one is not None and two is not None and one.name != two.name:
                yield Renamed(found.label, "value", one.name, two.name)


def _texts(node: Node, other: Node) -> bool:
    """Return whether the texts of two nodes differ."""
    docs = node.proto.doc_string, other.proto.doc_string
    return docs[0] != docs[1] or node.metadata != other.metadata


def _functions(first: Model, second: Model) -> Iterator[tuple[str, str]]:
    sides = [{function.id: function for function in model.functions} for model in (first, second)]
    for what, side, other in (("removed", sides[0], sides[1]), ("added", sides[1], sides[0])):
        for key, function in side.items():
            if key not in other:
                yield function_name(function), what


# --- the interface --------------------------------------------------------------------------------


def _ports(found: Matching) -> Iterator[PortChange]:
    """Yield the inputs and outputs of the main graphs that differ."""
    graphs = found.graphs
    inputs = [graph.inputs for graph in graphs], found.input_pairs, "input"
    outputs = [graph.outputs for graph in graphs], found.output_pairs, "output"
    for lists, pairs, kind in (inputs, outputs):
        for pair in pairs:
            notes = [*_notes(found, pair, lists)]
            types = [_declared(graph, value) for graph, value in zip(graphs, pair, strict=True)]
            names = ["" if value is None else value.name for value in pair]
            if notes or types[0] != types[1] or names[0] != names[1]:
                shown = [
                    "" if each is None else str(read_type(each) or "unknown") for each in types
                ]
                yield PortChange(kind, names[0], names[1], shown[0], shown[1], "; ".join(notes))


def _declared(graph: Graph, value: Value | None) -> onnx.TypeProto | None:
    """Return the type that the file declares for an input or output."""
    if value is None:
        return None
    inputs, outputs = graph.inputs, graph.outputs
    if value in inputs:
        return graph.input_infos[inputs.index(value)].type
    return graph.output_infos[outputs.index(value)].type


def _notes(
    found: Matching, pair: tuple[Value | None, Value | None], lists: list[tuple[Value, ...]]
) -> Iterator[str]:
    """Yield what differs of an input or output beside its name and type."""
    one, two = pair
    if one is None or two is None:
        return
    places = [values.index(value) for values, value in zip(lists, (one, two), strict=True)]
    if places[0] != places[1]:
        yield f"place {places[0]} -> {places[1]}"
    ids = [found.id_of(side, value) for side, value in enumerate((one, two))]
    if ids[0] != ids[1]:
        yield "computed by another node"
    defaults = [value.default is not None for value in (one, two)]
    if defaults[0] != defaults[1]:
        yield "has a default now" if defaults[1] else "has no default any more"


# --- properties of the model ----------------------------------------------------------------------


def _settings(first: Model, second: Model) -> Iterator[Setting]:
    sides = [dict(_properties(model)) for model in (first, second)]
    for what in dict.fromkeys((*sides[0], *sides[1])):
        one, two = (side.get(what, "") for side in sides)
        if one != two:
            yield Setting(what, one, two)


def _properties(model: Model) -> Iterator[tuple[str, str]]:
    """Yield the properties of a model that are no node, constant, input or output."""
    yield from _fields(model.skeleton, "")
    for domain, version in sorted(model.opset_imports.items()):
        yield f"opset {domain or 'ai.onnx'}", str(version)
    yield from _fields(model.main.skeleton, "graph ")
    for function in model.functions:
        name = function_name(function)
        for domain, version in sorted(function.opset_imports.items()):
            yield f"opset {domain or 'ai.onnx'} of {name}", str(version)
        yield from _fields(function.skeleton, f"{name} ")
    declared = sum(len(graph.declarations) for graph in model.graphs())
    yield "declared types of values", str(declared)


def _fields(proto: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a proto that are set; metadata entry by entry."""
    for field, value in proto.ListFields():
        name = field.name.replace("_", " ").replace("ir version", "IR version")
        if field.name == "metadata_props":
            for entry in value:
                yield f"{prefix}metadata {entry.key}", entry.value
        elif field.name in ("training_info", "configuration"):
            for at, entry in enumerate(value):
                text = entry.SerializeToString(deterministic=True)
                yield f"{prefix}{name} {at}", f"{len(text):,} bytes, {hash_of(text)}"
        elif field.name != "opset_import":
            yield f"{prefix}{name}", str(value)


def hash_of(data: bytes) -> str:
    """Return a short digest of bytes."""
    import hashlib

    return hashlib.blake2b(data, digest_size=4).hexdigest()
