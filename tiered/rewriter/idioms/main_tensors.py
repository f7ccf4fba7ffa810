"""Tensors of the main graph by name, and the parts of a model that outputs need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from tiered.graph import Graph, Model, Node, Value
from tiered.support.errors import UsageError, did_you_mean


def tensor_named(model: Model, name: str, owner: str) -> Value:
    """Return the value of the main graph with a name.

    Args:
        model: the model.
        name: the name.
        owner: the pass or function that asks, for the message.

    Raises:
        UsageError: the main graph has no such value.
    """
    value = model.main.values.get(name)
    if value is not None:
        return value
    inner = next((graph for graph in model.graphs() if name in graph.values), None)
    if inner is not None:
        place = f"local function {inner.root.name!r}" if inner.root.is_function else ""
        if not place and inner.parent_node is not None:
            place = f"body {inner.attribute!r} of node {inner.parent_node.label!r}"
        raise UsageError(
            f"{owner}: {name!r} is a tensor of the {place}; expected one of the main graph"
        )
    hint = did_you_mean(name, model.main.values)
    raise UsageError(f"{owner}: the main graph has no tensor {name!r}{hint}")


def input_named(model: Model, name: str, owner: str) -> Value:
    """Return the input of the main graph with a name.

    Raises:
        UsageError: the model has no such input.
    """
    return _named(model.main.inputs, name, owner, "input")


def output_named(model: Model, name: str, owner: str) -> Value:
    """Return the output of the main graph with a name.

    Raises:
        UsageError: the model has no such output.
    """
    return _named(model.main.outputs, name, owner, "output")


def initializers_matching(model: Model, patterns: Sequence[str], owner: str) -> list[Value]:
    """Return the initializers of all graphs that one of the names or globs matches.

    Args:
        model: the model.
        patterns: names or globs; none match every initializer.
        owner: the pass that asks, for the message.

    Raises:
        UsageError: a name or glob matches no initializer.
    """
    every = [value for graph in model.graphs() for value in graph.initializers]
    names = {value.name for value in every}
    for pattern in patterns:
        if pattern not in names and not any(fnmatchcase(name, pattern) for name in names):
            hint = did_you_mean(pattern, names)
            raise UsageError(f"{owner}: no initializer is named {pattern!r}{hint}")
    return [
        value
        for value in every
        if not patterns
        or value.name in patterns
        or any(fnmatchcase(value.name, pattern) for pattern in patterns)
    ]


def _named(values: Iterable[Value], name: str, owner: str, what: str) -> Value:
    by_name = {value.name: value for value in values}
    if name not in by_name:
        hint = did_you_mean(name, by_name)
        there = f"; it has {', '.join(by_name)}" if by_name and not hint else hint
        raise UsageError(f"{owner}: the model has no {what} {name!r}{there}")
    return by_name[name]


def needed_nodes(outputs: Iterable[Value], known: Collection[Value] = ()) -> set[Node]:
    """Return the nodes that compute some values of a graph from known ones."""
    found: set[Node] = set()
    pending = [value for value in outputs if value not in known]
    while pending:
        node = pending.pop().producer
        if node is None or node in found:
            continue
        found.add(node)
        pending += [value for value in node.reads if value not in known]
    return found


def cut_at(graph: Graph, value: Value) -> Value:
    """Make all users of a computed value read a new input of the graph, and return the input.

    The value must not be an output of the graph. It keeps its name: the caller renames the input
    when the producer is removed.

    Raises:
        ModelError: the dtype of the value is unknown.
    """
    made = graph.add_input(graph.model.names.fresh(value.name), value.type)
    graph.replace_uses(value, made)
    return made


def take_name(graph: Graph, value: Value, name: str) -> None:
    """Rename a value; another value with this name gets a fresh one.

    Raises:
        ModelError: the other value is part of the interface.
    """
    if value.name == name:
        return
    other = graph.values.get(name)
    if other is not None:
        graph.rename_value(other, graph.model.names.fresh(name))
    graph.rename_value(value, name)


def make_room(model: Model, name: str, fresh: Callable[[str], str]) -> list[str]:
    """Give other names to the inner tensors of the main graph and its bodies that have a name.

    Args:
        model: the model.
        name: the name that the caller wants for a tensor of the main graph.
        fresh: returns another name for a name.

    Returns:
        The new names.
    """
    made = []
    for graph in model.graphs():
        value = None if graph.root.is_function else graph.values.get(name)
        if value is not None:
            made.append(fresh(name))
            graph.rename_value(value, made[-1])
    return made


def drop_unused(graph: Graph, keep: Collection[Value] = ()) -> None:
    """Remove nodes, inputs and initializers that no output needs.

    Args:
        graph: the graph.
        keep: inputs that stay.
    """
    graph.prune(graph.nodes)
    kept = set(keep)
    unused = [value for value in graph.inputs if value not in kept and not value.is_used]
    if unused:
        graph.remove_inputs(unused)
    for value in graph.initializers:
        if not value.is_used and not value.is_graph_input:
            graph.remove_constant(value)


def is_one_element(value: Value, rank: int) -> bool:
    """Return whether a value is one element, and of no higher rank than another one."""
    shape = value.static_shape
    return shape is not None and len(shape) <= rank and all(size == 1 for size in shape)
