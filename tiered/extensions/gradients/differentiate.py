"""Gradients of outputs of a model, as further outputs of the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from math import prod
from typing import Literal, NamedTuple

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.reverse import ReverseMode
from tiered.extensions.gradients.rule_registry import NoGradient
from tiered.graph import Graph, Model, Node, Value
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.graph.queries.structural_hash import value_digests
from tiered.support.errors import UsageError, did_you_mean
from tiered.support.loading import paused_collector

PREFIX = "grad/"
"""The prefix of the names of gradients."""

SEED_PREFIX = "seed/"
"""The prefix of the names of seed inputs."""

Seed = Literal["none", "ones", "input"]
"""What the elements of a differentiated value are multiplied by before they are added up."""


class Gradients(NamedTuple):
    """The outputs that `add_gradients` appends, and what weighs the differentiated values.

    Attributes:
        outputs: the gradients, in the order of the targets.
        seeds: the seed of each differentiated value: with `seed="input"` an input.
    """

    outputs: list[Value]
    seeds: dict[Value, Value]


def add_gradients(
    model: Model,
    of: Sequence[Value],
    targets: Sequence[Value],
    *,
    seed: Seed = "none",
    stop_at: Iterable[str] = (),
    again: bool = False,
) -> Gradients:
    """Append the gradients of some values to the outputs of a model.

    The gradient of several values is that of their sum, each times its seed: a vector-Jacobian
    product.

    Args:
        model: the model; its nodes stay as they are.
        of: floating-point values of the main graph.
        targets: floating-point inputs, initializers or other values of the main graph.
        seed: `none`: each value is a single number, and its seed 1. `ones`: its elements are added
            up. `input`: an input `seed/<name>` for each value, of its shape and dtype.
        stop_at: labels of nodes and names of values that count as constants.
        again: check that the gradients can be differentiated in their turn.

    Returns:
        The outputs, in the order, shape and dtype of the targets: `grad/<target>`, and
        `grad/grad/<target>` of `grad/...`. Where that name is taken, it is `grad/<of>/<target>`.

    Raises:
        NoGradient: a node between has no gradient rule that applies; with `again`, a new one.
        UsageError: a value is not floating-point, or has several elements and no seed, or both
            names of a gradient are taken, or a target is there twice, or a name of `stop_at` fits
            nothing.
    """
    graph = model.main
    stop_at = tuple(stop_at)
    _check_stops(model, stop_at)
    for value in (*of, *targets):
        _check_float(value)
    for at, value in enumerate(targets):
        if value in targets[:at]:
            raise UsageError(f"gradient: {value.name!r} is a target twice; name it once")
    names = [_free_name(graph, of, value) for value in targets]
    seeds = {value: _seed(graph, value, seed) for value in of}
    nodes = _between(graph, of)
    first = model.next_serial()
    reverse = ReverseMode(model, stop_at)
    try:
        with paused_collector():
            found = reverse(graph, nodes, seeds, targets)
    finally:
        reverse.release()
    made = [
        _output(graph, value, found.get(value), name)
        for value, name in zip(targets, names, strict=True)
    ]
    graph.prune([node for node in graph.nodes if node.id > first])
    if again:
        reverse.check_rules(_between(graph, made), targets)
    return Gradients(made, seeds)


def are_outputs_already(
    model: Model, made: Gradients, of: Sequence[Value], targets: Sequence[Value]
) -> bool:
    """Return whether the outputs `grad/<target>` that were there compute the new gradients.

    A name proves nothing: the computations are compared. The model stays as it is.
    """
    graph, prefix = model.main, _prefix(of)
    known = [graph.values[prefix + value.name] for value in targets]
    if any(value in made.outputs or not value.is_graph_output for value in known):
        return False
    mark = model.mark()
    for value, seed in made.seeds.items():
        if seed.is_graph_input:
            other = graph.values[SEED_PREFIX + value.name]
            if other.type == seed.type:
                graph.replace_uses(seed, other)
    digests = value_digests(graph)
    model.undo_to(mark)
    pairs = zip(made.outputs, known, strict=True)
    return all(digests[one] == digests[other] for one, other in pairs)


def _prefix(of: Iterable[Value]) -> str:
    depth = 1
    while any(value.name.startswith(PREFIX * depth) for value in of):
        depth += 1
    return PREFIX * depth


def _free_name(graph: Graph, of: Sequence[Value], target: Value) -> str:
    """Return a name for a gradient that no tensor of the main graph has.

    Raises:
        UsageError: both names are taken.
    """
    prefix = _prefix(of)
    names = prefix + target.name, f"{prefix}{'+'.join(value.name for value in of)}/{target.name}"
    for name in names:
        if name not in graph.values:
            return name
    raise UsageError(
        f"gradient: the main graph has tensors {names[0]!r} and {names[1]!r} already; rename one"
    )


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
    names = {value.name: value for value in known if value.is_float}
    found: dict[Value, None] = {}
    for pattern in patterns:
        named = graph.values.get(pattern)
        matches = [value for name, value in names.items() if fnmatchcase(name, pattern)]
        if not matches and named is None:
            hint = did_you_mean(pattern, graph.values)
            raise UsageError(f"{owner}: no float input or initializer matches {pattern!r}{hint}")
        found.update(dict.fromkeys([named] if named is not None else matches))
    return list(found)


def _check_stops(model: Model, names: Sequence[str]) -> None:
    labels = {node.label for graph in model.graphs() for node in graph.nodes}
    known = labels.union(*(graph.values for graph in model.graphs()))
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(f"gradient: stop_at={name!r} is no node and no value{hint}")


def _check_float(value: Value) -> None:
    if not value.is_float:
        kind = value.type or "of an unknown type"
        raise UsageError(f"gradient: {value.name!r} is {kind}; expected a floating-point tensor")


def _seed(graph: Graph, value: Value, seed: Seed) -> Value:
    """Return the gradient of a value with respect to itself: ones, or a new input."""
    if seed == "input":
        name = graph.model.names.fresh(f"{SEED_PREFIX}{value.name}")
        return graph.add_input(name, value.type)
    shape = value.static_shape
    if seed == "none" and (shape is None or prod(shape) != 1):
        raise UsageError(
            f"gradient: {value.name!r} is {value.type}; expected a single number; seed=ones "
            f"adds up its elements, seed=input weighs them by an input '{SEED_PREFIX}{value.name}'"
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


def _output(graph: Graph, target: Value, grad: Value | None, name: str) -> Value:
    """Make a gradient an output, as a new value of the shape of its target.

    Raises:
        NoGradient: it is 0, and the opset cannot make zeros of a shape.
    """
    x = Expr(graph, target, name)
    try:
        value = x.zeros() if grad is None else x.of(grad)
    except NoEquivalentForm as error:
        raise NoGradient(
            f"gradient: the gradient of {target.name!r} is 0: {error}; "
            "convert_opset raises the opset"
        ) from error
    made = value.call("Identity", value).value
    between = graph.values.get(name)
    if between is not None:  # a sum, named after a node
        graph.rename_value(between, graph.model.names.fresh(name))
    graph.rename_value(made, name)
    graph.set_type(made, target.type)
    graph.add_output(made)
    return made
