"""Replacement of values and nodes, in terms of the primitives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tiered.graph.core.edit import Edit
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import TensorType, ValueType
from tiered.graph.core.value import SLOT_MASK, NotInferred, Value
from tiered.graph.edits.nodes import why_not_foldable, write_folded
from tiered.graph.edits.operand_edits import has_node_named
from tiered.graph.edits.transactions import check_model, check_node, is_hidden, undone_on_error
from tiered.support.errors import OperatorError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node


@undone_on_error
def replace_uses(graph: Graph, old: Value, new: Value, *, since: int | None = None) -> None:
    """Make all users of `old` read `new`, including captures and graph outputs.

    A graph output keeps its name: the new value takes it, or an Identity does if the new value must
    keep its own name (a graph input, a value of an outer graph, another output). Nodes with a
    serial number from `since` on keep reading `old`: they are part of the replacement.
    """
    check_model(graph, old)
    check_model(graph, new)
    if old is new:
        return
    _inherit_type(old, new)
    users, scalar = old._users, None
    for key, node in sorted(users.items()):
        if since is not None and node.id >= since:
            continue
        if _is_range(node):
            scalar = scalar or _scalar(new)
            graph.set_input(node, key & SLOT_MASK, scalar)
        else:
            graph.set_input(node, key & SLOT_MASK, new)
    for user in dict.fromkeys(old.output_of):
        if user.is_main:
            check_output_type(old, new)
        _replace_output(user, old, new)
    if not old._users:
        _inherit_annotation(old.owner, old, new)


def check_output_type(old: Value, new: Value) -> None:
    """Check that a value has the dtype and rank of the model's output that it becomes.

    A type that is only declared is not compared, because it may have been wrong before. Nothing is
    compared in a model that was invalid when it was loaded.

    Raises:
        OperatorError: it has another one.
    """
    before, after = _inferred_type(old), new.type
    if before is None or after is None:
        return
    if isinstance(before, TensorType) and isinstance(after, TensorType):
        ranks = [None if kind.shape is None else len(kind.shape) for kind in (before, after)]
        if before.dtype == after.dtype and (None in ranks or ranks[0] == ranks[1]):
            return
    elif type(before) is type(after):
        return
    if old.owner.model.complaint_as_loaded() is not None:
        return  # types contradict each other in the file already
    gate = old.owner.model.gate
    by = f"{gate.pass_name}: " if gate.pass_name else ""
    operator = f" ({new.producer.op_type})" if new.producer is not None else ""
    raise OperatorError(
        f"{by}output {old.name!r} of the model is {before}; {new.name!r}{operator}, which would "
        f"replace it, is {after}: the dtype and rank of an output must not change"
    )


def _inferred_type(value: Value) -> ValueType | None:
    if value.producer is None:
        return value.type
    types = value.owner.model.types.outputs_of(value.producer)
    return types[value.index] if value.index < len(types) else None


def _inherit_type(old: Value, new: Value) -> None:
    """Copy the old value's type where no rank can be inferred for the new one.

    It may be the declared type of an output, which a reload would read from the file.
    """
    if new.graph is not old.graph or new.producer is None:
        return  # the type of an input or initializer is declared in the file
    if isinstance(new._type, NotInferred) and old.declared is None and not old.output_of:
        return
    known, stated = new.type, old.type
    if known is None or (
        isinstance(known, TensorType)
        and isinstance(stated, TensorType)
        and known.shape is None
        and known.dtype == stated.dtype
    ):
        old.owner.set_type(new, stated)


def _inherit_annotation(graph: Graph, old: Value, new: Value) -> None:
    """Let the quantization annotation of a value that is gone name its replacement."""
    annotated = {values[0] for values, _ in graph.annotations}
    if old in annotated and new not in annotated and new.graph is graph:
        graph._log(Edit.SET_ANNOTATIONS, graph, list(graph.annotations))
        graph.annotations[:] = [
            ([new, *values[1:]] if values[0] is old else values, annotation)
            for values, annotation in graph.annotations
        ]


def _is_range(node: Node) -> bool:
    return node.op_type == "Range" and not node.domain


def _scalar(value: Value) -> Value:
    """Return a value as a Range may read it: a constant list of one number becomes a scalar.

    ONNX's function for AffineGrid passes such lists, which onnxruntime accepts only while they are
    not constant.
    """
    tensor = value.tensor
    if tensor is None or tensor.is_sparse or tensor.size != 1 or not tensor.shape:
        return value
    return value.owner.constant(Tensor.of(tensor.numpy().reshape(())), value.name)


def _replace_output(graph: Graph, old: Value, new: Value) -> None:
    name = old.name
    if old.graph is graph:
        graph.rename_value(old, graph.model.names.fresh(name))
        if new.graph is not graph or not new.can_become_output or is_hidden(new, name):
            node = graph.add_node("Identity", (new,), [name], name=f"{name}_identity")
            new = node.output
        else:
            graph.rename_value(new, name)
    graph.exchange_output(old, new)


def become_constant(graph: Graph, value: Value, tensor: Tensor) -> Value:
    """Replace an output of a node by a constant of the same name, and return the constant.

    A graph output keeps its name, as in `replace_uses`.
    """
    node = value.producer
    if node is None or not _is_foldable(node, value, tensor):
        return _replace_by_constant(graph, value, tensor)
    reads = _reads(node)
    write_folded(graph, node, value, tensor)
    if reads:
        graph.prune(_unread(reads))
    return value


@undone_on_error
def _replace_by_constant(graph: Graph, value: Value, tensor: Tensor) -> Value:
    name, node = value.name, value.producer
    if not value.is_graph_output:
        graph.rename_value(value, graph.model.names.fresh(name))
    constant = graph.constant(tensor, name)
    graph.replace_uses(value, constant)
    if node is not None:
        graph.prune([node])
    return constant


def _is_foldable(node: Node, value: Value, tensor: Tensor) -> bool:
    """Return whether a value can become a constant without other changes."""
    # A declaration or a pinned type describes the output of a node.
    if value.pins or value.declared is not None:
        return False
    if tensor.shape and any(map(_is_range, value._users.values())):
        return False
    return why_not_foldable(node, value.index) is None


@undone_on_error
def replace(
    graph: Graph, node: Node, values: Sequence[Value | None], since: int | None = None
) -> None:
    """Replace the outputs of a node by values, and remove the node if it has no readers left.

    New values and nodes (serial number from `since` on) take over the names of the replaced ones,
    so that tensors and nodes keep their names through rewrites.
    """
    check_node(graph, node)
    heirs: list[tuple[Value, Value, str]] = []
    for before, after in zip(list(node._outputs), values, strict=False):
        if before is None or after is None or before is after:
            continue
        name, interface = before.name, before.is_graph_output
        graph.replace_uses(before, after, since=since)
        is_new = since is not None and after.id >= since and after.graph is graph
        if is_new and not interface and not before.is_used and after.can_be_renamed:
            heirs.append((before, after, name))
    label = node.name
    graph.prune([node])
    for before, after, name in heirs:
        if before.graph is not None:
            graph.rename_value(before, graph.model.names.fresh(name))
        graph.rename_value(after, name)
    successor = next((value.producer for value in values if value is not None), None)
    is_new = successor is not None and since is not None and successor.id >= since
    if node.graph is not None or not label or not is_new or successor is None:
        return
    if not has_node_named(successor.owner, label):
        graph.rename_node(successor, label)


@undone_on_error
def splice(
    graph: Graph, node: Node, values: Sequence[Value | None], own: Iterable[Value | None]
) -> None:
    """Replace a node by nodes that were added to its graph: `own` values take over the names.

    Unlike in `replace`, the nodes keep their names, which show their origin.
    """
    check_node(graph, node)
    names = [None if output is None else output.name for output in node.outputs]
    graph.replace(node, values)
    free = set(own)
    for name, value in zip(names, values, strict=False):
        if name and value in free and value is not None and value.can_be_renamed:
            free.discard(value)
            if name not in graph.model.names:
                graph.rename_value(value, name)


@undone_on_error
def prune(graph: Graph, nodes: Iterable[Node]) -> None:
    """Remove nodes without readers, then the nodes and initializers that only they read."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node.graph is None or node.is_used:
            continue
        reads = _reads(node)
        node.graph.remove_node(node)
        pending += _unread(reads)


def _reads(node: Node) -> list[Value]:
    """Return the values that a node and its bodies read, each once."""
    reads = dict[int, Value]()
    for value in (*node._inputs, *node.captured) if node._captured else node._inputs:
        if value is not None:
            reads[value.id] = value
    return list(reads.values())


def _unread(values: Iterable[Value]) -> list[Node]:
    """Return the producers of values without readers; remove such initializers at once."""
    producers: list[Node] = []
    for value in values:
        if value.graph is None or value.is_used:
            continue
        if value.producer is not None:
            producers.append(value.producer)
        elif value.is_initializer and not value.is_graph_input:
            value.graph.remove_constant(value)
    return producers
