"""The nodes of local functions, judged where they are called: with the types of each call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from tiered.graph.edits.inlining import copied_nodes
from tiered.graph.queries.call_graph import expanded_size, recursive_functions
from tiered.graph.shape_inference.onnx_inference import MOST_EXPANDED

if TYPE_CHECKING:
    from tiered.graph import Graph, Model, Node
    from tiered.graph.core.graph import Function
    from tiered.targets.shared_rules import Refusal

Judge = Callable[["Node"], "tuple[Refusal, ...]"]

Calls = Callable[["Node"], "Function | None"]
"""Returns the function that a node calls, if the target judges its body."""


def judged_in_calls(
    model: Model, graphs: Iterable[Graph], called: Calls, judge: Judge
) -> dict[Node, tuple[Refusal, ...]]:
    """Return the refusals of each node of a function in its calls; those of the first bad call.

    A body has neither types nor constants of its own. Each call is inlined for as long as its
    copies are judged; the model is then as it was. Nothing is judged in calls, and the model gets a
    note, if these would be too many: thirty functions that each call the next one twice make a
    thousand million.

    Args:
        model: the model.
        graphs: the main graph and its bodies.
        called: finds the function of a call.
        judge: returns the refusals of a node.
    """
    found: dict[Node, tuple[Refusal, ...]] = {}
    calls = [node for graph in graphs for node in graph.nodes if called(node) is not None]
    if not calls:
        return found
    if expanded_size(model, recursive_functions(model)) > MOST_EXPANDED:
        model.note("the local functions call each other too often to judge each of their calls")
        return found
    model.types.refresh(model)
    for call in calls:
        mark = model.mark()
        try:
            copies = dict(_copies(call, called))
            # Consumers of an inner call were inferred before it was inlined.
            model.types.refresh(model)
            for copy, original in copies.items():
                if not found.get(original):
                    found[original] = judge(copy)
        finally:
            model.undo_to(mark)
    return found


def _copies(call: Node, called: Calls) -> Iterator[tuple[Node, Node]]:
    """Inline a call; yield each copy with its original, those of inner calls too."""
    function = called(call)
    if function is None or not _can_be_inlined(call, function):
        return
    originals = copied_nodes(function)
    copies = call.owner.inline_call(call, function, {})
    for copy, original in _with_bodies(zip(copies, originals, strict=True)):
        if not copy.is_live:
            continue
        if called(copy) is None:
            yield copy, original
        else:
            yield from _copies(copy, called)


def _with_bodies(pairs: Iterable[tuple[Node, Node]]) -> Iterator[tuple[Node, Node]]:
    for copy, original in pairs:
        yield copy, original
        for body, source in zip(copy.bodies, original.bodies, strict=True):
            yield from _with_bodies(zip(body.nodes, source.topological_order(), strict=True))


def _can_be_inlined(call: Node, function: Function) -> bool:
    """Return whether the nodes of a function mean the same in the graph of a call."""
    if call.schema is not None or call.bodies:
        return False
    if any(call.input(at) is None and x.is_graph_output for at, x in enumerate(function.inputs)):
        return False
    root = call.owner.root
    return all(
        node.is_same_at(there)
        for node in function.walk()
        if (there := root.opset(node.domain)) and node.schema is not None
    )
