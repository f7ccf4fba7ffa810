"""A node that reads only constants  =>  what it computes, as a constant"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tiered import (
    DataType,
    Graph,
    Node,
    PassContext,
    Size,
    Skip,
    Tensor,
    Value,
    divides_safely,
    evaluate,
    freed_bytes,
    function_pass,
    is_deterministic,
    size_in_bytes,
    work_of,
)

# A file of a few bytes must not exhaust the memory. These bound, in bytes, what a node makes out of
# less, what one round of computing holds, and what its sessions return before that goes to disk.
_LARGEST_GROWN: Final = 1 << 28
_LARGEST_ROUND: Final = 1 << 30
_LARGEST_SESSION: Final = 1 << 27

# Nor must it take all day: multiplications in one model, about a second of them.
_MOST_WORK: Final = 1 << 33

# Quantised weights stay quantised, and a Constant is a constant already.
_KEPT: Final = frozenset(
    {"Constant", "DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear"}
)

# How many elements these give depends on the numbers: at most the operand's, times its rank.
_SELECTING: Final = frozenset({"Compress", "NonZero", "Unique"})

_FLOATS16: Final = frozenset({DataType.BFLOAT16, DataType.FLOAT16})
_FLOATS: Final = _FLOATS16 | {DataType.DOUBLE, DataType.FLOAT}
_EVALUATED: Final = _FLOATS | {
    DataType.BOOL, DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64,
    DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64,
}  # fmt: skip

_NONE: Final = frozenset[Node]()

Sizes = dict[Value, int]


@function_pass(
    opt_level=2, required=("infer_shapes",), followed_by=("eliminate_unused_initializer",)
)
def fold_constant(graph: Graph, ctx: PassContext, *, max_growth: Size = Size("1%")) -> None:
    """Compute at once what does not depend on the inputs.

    A constant may take more bytes than the nodes it replaces; folding that would make the model
    grow by more than `max_growth` is left, so that ConstantOfShape, Expand, Tile and Range do not
    blow it up.

    Args:
        max_growth: bytes, or a share of the model, by which it may grow; at least 4 KiB.
    """
    # What reads these is looked at once they are taken.
    pending = deque(node for node in graph.topological_order() if _is_known(node, _NONE))
    refused: set[Node] = set()
    while pending:
        sizes: Sizes = {}
        if nodes := _take(graph, ctx, pending, refused, sizes):
            pending.extend(_fold(graph, ctx, nodes, refused, sizes, max_growth))


# --- what can be computed -------------------------------------------------------------------------


def _take(
    graph: Graph, ctx: PassContext, pending: deque[Node], refused: set[Node], sizes: Sizes
) -> set[Node]:
    """Take pending nodes, and return those that one session can compute.

    `sizes` gets the bytes of all that these read and make.
    """
    taken: set[Node] = set()
    most = min(_LARGEST_ROUND, (ctx.max_memory or _LARGEST_ROUND * 2) // 2)
    held = 0
    while pending and held < most:
        node = pending.popleft()
        if node.graph is not graph or node in taken or node in refused:
            continue
        if not _is_known(node, taken):
            continue
        needs = _needs(node, sizes, most)
        if isinstance(needs, Skip):
            refused.add(node)
            ctx.skip(node, needs)
        elif needs is not None:
            taken.add(node)
            sizes.update(needs)
            held += sum(_held(value, size) for value, size in needs.items())
            pending.extend(reader for value in node.outputs if value for reader in value.readers)
    return taken


def _is_known(node: Node, taken: Set[Node]) -> bool:
    """Tell whether all that a node reads is constant, or made by nodes taken already."""
    inputs = node.inputs
    for value in inputs:
        if value is not None and value.producer not in taken:
            tensor = value.tensor
            if tensor is None or tensor.is_sparse:
                return False
    if node.domain or node.op_type in _KEPT or not any(inputs):
        return False
    if node.bodies and not all(value.is_constant for value in node.captured):
        return False
    bears_output = any(value and value.output_of for value in node.outputs)
    # An Identity that bears the name of an output is all that is left to do.
    return not (bears_output and node.op_type == "Identity")


def _needs(node: Node, sizes: Sizes, most: int) -> Sizes | Skip | None:
    """Return the bytes of what a node reads and makes beyond `sizes`, `most` of them in memory.

    A Skip says why it cannot be computed; None, that its operands must be computed before it.
    """
    if node.has_references:
        return Skip("the call of the function decides an attribute")
    if not is_deterministic(node):
        return Skip("it is random, or nothing is known of it")
    if node.is_pinned:
        return Skip("training info or an annotation names the result")
    inputs = [value for value in (*node.inputs, *node.captured) if value is not None]
    outputs = [value for value in node.outputs if value is not None]
    dtypes = {value.dtype for value in (*inputs, *outputs)}
    if not dtypes <= _EVALUATED:
        return Skip("a dtype cannot be computed")
    is_ready = all(value.tensor is not None for value in inputs)
    divides = node.op_type in ("Div", "Mod") and dtypes.isdisjoint(_FLOATS)
    # onnxruntime computes 16 bits in 32 and rounds where it likes; between sessions it must.
    # What has a body is computed alone, in a process of its own.
    if not is_ready and (divides or node.bodies or not dtypes.isdisjoint(_FLOATS16)):
        return None
    if divides and not divides_safely(node):
        return Skip("an integer division by zero, or one that overflows")
    needs = {value: sizes[value] if value in sizes else _bytes(value) for value in inputs}
    largest = max(_LARGEST_GROWN, *needs.values())
    for value in outputs:
        elements = _elements(node, value)
        if elements is None:
            return Skip("the size of the result is not known beforehand") if is_ready else None
        assert value.dtype is not None
        needs[value] = elements * DataType(value.dtype).numpy.itemsize
        if needs[value] > largest:
            return Skip("the result is too large to compute")
    if sum(_held(value, size) for value, size in needs.items()) > most:
        return Skip("computing it takes too much memory")
    work = work_of(node)
    if work is None and node.bodies:
        return Skip("how often it runs is not known beforehand")
    if work is not None:
        if node.owner.model.folded_work + work > _MOST_WORK:
            return Skip("computing it takes too long")
        node.owner.model.folded_work += work
    return {value: size for value, size in needs.items() if value not in sizes}


def _elements(node: Node, value: Value) -> int | None:
    """Return how many elements an output has, or at most has; None if that is not known."""
    if value.static_shape is not None:
        return math.prod(value.static_shape)
    operand = node.inputs[0]
    if node.op_type in _SELECTING and operand is not None and operand.static_shape is not None:
        return max(1, len(operand.static_shape)) * math.prod(operand.static_shape)
    return None


def _bytes(value: Value) -> int:
    return 0 if value.tensor is None else value.tensor.nbytes


def _held(value: Value, size: int) -> int:
    """Return how much of a value of so many bytes is in memory: what is on disk is mapped."""
    return 0 if value.tensor is not None and value.tensor.is_on_disk else size


# --- computing it ---------------------------------------------------------------------------------


def _fold(
    graph: Graph,
    ctx: PassContext,
    nodes: set[Node],
    refused: set[Node],
    sizes: Sizes,
    max_growth: Size,
) -> list[Node]:
    """Compute what others read of the nodes; return the nodes that are worth a look after it."""
    model, growths, again = graph.model, dict[Value, int](), list[Node]()
    limit = max(size_in_bytes(max_growth, model.nbytes), 4096)
    room = limit - model.folded_growth

    def refuse(value: Value, reason: Skip) -> None:
        assert value.producer is not None
        ctx.skip(value.producer, reason)
        refused.add(value.producer)
        # What it is computed from has a reader now that is left alone.
        again.extend(_leading_to(value.producer, nodes))

    for value in _read_elsewhere(nodes):
        growth = sizes[value] - freed_bytes(value)
        if growth > room:
            refuse(value, Skip("the constant would make the model too large"))
        else:
            growths[value] = growth
            room -= growth
    for value, array in _computed(growths, sizes, refuse):
        node, mark = value.producer, model.mark()
        if node is None or node.graph is None or not _is_as_declared(value, array):
            continue
        users = value.readers
        with graph.rewrite("a node that reads only constants => what it computes", node):
            graph.become_constant(value, Tensor.of(array))
        if model.changed_since(mark):
            model.folded_growth += growths[value]
            again.extend(users)
    if again:
        # What is constant now may decide the size of what reads it.
        model.refresh_types()
    return list(dict.fromkeys(again))


def _leading_to(node: Node, nodes: Set[Node]) -> list[Node]:
    """Return which of some nodes lead to another one, however far."""
    found: dict[Node, None] = {}
    pending = [node]
    while pending:
        for value in pending.pop().inputs:
            producer = value.producer if value is not None else None
            if producer is not None and producer in nodes and producer not in found:
                found[producer] = None
                pending.append(producer)
    return list(found)


def _computed(
    wanted: Iterable[Value], sizes: Sizes, refuse: Callable[[Value, Skip], None]
) -> Iterator[tuple[Value, NDArray[np.generic]]]:
    """Yield what values are, a session after the other, so that few of them are held at a time."""
    for session in _sessions(wanted, sizes):
        results = evaluate(session, lambda value, error: refuse(value, Skip("{}", error)))
        yield from results.items()


def _sessions(wanted: Iterable[Value], sizes: Sizes) -> Iterator[list[Value]]:
    session, held = list[Value](), 0
    for value in wanted:
        if session and held + sizes[value] > _LARGEST_SESSION:
            yield session
            session, held = [], 0
        session.append(value)
        held += sizes[value]
    if session:
        yield session


def _read_elsewhere(nodes: set[Node]) -> Iterator[Value]:
    """Yield the outputs that something beside the nodes reads."""
    for node in sorted(nodes, key=lambda node: node.id):
        for value in node.outputs:
            if value is not None and (
                value.output_of or any(use.node not in nodes for use in value.users)
            ):
                yield value


def _is_as_declared(value: Value, array: NDArray[np.generic]) -> bool:
    """Tell whether a result is what the types in the file promise."""
    if Tensor.of(array).dtype != value.dtype:
        return False
    shape = array.shape if value.shape is None else value.shape
    return len(shape) == array.ndim and not any(
        isinstance(dim, int) and dim != size for dim, size in zip(shape, array.shape, strict=True)
    )
