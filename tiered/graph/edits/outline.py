"""Outlining: nodes of one graph become a local function and a call of it; `inline_call` undoes it.

All of it uses the primitives, so that it is journalled and undone like any edit. The values that
the region computes for others keep their identity: their names, users and declarations stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import onnx

from tiered.graph.core.edit import Edit
from tiered.graph.core.graph import Function
from tiered.graph.core.marks import COMPILER
from tiered.graph.core.node import domain_of
from tiered.graph.core.topological_order import sort_part
from tiered.graph.core.types import without_symbols
from tiered.graph.edits.nodes import insert
from tiered.graph.edits.transactions import check_node, undone_on_error
from tiered.graph.io.export import export_node
from tiered.graph.io.load import load_function
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

Id = tuple[str, str, str]

FUNCTIONS_SINCE: Final = 8
"""The IR version from which on models have local functions."""

OVERLOADS_SINCE: Final = 10
"""The IR version from which on functions have overloads, value_info and metadata."""

MARKS: Final = (COMPILER, "tiered.device")
"""Metadata keys that a call takes over from its nodes."""


@undone_on_error
def outline(
    graph: Graph,
    nodes: Iterable[Node],
    name: str,
    domain: str,
    *,
    overload: str = "",
    is_convex: bool = False,
    taken: Collection[Id] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Node:
    """Move nodes into a new local function, and return the call; see `Graph.outline`."""
    part = sort_part(nodes)
    for node in part:
        check_node(graph, node)
    key = (domain_of(domain), name, overload)
    _check_id(graph, key, taken)
    if metadata and graph.model.ir_version < OVERLOADS_SINCE:
        raise ModelError(
            f"metadata of functions and nodes need IR {OVERLOADS_SINCE}; the model has IR "
            f"{graph.model.ir_version}: {_raised_to(OVERLOADS_SINCE)}"
        )
    if not is_convex:
        _check_convex(part)
    inputs, outputs = operands_of_region(graph, part)
    if not outputs:
        raise ModelError(f"no output of the nodes of {name!r} is used; expected at least one")
    notes = {**_marks(part), **(metadata or {})}
    for value in outputs:
        # The type is known now; a call may hide it.
        _ = value.type
    proto = _function_proto(graph, part, key, inputs, outputs)
    for entry, text in (metadata or {}).items():
        proto.metadata_props.add(key=entry, value=text)
    parameters = _parameters(part)
    function = _add(graph, proto)
    call = _call(graph, function, inputs, len(outputs), parameters, notes)
    for index, value in enumerate(outputs):
        assert value.producer is not None
        graph.exchange_outputs(call, index, value.producer, value.index)
    for node in reversed(part):
        graph.remove_node(node)
    return call


def operands_of_region(graph: Graph, part: Sequence[Node]) -> tuple[list[Value], list[Value]]:
    """Return the values that nodes read from outside, and those of theirs that others use.

    Args:
        graph: the graph of the nodes.
        part: the nodes, producers first.
    """
    inside = set(part)
    inputs: dict[Value, None] = {}
    outputs: list[Value] = []
    annotated = {value for values, _ in graph.annotations for value in values}
    for node in part:
        for value in (*node._inputs, *node.captured):
            if value is not None and (value.producer not in inside):
                inputs[value] = None
        for value in node._outputs:
            if value is None:
                continue
            is_kept = value.output_of or value.pins or value in annotated
            if is_kept or not inside.issuperset(value.readers):
                outputs.append(value)
    return list(inputs), outputs


def _raised_to(version: int) -> str:
    """Return how the IR version of a model is raised."""
    return f"`tiered convert --ir {version}` or set_ir_version raises it"


def _check_id(graph: Graph, key: Id, taken: Collection[Id] | None) -> None:
    model, (domain, name, overload) = graph.model, key
    label = f"{domain}.{name}" + (f":{overload}" if overload else "")
    if model.ir_version < FUNCTIONS_SINCE:
        raise ModelError(
            f"local functions need IR {FUNCTIONS_SINCE}; the model has IR {model.ir_version}: "
            f"{_raised_to(FUNCTIONS_SINCE)}"
        )
    if overload and model.ir_version < OVERLOADS_SINCE:
        raise ModelError(
            f"overloads need IR {OVERLOADS_SINCE}; the model has IR {model.ir_version}: "
            f"{_raised_to(OVERLOADS_SINCE)}"
        )
    if not name or not domain:
        raise ModelError(f"a local function needs a name and a domain, not {name!r} in {domain!r}")
    ids = {function.id for function in model.functions} if taken is None else taken
    if key in ids:
        raise ModelError(f"{model.label} has a local function {label!r} already")
    if taken is None and any(
        node.proto.overload == overload
        for each in model.graphs()
        for node in each.nodes_of(name, domain)
    ):
        raise ModelError(f"{model.label} has calls of {label!r}, which would mean the new function")


def _check_convex(part: Sequence[Node]) -> None:
    """Raise if a path leaves the nodes and enters them again.

    Raises:
        ModelError: it does, so that the call would read its own output.
    """
    inside = set(part)
    pending = [after for node in part for after in node.successors if after not in inside]
    seen = set(pending)
    while pending:
        node = pending.pop()
        for after in node.successors:
            if after in inside:
                raise ModelError(
                    f"a path leaves the nodes and enters them again: {node.label!r}, outside of "
                    f"them, feeds {after.label!r}, inside; take in the nodes between"
                )
            if after not in seen:
                seen.add(after)
                pending.append(after)


def _marks(part: Iterable[Node]) -> dict[str, str]:
    """Return the marks of the nodes.

    Raises:
        ModelError: two nodes have different ones.
    """
    marks: dict[str, str] = {}
    for node in part:
        for entry in node.proto.metadata_props:
            if entry.key in MARKS and marks.setdefault(entry.key, entry.value) != entry.value:
                raise ModelError(
                    f"node {node.label!r} is marked {entry.key}={entry.value!r}, another one "
                    f"{marks[entry.key]!r}: nodes of one function have the same mark"
                )
    return marks


def _function_proto(
    graph: Graph,
    part: Sequence[Node],
    key: Id,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
) -> onnx.FunctionProto:
    domain, name, overload = key
    proto = onnx.FunctionProto(domain=domain, name=name)
    if overload:
        proto.overload = overload
    proto.input.extend(value.name for value in inputs)
    proto.output.extend(value.name for value in outputs)
    proto.node.extend(export_node(node, is_bare=True) for node in part)
    proto.attribute.extend(_parameters(part))
    used = {node.domain for node in _walk(part)}
    # onnxruntime resolves the nodes with the versions of the model.
    for imported, version in graph.root.opset_imports.items():
        if imported in used:
            proto.opset_import.add(domain=imported, version=version)
    if graph.model.ir_version >= OVERLOADS_SINCE:
        known = set(outputs)
        for node in part:
            for value in node._outputs:
                if value is not None and value.declared is not None and value not in known:
                    info = without_symbols(value.declared)
                    info.name = value.name
                    proto.value_info.append(info)
    return proto


def _parameters(part: Iterable[Node]) -> dict[str, int]:
    """Return the attributes of the function around the nodes that they refer to, with the types."""
    return {
        proto.ref_attr_name: proto.type
        for node in _walk(part)
        for proto in node.proto.attribute
        if proto.ref_attr_name
    }


def _walk(part: Iterable[Node]) -> Iterable[Node]:
    for node in part:
        yield node
        for body in node.bodies:
            yield from body.walk()


def _add(graph: Graph, proto: onnx.FunctionProto) -> Function:
    """Add a function that calls neither itself nor a function that calls it: its id is new."""
    model = graph.model
    function = load_function(model, proto, is_new=True)
    model.main._log(Edit.ADD_FUNCTION, function)
    model.functions.append(function)
    return function


def _call(
    graph: Graph,
    function: Function,
    inputs: Sequence[Value],
    outputs: int,
    parameters: Mapping[str, int],
    metadata: Mapping[str, str],
) -> Node:
    proto = onnx.NodeProto(op_type=function.function_name, domain=function.domain)
    if function.overload:
        proto.overload = function.overload
    proto.name = graph.model.node_names.fresh(function.function_name)
    for parameter, kind in parameters.items():
        proto.attribute.add(name=parameter, ref_attr_name=parameter, type=kind)
    for key, text in metadata.items():
        proto.metadata_props.add(key=key, value=text)
    graph.import_domain(function.domain, function.function_name)
    return insert(graph, proto, inputs, outputs)
