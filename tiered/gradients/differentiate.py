"""Gradients of outputs of a model, as further outputs of the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from math import prod

from tiered.errors import UsageError, did_you_mean
from tiered.gradients.expression import Expr
from tiered.gradients.reverse import ReverseMode
from tiered.graph import DataType, Graph, Model, Node, Value

PREFIX = "grad/"
"""The prefix of the names of gradients."""

SEED_PREFIX = "seed/"
"""The prefix of the names of seed inputs."""


def add_gradients(
    model: Model,
    of: Sequence[Value],
    targets: Sequence[Value],
    *,
    seeded: bool = False,
    stop_at: Iterable[str] = (),
    again: bool = False,
) -> list[Value]:
    """Append the gradients of some values to the outputs of a model.

    The gradient of several values is that of their sum, each times its seed: a vector-Jacobian
    product. Without seeds each value is a single number, and its seed is 1.

    Args:
        model: the model; its nodes stay as they are.
        of: floating-point values of the main graph.
        targets: floating-point inputs, initializers or other values of the main graph.
        seeded: append an input `seed/<name>` for each value, of its shape and dtype.
        stop_at: labels of nodes and names of values that count as constants.
        again: check that the gradients can be differentiated in their turn.

    Returns:
        The outputs `grad/<name>`, in the order, shape and dtype of the targets. A name that is
        taken gets the prefix again: `grad/grad/x`.

    Raises:
        NoGradient: a node between has no gradient rule that applies; with `again`, a new one.
        UsageError: a value is not floating-point, or has several elements and no seed.
    """
    graph = model.main
    for value in (*of, *targets):
        _check_float(value)
    seeds = {value: _seed(graph, value, seeded) for value in of}
    nodes = _between(graph, of)
    first = model.next_serial()
    reverse = ReverseMode(model, tuple(stop_at))
    found = reverse(graph, nodes, seeds, targets)
    made = [_output(graph, value, found.get(value)) for value in targets]
    graph.prune([node for node in graph.nodes if node.id > first])
    if again:
        reverse.check_rules(_between(graph, made), targets)
    return made


def float_values(
    model: Model, patterns: Sequence[str], owner: str, *, weights: bool = True
) -> list[Value]:
    """Return the float inputs and initializers that match, in the order of the patterns.

    A pattern without wildcards may also name another value of the main graph.

    Args:
        model: the model.
        patterns: names, with the wildcards of shells.
        owner: the pass or function that asks, for the message.
        weights: whether wildcards match initializers.

    Raises:
        UsageError: a pattern matches nothing.
    """
    graph = model.main
    known = [*graph.inputs, *(graph.initializers if weights else ())]
    names = {value.name: value for value in known if is_float(value)}
    found: dict[Value, None] = {}
    for pattern in patterns:
        named = graph.values.get(pattern)
        matches = [value for name, value in names.items() if fnmatchcase(name, pattern)]
        if not matches and named is None:
            hint = did_you_mean(pattern, graph.values)
            raise UsageError(f"{owner}: no float input or initializer matches {pattern!r}{hint}")
        found.update(dict.fromkeys([named] if named is not None else matches))
    return list(found)


def is_float(value: Value) -> bool:
    """Return whether a value is a floating-point tensor."""
    return value.dtype is not None and DataType(value.dtype).is_float


def _check_float(value: Value) -> None:
    if not is_float(value):
        kind = value.type or "of an unknown type"
        raise UsageError(f"gradient: {value.name!r} is {kind}; expected a floating-point tensor")


def _seed(graph: Graph, value: Value, seeded: bool) -> Value:
    """Return the gradient of a value with respect to itself: 1, or a new input."""
    if seeded:
        name = graph.model.names.fresh(f"{SEED_PREFIX}{value.name}")
        return graph.add_input(name, value.type)
    shape = value.static_shape
    if shape is None or prod(shape) != 1:
        raise UsageError(
            f"gradient: {value.name!r} is {value.type}; expected a single number, or seed=true: the "
            f"input '{SEED_PREFIX}{value.name}' then weighs its elements"
        )
    return Expr(graph, value, f"{PREFIX}{value.name}").ones().value


def _between(graph: Graph, of: Iterable[Value]) -> list[Node]:
    """Return the nodes of the main graph that compute some values, producers first."""
    needed: set[Node] = set()
    pending = [value.producer for value in of]
    while pending:
        node = pending.pop()
        if node is not None and node not in needed:
            needed.add(node)
            pending += node.predecessors
    return [node for node in graph.topological_order() if node in needed]


def _output(graph: Graph, target: Value, grad: Value | None) -> Value:
    """Make a gradient an output, as a new value of the shape of its target."""
    x = Expr(graph, target, f"{PREFIX}{target.name}")
    value = x.zeros() if grad is None else x.of(grad)
    made = value.call("Identity", value).value
    name = f"{PREFIX}{target.name}"
    while name in graph.values:
        name = PREFIX + name
    graph.rename_value(made, name)
    graph.set_type(made, target.type)
    graph.add_output(made)
    return made
