"""A double initializer  =>  a float initializer and a Cast to double"""

from __future__ import annotations

import numpy as np
import onnx

from tiered import Graph, Model, PassContext, Skip, Value, module_pass


@module_pass(opt_level=None, touches=("*",), numerics="lossy")
def double_to_float(model: Model, ctx: PassContext) -> Skip | None:
    """Keep the double initializers as floats, in half the bytes: PopRT's double_to_float.

    A Cast gives each reader a double, as the types of its other operands are; one that casts to
    float reads the float. Initializers that a caller may feed stay, and those with a number that
    no float is close to: beyond its range, or so small that it becomes 0.
    """
    found = [
        (graph, value)
        for graph in model.graphs()
        for value in graph.initializers
        if value.dtype == onnx.TensorProto.DOUBLE
    ]
    if not found:
        return Skip("no initializer is of doubles")
    for graph, value in found:
        if value.is_overridable:
            ctx.skip(None, Skip("{!r} is a graph input, which has its type", value.name))
            continue
        if value.is_graph_output:
            ctx.skip(None, Skip("{!r} is an output of its graph, which has its type", value.name))
            continue
        narrow = _narrowed(value)
        if narrow is None:
            ctx.skip(None, Skip("{!r} has a number that no float is close to", value.name))
            continue
        with graph.rewrite("a double initializer  =>  a float initializer and a Cast", value):
            _read_floats(graph, value, narrow)
    return None


def _narrowed(value: Value) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None:
    """Return the numbers as floats; None if one would be infinite or 0 that is not."""
    numbers = value.const
    if numbers is None:
        return None
    with np.errstate(over="ignore", under="ignore"):
        narrow = numbers.astype(np.float32)
    same = (np.isinf(narrow) == np.isinf(numbers)) & ((narrow == 0) == (numbers == 0))
    return narrow if bool(np.all(same)) else None


def _read_floats(
    graph: Graph, value: Value, narrow: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> None:
    """Let the readers of an initializer read one of floats, by a Cast."""
    made = graph.constant(narrow, value.name)
    for reader in list(value.readers):
        is_narrowing = reader.is_op("Cast") and reader.attr("to") == onnx.TensorProto.FLOAT
        if is_narrowing and reader.graph is graph:
            graph.replace(reader, [made])
    if value.is_used:
        graph.replace_uses(value, graph.op.Cast(made, to=onnx.TensorProto.DOUBLE))
    if value.graph is graph:  # not removed yet with its last reader
        graph.remove_constant(value)
