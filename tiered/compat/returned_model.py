"""Passes that return another model or graph, as in TVM and torch.fx: its content is taken over."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

import tiered
from tiered.context import PassContext
from tiered.graph import Graph, Model, Value
from tiered.passes.pass_run import edited_by
from tiered.passes.validity import check_result
from tiered.support.amounts import counted
from tiered.support.errors import UsageError


def checked(pass_: tiered.Pass) -> tiered.Pass:
    """Return a pass for a direct call: `final_check` follows it, as in `tiered.optimize`."""
    return tiered.Sequential([pass_, "final_check"])


def take_over(model: Model, outcome: object, ctx: PassContext) -> object:
    """Let a model have the content of the one that a pass returned, if that is another one.

    Args:
        model: the model that the pass was called with.
        outcome: its result: a `Model` or a ModelProto, alone or in a `PassResult`.
        ctx: the context of the pass.

    Returns:
        None; a result that is no model is returned as it is.

    Raises:
        ModelError: the other model is not valid, and this one was.
    """
    made = edited_by(outcome)
    if made is model or made is None:
        return None
    if not isinstance(made, Model | onnx.ModelProto):
        return outcome
    proto = made.to_proto() if isinstance(made, Model) else made
    if proto != model.to_proto():
        model.exchange(proto)
        check_result(model, ctx)
    return None


def take_over_graph(graph: Graph, made: Graph) -> None:
    """Let a graph have the nodes and constants of a graph of another model.

    Inputs and outputs keep their names and declarations.

    Args:
        graph: a main graph or a local function.
        made: the graph to take the nodes from; it stays.

    Raises:
        UsageError: it has other numbers of inputs or outputs, or calls a function that the model of
            `graph` has not, or `graph` is a body, or an output that is an input is another value.
    """
    _check_graph(graph, made)
    outputs, infos = list(graph.outputs), list(graph.output_infos)
    names = [value.name for value in outputs]
    graph.set_graph_outputs([])
    for node in reversed(graph.topological_order()):
        graph.remove_node(node)
    for value in [each for each in graph.initializers if each not in graph.inputs]:
        graph.remove_constant(value)
    stands: dict[Value, Value | None] = dict(zip(made.inputs, graph.inputs, strict=True))
    for value in made.initializers:
        if value.tensor is not None:
            stands[value] = graph.constant(value.tensor, value.name)
    graph.copy_nodes(made.topological_order(), stands)
    results: list[Value] = []
    for value, before in zip(made.outputs, outputs, strict=True):
        result = stands[value]
        assert result is not None, value
        if before.is_graph_input and result is not before:
            raise UsageError(
                f"output {before.name!r} is an input of graph {graph.name!r}: another function "
                "must return it too"
            )
        if not before.is_graph_input:
            result = output_of(graph, result, results)
        results.append(result)
    renamed = [(r, name) for r, name in zip(results, names, strict=True) if not r.is_graph_input]
    for _, name in renamed:  # another value may have it
        if name in graph.values:
            graph.rename_value(graph.values[name], graph.model.names.fresh(f"{name}_1"))
    for result, name in renamed:
        graph.rename_value(result, name)
    graph.set_graph_outputs(results, infos)


def output_of(graph: Graph, value: Value, others: Sequence[Value] = ()) -> Value:
    """Return a value that may be an output by any name: itself, or an Identity of it.

    Args:
        graph: the graph.
        value: the value: an input, another output and a value of a graph around keep their names.
        others: the outputs before it.
    """
    is_kept = value.is_graph_input or value.is_graph_output or value in others
    return graph.op.Identity(value) if is_kept or value.graph is not graph else value


def _check_graph(graph: Graph, made: Graph) -> None:
    if graph.parent_node is not None or made.parent_node is not None:
        raise UsageError(
            f"the body {graph.name!r} cannot become another graph: return None for bodies, and "
            "edit them in place"
        )
    for what, mine, others in (
        ("input", graph.inputs, made.inputs),
        ("output", graph.outputs, made.outputs),
    ):
        if len(mine) != len(others):
            raise UsageError(
                f"graph {graph.name!r} has {counted(len(mine), what)}, and the returned one "
                f"{len(others)}: expected the same"
            )
    for node in made.walk():
        is_call = made.model.function(*node.callee) is not None
        if is_call and graph.model.function(*node.callee) is None:
            raise UsageError(
                f"the returned graph calls the function {node.op_type!r}, which the model has not: "
                "a function pass adds no functions, a module pass may"
            )
