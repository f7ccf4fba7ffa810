"""A model  =>  the part of it that computes some tensors from others"""

from collections.abc import Collection

from tiered import Graph, Model, PassContext, Skip, Unable, UsageError, Value, module_pass
from tiered.rewriter.idioms.main_tensors import (
    cut_at,
    drop_unused,
    needed_nodes,
    take_name,
    tensor_named,
)


@module_pass(
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("remove_unused_functions", "remove_unused_opsets"),
    touches=("*",),
    changes_interface=True,
)
def extract(
    model: Model, ctx: PassContext, *, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()
) -> Skip | None:
    """Keep the nodes of the main graph between tensors, with the weights that they need.

    Args:
        inputs: tensors that become the inputs, in this order. The inputs of the model that are
            still needed follow. By default, only these.
        outputs: tensors that become the outputs, in this order; by default the model's outputs
            that depend on `inputs`.

    Raises:
        UsageError: the main graph has no such tensor, its type is unknown, it is a weight, or no
            output depends on an input.
    """
    if not inputs and not outputs:
        return Unable("no tensors are given")
    graph = model.main
    first = [_tensor(model, name) for name in dict.fromkeys(inputs)]
    shown = set(graph.outputs)
    last = [_tensor(model, name, shown) for name in dict.fromkeys(outputs)]
    last = last or _dependent(graph, first)
    _check(first, last)
    if _is_done(graph, first, last):
        return Skip("the model is this part")
    _cut(model, first, last)
    return None


def _tensor(model: Model, name: str, outputs: Collection[Value] = ()) -> Value:
    value = tensor_named(model, name, "extract")
    if value.is_constant and value not in outputs:
        raise UsageError(f"extract: {name!r} is a weight; expected a computed tensor or an input")
    if value.type is None:
        raise UsageError(f"extract: the type of {name!r} is unknown; declare it in value_info")
    return value


def _dependent(graph: Graph, first: list[Value]) -> list[Value]:
    """Return the outputs of the graph that depend on some values."""
    found = []
    for output in dict.fromkeys(graph.outputs):
        read = {value for node in needed_nodes([output], first) for value in node.reads}
        if not read.isdisjoint(first):
            found.append(output)
    if not found:
        names = ", ".join(repr(value.name) for value in first)
        raise UsageError(f"extract: no output depends on {names}")
    return found


def _check(first: list[Value], last: list[Value]) -> None:
    given = set(first)
    both = next((value for value in last if value in given and value.producer is not None), None)
    if both is not None:
        raise UsageError(f"extract: {both.name!r} is both an input and an output")
    used = {value for node in needed_nodes(last, first) for value in node.reads}
    used.update(last)
    unused = [value.name for value in first if value not in used]
    if unused:
        names = ", ".join(repr(value.name) for value in last)
        raise UsageError(
            f"extract: {names} can be computed without {', '.join(map(repr, unused))}; leave it out"
        )


def _is_done(graph: Graph, first: list[Value], last: list[Value]) -> bool:
    """Return whether a graph has these inputs and outputs, and nothing that they do not need."""
    nodes = needed_nodes(last)
    used = {*last, *(value for node in nodes for value in node.reads)}
    return (
        list(graph.outputs) == last
        and list(graph.inputs[: len(first)]) == first
        and len(nodes) == len(graph.nodes)
        and all(value in used for value in graph.inputs)
    )


def _cut(model: Model, first: list[Value], last: list[Value]) -> None:
    graph = model.main
    starting = set(first)
    kept = [value for value in dict.fromkeys(graph.outputs) if value not in starting]
    graph.replace_outputs(kept)
    starts = [value if value.producer is None else cut_at(graph, value) for value in first]
    # The elements of a shape that is an input now are no longer known.
    model.forget_types()
    graph.replace_outputs(last)
    drop_unused(graph, keep=starts)
    for start, value in zip(starts, first, strict=True):
        take_name(graph, start, value.name)
    placed = set(starts)
    rest = [value for value in graph.inputs if value not in placed]
    graph.order_inputs([*starts, *rest])
