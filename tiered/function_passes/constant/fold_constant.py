"""A node that reads only constants  =>  what it computes, as a constant"""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from tiered import (
    DataType,
    Graph,
    Node,
    PassContext,
    Size,
    Skip,
    Tensor,
    Value,
    function_pass,
    is_deterministic,
    size_in_bytes,
)
from tiered.runtime import ancestors, evaluate

# What is computed on the way may be large, but not so large that a file could exhaust the memory.
_LARGEST: Final = 1 << 28

# Quantised weights stay quantised, and a Constant is a constant already.
_KEPT: Final = frozenset({"Constant", "DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear"})

_EVALUATED: Final = frozenset(
    {DataType.BOOL, DataType.DOUBLE, DataType.FLOAT, DataType.FLOAT16, DataType.INT16,
     DataType.INT32, DataType.INT64, DataType.INT8, DataType.UINT16, DataType.UINT32,
     DataType.UINT64, DataType.UINT8, DataType.BFLOAT16}
)  # fmt: skip

# onnxruntime computes these in float32 and rounds where it likes; one node at a time it must round.
_ROUNDED_LATE: Final = frozenset({DataType.BFLOAT16, DataType.FLOAT16})


@function_pass(opt_level=2, followed_by=("eliminate_unused_initializer",))
def fold_constant(graph: Graph, ctx: PassContext, *, max_growth: Size = Size("1%")) -> None:
    """Compute at once what does not depend on the inputs.

    A constant may take more bytes than the nodes it replaces; folding that would make the model
    grow by more than `max_growth` is left, so that ConstantOfShape, Expand, Tile and Range do not
    blow it up.

    Args:
        max_growth: bytes, or a share of the model, by which folding may make it grow; at least 4 KiB.
    """
    while _fold_once(graph, ctx, max_growth):
        pass


def _fold_once(graph: Graph, ctx: PassContext, max_growth: Size) -> bool:
    """Fold all that can be computed now; tell whether more may have become constant by it."""
    foldable = set(_foldable(graph, ctx))
    roots = [value for node in graph.nodes if node in foldable for value in _read(node, foldable)]
    if not roots:
        return False
    model = graph.model
    limit = max(size_in_bytes(max_growth, model.nbytes), 4096)
    chosen = []
    for value in roots:
        growth = _growth(value, foldable)
        if growth + model.folded_growth > limit:
            ctx.skip(value.producer, Skip("the constant would make the model too large"))
            continue
        model.folded_growth += growth
        chosen.append(value)
    folded = False
    results = evaluate(chosen, lambda value, error: ctx.skip(value.producer, Skip("{}", error)))
    for value, array in results.items():
        if value.dtype is None or value.graph is None or array.shape != value.shape:
            continue
        node = value.producer
        assert node is not None
        with graph.rewrite("a node that reads only constants => what it computes", node):
            graph.become_constant(value, Tensor.of(array))
            folded = True
    return folded and any(node.graph is not None for node in foldable)


def _foldable(graph: Graph, ctx: PassContext) -> Iterator[Node]:
    """Yield the nodes whose every ancestor is constant, and which are bounded in size."""
    found: set[Node] = set()
    for node in graph.topological_order():
        inputs = [value for value in node.inputs if value is not None]
        if node.op_type in _KEPT or node.domain or not inputs or node.bodies:
            continue
        if not all(_is_known(value, found) for value in inputs):
            continue
        reason = _refusal(node, inputs)
        if reason is not None:
            ctx.skip(node, reason)
            continue
        found.add(node)
        yield node


def _is_known(value: Value, found: set[Node]) -> bool:
    return value.producer in found or (value.tensor is not None and not value.tensor.is_sparse)


def _refusal(node: Node, inputs: list[Value]) -> Skip | None:
    """Return why a node that reads only constants is not computed."""
    if node.has_references:
        return Skip("the call of the function decides an attribute")
    if not is_deterministic(node):
        return Skip("it is random")
    outputs = [value for value in node.outputs if value is not None]
    for value in (*inputs, *outputs):
        if value.dtype not in _EVALUATED:
            return Skip("a dtype cannot be computed")
    for value in outputs:
        if value.static_shape is None:
            return Skip("the size of the result is not known beforehand")
        if math.prod(value.static_shape) * 8 > _LARGEST:
            return Skip("the result is too large to compute")
    is_late = any(value.dtype in _ROUNDED_LATE for value in (*inputs, *outputs))
    if is_late and any(value.tensor is None for value in inputs):
        return Skip("16-bit floats are folded one node at a time")
    if node.op_type in ("Div", "Mod") and not _divides_safely(inputs):
        return Skip("an integer division by zero, or one that overflows")
    return None


def _divides_safely(inputs: list[Value]) -> bool:
    """Tell whether a division cannot trap: the processor stops the program for integers."""
    if inputs[0].dtype in (DataType.FLOAT, DataType.DOUBLE, *_ROUNDED_LATE):
        return True
    dividend, divisor = (value.const for value in inputs)
    if dividend is None or divisor is None or (divisor == 0).any():
        return False
    is_signed = np.issubdtype(divisor.dtype, np.signedinteger)
    return not (
        is_signed and (divisor == -1).any() and (dividend == np.iinfo(dividend.dtype).min).any()
    )


def _read(node: Node, foldable: set[Node]) -> Iterator[Value]:
    """Yield the outputs that something beside other foldable nodes reads."""
    for value in node.outputs:
        if value is None or not value.is_used:
            continue
        if node.op_type == "Identity" and value.is_graph_output:
            # It bears the name of the output already.
            continue
        if value.output_of or value.pins or any(use.node not in foldable for use in value.users):
            yield value


def _growth(value: Value, foldable: set[Node]) -> int:
    """Return the bytes that a constant adds, less those of what only it needed."""
    shape = value.static_shape
    assert shape is not None
    assert value.dtype is not None
    added = math.prod(shape) * DataType(value.dtype).numpy.itemsize + 16
    nodes, constants = ancestors([value])
    if len(nodes) > 64:
        return added
    gone = set(nodes)
    for node in reversed(nodes):
        outputs = [output for output in node.outputs if output is not None and output is not value]
        if any(
            output.output_of or output.pins or any(use.node not in gone for use in output.users)
            for output in outputs
        ):
            gone.discard(node)
    freed = sum(node.proto.ByteSize() for node in gone)
    for constant in constants:
        if constant.is_initializer and all(use.node in gone for use in constant.users):
            tensor = constant.tensor
            freed += 0 if tensor is None or constant.output_of else tensor.nbytes + 16
    return added - freed
