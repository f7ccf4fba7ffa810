"""The primitives that add, remove, move and order nodes; all indices stay in step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx

from tiered.graph.core import live_dag, use_lists
from tiered.graph.core.edit import Edit
from tiered.graph.core.node import Node, domain_of
from tiered.graph.core.schema import check_safe, encode_attribute, schema_of
from tiered.graph.core.topological_order import producers
from tiered.graph.core.value import NOT_INFERRED, Value
from tiered.graph.edits.invalidate import invalidate_partial_elements
from tiered.graph.edits.transactions import check_free, check_node, check_place, undone_on_error
from tiered.support.amounts import counted
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.tensor import Tensor


@undone_on_error
def add_node(
    graph: Graph,
    op_type: str,
    inputs: Sequence[Value | None],
    outputs: int | Sequence[str | Value] = 1,
    attributes: Mapping[str, Any] | None = None,
    *,
    domain: str = "",
    name: str | None = None,
    bodies: Iterable[str] = (),
    overload: str = "",
) -> Node:
    """Add a node; `outputs` is their number, or their names ("" for an absent one).

    A detached value among the outputs enters the graph as that output. `bodies` are the attributes
    that hold bodies: they start empty, and their own primitives fill them. `overload` is that of
    the local function that the node calls.

    Raises:
        ModelError: an input is not visible here, or an output name is taken.
    """
    proto = onnx.NodeProto(op_type=op_type, domain=domain)
    if overload:
        proto.overload = overload
    proto.name = graph.model.node_names.fresh(name or op_type)
    graph.import_domain(domain_of(domain), op_type)
    schema = schema_of(op_type, domain_of(domain), graph.opset(domain_of(domain)))
    for key, attribute in (attributes or {}).items():
        proto.attribute.append(encode_attribute(key, attribute, schema))
    bodies = tuple(bodies)
    for key in bodies:
        proto.attribute.add(name=key, type=onnx.AttributeProto.GRAPH)
    return insert(graph, proto, inputs, outputs, bodies)


def import_domain(graph: Graph, domain: str, op_type: str) -> None:
    """Import a domain that is newly used; if a function uses it, also into the model.

    onnxruntime resolves the bodies of functions with the imports of the model.
    """
    for root in (graph.root, graph.model.main):
        if root.opset(domain):
            continue
        if domain:
            schema = schema_of(op_type, domain)
            version = graph.model.opset(domain) or (schema.since_version if schema else 1)
        else:
            # A model with operators of other domains only need not import the default domain.
            version = _usual_opset(graph)
        graph.model.set_opset(domain, version, root)


def _usual_opset(graph: Graph) -> int:
    """Return the opset of a missing import: the model's, else the one of its IR version."""
    own, ir_version = graph.model.opset(""), graph.model.ir_version
    versions = [row[2] for row in onnx.helper.VERSION_TABLE if row[1] <= max(ir_version, 3)]
    return own or max(versions)


def insert(
    graph: Graph,
    proto: onnx.NodeProto,
    inputs: Sequence[Value | None],
    outputs: int | Sequence[str | Value],
    bodies: Iterable[str] = (),
) -> Node:
    """Add a node with this proto; operands and bodies are set separately."""
    model = graph.model
    node = Node(model.next_serial(), graph, proto)
    node.bodies = tuple(graph._new_body(node, attribute) for attribute in bodies)
    for value in inputs:
        if value is not None and not graph.sees(value):
            raise ModelError(f"{value!r} is not visible in graph {graph.name!r}")
        proto.input.append("" if value is None else value.name)
    node._inputs.extend(inputs)
    if isinstance(outputs, int):
        names = model.names
        outputs = [names.fresh(f"{proto.name}_output_{index}") for index in range(outputs)]
    node._outputs += _new_outputs(node, outputs)
    proto.output.extend("" if value is None else value.name for value in node._outputs)
    check_safe(node)
    if model.functions:
        graph.model.check_callee(graph, node.callee)
    # First of all: it raises where edits are not allowed.
    graph._log(Edit.ADD_NODE, node)
    for index, value in enumerate(node._outputs):
        if value is not None:
            value.producer, value.index = node, index
    attach(graph, node)
    return node


def _new_outputs(node: Node, outputs: Sequence[str | Value]) -> list[Value | None]:
    """Return the values that a node computes: new ones of these names, and detached ones."""
    graph, values = node.owner, list[Value | None]()
    for output in outputs:
        if not output:
            values.append(None)
            continue
        if isinstance(output, str):
            value = Value(graph.model.next_serial(), graph, output)
            value._type = NOT_INFERRED
        else:
            value = output
            check_detached(value, node)
        check_free(graph, value.name)
        values.append(value)
    check_distinct(node, values)
    return values


def check_distinct(node: Node, outputs: Sequence[Value | None]) -> None:
    """Raise if two outputs of a node would be the same value or have the same name.

    Raises:
        ModelError: they would.
    """
    names = [value.name for value in outputs if value is not None]
    if len(set(names)) < len(names):
        raise ModelError(f"node {node.label!r} cannot have an output twice: {names}")


def append_node(graph: Graph, node: Node) -> None:
    """Restore a removed node with its former operands.

    Raises:
        ModelError: it is in a graph, an operand is not visible here, or a name is taken.
    """
    if node.graph is not None:
        raise ModelError(f"node {node.label!r} is in graph {node.graph.name!r} already")
    if node.bodies or node.name in graph.model.node_names:
        raise ModelError(f"node {node.label!r} has bodies, or its name is taken")
    for value in node._inputs:
        if value is not None and not graph.sees(value):
            raise ModelError(f"{value!r} is not visible in graph {graph.name!r}")
    for value in node._outputs:
        if value is not None:
            check_free(graph, value.name)
    graph.model.check_callee(graph, node.callee)
    # First of all: it raises where edits are not allowed.
    graph._log(Edit.ADD_NODE, node)
    attach(graph, node)


def check_detached(value: Value, node: Node) -> None:
    """Raise if a value that a node will compute has another source."""
    if value.graph is not None or value._tensor is not None:
        raise ModelError(f"{value!r} has a source already: {node.label!r} cannot be it")
    if value._type is None:
        # This could not be checked before it was in a graph.
        value._type = NOT_INFERRED


def remove_node(graph: Graph, node: Node) -> None:
    """Remove a node without readers, and its bodies.

    Raises:
        ModelError: an output is still read, or is a graph output.
    """
    check_node(graph, node)
    for value in node._outputs:
        if value is not None and value.is_used:
            raise ModelError(f"node {node.label!r} cannot be removed: {value.name!r} is used")
    graph._log(Edit.REMOVE_NODE, node, graph)
    detach(node)


def fold_to_initializer(graph: Graph, node: Node, index: int, tensor: Tensor) -> None:
    """Make an output an initializer of the same name with these contents; remove the node.

    The users of the value do not change, so that constant folding costs one edit.

    Raises:
        ModelError: there is no such output, another one is used, the output is a graph output, or
            the graph can have no initializers.
    """
    check_node(graph, node)
    check_place(node, index, "output")
    value, reason = node._outputs[index], why_not_foldable(node, index)
    if reason is not None:
        raise ModelError(
            f"output {index} of node {node.label!r} cannot become an initializer: {reason}"
        )
    assert value is not None
    write_folded(graph, node, value, tensor)


def write_folded(graph: Graph, node: Node, value: Value, tensor: Tensor) -> None:
    """Log and make the edit of `fold_to_initializer`; the output was checked before."""
    graph._log(Edit.FOLD_TO_INITIALIZER, node, graph, value, value.index, value._type)
    detach(node, value)
    invalidate_partial_elements(value)
    value.producer, value.index = None, 0
    value._type = value._elements = NOT_INFERRED
    value._tensor = tensor
    graph._constants[value.id] = value


def why_not_foldable(node: Node, index: int) -> str | None:
    """Return why an output of a node cannot be an initializer; None if it can."""
    value, graph = node._outputs[index], node.owner
    if value is None or value.output_of:
        return "it is absent, or an output of a graph"
    if graph.root.is_function or graph.model.ir_version < 4:
        return "its graph can have no initializers"
    for other in node._outputs:
        if other is not value and other is not None and other.is_used:
            return f"{other.name!r} is used"
    return None


def unfold(node: Node, graph: Graph, value: Value, index: int, before: Any) -> None:
    """Undo `fold_to_initializer`; `before` is the type of the output."""
    del graph._constants[value.id]
    value._tensor, value._elements = None, NOT_INFERRED
    value.producer, value.index, value._type = node, index, before
    attach(graph, node, value)
    if graph._dag is not None:
        for user, slot in value.users:
            if user.graph is graph:
                live_dag.add_slot(graph._dag, node, user, live_dag.slot_of(index, slot))
        for owner in value._captures or ():
            live_dag.add_slot(graph._dag, node, owner, live_dag.slot_of(index, None))


def attach(graph: Graph, node: Node, kept: Value | None = None) -> None:
    """Register a node in all indices of the graph; the output `kept` is registered already."""
    node.graph = graph
    graph._nodes[node.id] = node
    graph._by_op.setdefault((node.domain, node.op_type), {})[node.id] = node
    if node.bodies:
        graph._body_nodes[node.id] = node
    if name := node.proto.name:
        graph.model.node_names.take(name)
    for value in node._outputs:
        if value is not None and value is not kept:
            enter(graph, value)
    graph._order = None
    if graph._dag is not None:
        graph._dag.add_node(node)
    use_lists.link_inputs(node)
    use_lists.link_bodies(node)


def detach(node: Node, kept: Value | None = None) -> None:
    """Undo `attach`; `kept` stays in the graph."""
    graph = node.owner
    use_lists.unlink_bodies(node)
    use_lists.unlink_inputs(node)
    if graph._dag is not None:
        graph._dag.remove_node(node)
    graph._order = None
    for value in node._outputs:
        if value is not None and value is not kept:
            leave(graph, value)
    if name := node.proto.name:
        graph.model.node_names.release(name)
    del graph._by_op[node.domain, node.op_type][node.id]
    del graph._nodes[node.id]
    graph._body_nodes.pop(node.id, None)
    node.graph = None


def enter(graph: Graph, value: Value) -> None:
    value.graph = graph
    graph._values[value.name] = value
    graph.model.names.take(value.name)


def leave(graph: Graph, value: Value) -> None:
    value.graph = None
    del graph._values[value.name]
    graph.model.names.release(value.name)


def move_node(graph: Graph, node: Node, target: Graph) -> None:
    """Move a node into another graph that sees its operands and that its users see.

    Raises:
        ModelError: an operand or the node would not be visible, or a name is taken.
    """
    check_node(graph, node)
    around: Graph | None = target
    while around is not None:
        if around.parent_node is node:
            raise ModelError(f"node {node.label!r} cannot be moved into a body of its own")
        around = around.parent
    for value in (*node._inputs, *node.captured):
        if value is not None and not target.sees(value):
            raise ModelError(f"{value!r} is not visible in graph {target.name!r}")
    for value in node._outputs:
        if value is not None:
            check_move(value, target)
    for name in _names_below(node):
        if target.value(name) is not None:
            raise ModelError(f"a body of node {node.label!r} would shadow {name!r} of {target!r}")
    if target.root is not node.owner.root:
        target.model.check_callee(target, node.callee)
        for body in node.bodies:
            for inner in body.walk():
                target.model.check_callee(target, inner.callee)
    graph._log(Edit.MOVE_NODE, node, node.owner)
    write_graph(node, target)


def _names_below(node: Node) -> Iterator[str]:
    """Yield the names of all values in the bodies of a node."""
    pending = list(node.bodies)
    while pending:
        body = pending.pop()
        yield from body._values
        pending += [inner for owner in body._body_nodes.values() for inner in owner.bodies]


def check_move(value: Value, target: Graph) -> None:
    """Check the users and the name of a value that moves into another graph.

    Raises:
        ModelError: a user would not see it, or the name is taken there.
    """
    check_free(target, value.name, value)
    for graph in (*(user.owner for user in value._users.values()), *value.output_of):
        if not graph.is_within(target):
            raise ModelError(f"{value!r} is read in {graph!r}, which does not see {target!r}")


def write_graph(node: Node, target: Graph) -> None:
    with use_lists.unlinked(*(value for value in node._outputs if value is not None)):
        detach(node)
        attach(target, node)


def order_nodes(graph: Graph, order: Sequence[Node]) -> None:
    """Set the topological order of the graph; a later node comes before its first consumer.

    Raises:
        ModelError: it is not an order of all nodes of the graph, or a producer comes too late.
    """
    places = {node.id: place for place, node in enumerate(order)}
    if len(places) < len(order) or places.keys() != graph._nodes.keys():
        raise ModelError(
            f"an order of graph {graph.name!r} needs each of its {counted(len(graph), 'node')} "
            f"once; found {len(places)} in {counted(len(order), 'place')}"
        )
    for node in order:
        for producer in producers(graph, node):
            if places[producer.id] > places[node.id]:
                raise ModelError(f"node {node.label!r} is before its producer {producer.label!r}")
    graph._log(Edit.SET_ORDER, graph, graph._places)
    write_places(graph, places)


def write_places(graph: Graph, places: dict[int, int]) -> None:
    graph._places = places
    graph._order = None
