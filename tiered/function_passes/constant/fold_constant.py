"""A node that reads only constants  =>  what it computes, as a constant"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tiered import (
    Graph,
    Node,
    PassContext,
    Size,
    Skip,
    Tensor,
    Value,
    evaluate,
    freed_bytes,
    function_pass,
    held_bytes,
    needs_of,
    size_in_bytes,
    waits_for_operands,
    work_of,
)

# A file of a few bytes must not exhaust the memory. These bound, in bytes, what one round of
# computing holds, and what its sessions return before that goes to disk.
_LARGEST_ROUND: Final = 1 << 30
_LARGEST_SESSION: Final = 1 << 27

# Nor must it take all day: multiplications, about a second of them at a time, which are few only
# if they are far fewer; and all in all, where one result decides what is computed next.
_MOST_WORK: Final = 1 << 33
_LITTLE_WORK: Final = 1 << 20
_MOST_WORK_OF_ALL: Final = 1 << 36

# Quantised weights stay quantised, and a Constant is a constant already.
_KEPT: Final = frozenset(
    {"Constant", "DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear"}
)

_NONE: Final = frozenset[Node]()

_TOO_LONG: Final = Skip("computing it takes too long")

Sizes = dict[Value, int]


@function_pass(
    opt_level=2,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    acts_on=("*",),
)
def fold_constant(graph: Graph, ctx: PassContext, *, max_growth: Size = Size("1%")) -> None:
    """Compute at once what does not depend on the inputs.

    A constant may take more bytes than the nodes it replaces. Such constants are folded all
    together, or none of them if the model would grow by more than `max_growth`, so that
    ConstantOfShape, Expand, Tile and Range do not blow it up.

    Args:
        max_growth: bytes, or a share of the model, by which it may grow; at least 4 KiB.
    """
    model = graph.model
    if graph is not model.main:
        # What the model may grow by is one decision for all of its graphs.
        return
    failed: dict[Node, Skip] = {}
    while True:
        mark, failures, look = model.mark(), len(failed), _Look(ctx, failed)
        for each in _graphs(graph):
            look.fold_what_is_small(each)
        if look.growing:
            look.fold_what_grows(graph, max_growth)
        # A decision that holds of the result is the one that a second run comes to.
        if not model.changed_since(mark) and len(failed) == failures:
            break
    for each in _graphs(graph):
        look.refused.update(_kept(each))
    for node, reason in look.refused.items():
        if node.is_live:
            ctx.skip(node, reason)


def _kept(graph: Graph) -> Iterator[tuple[Node, Skip]]:
    """Yield the nodes that are never computed although all operands are constants, and why."""
    has_sparse = any(value.tensor and value.tensor.is_sparse for value in graph.initializers)
    for node in graph.nodes:
        if not (node.domain or has_sparse or node.op_type in _KEPT):
            continue
        if not any(node.inputs) or node.is_op("Constant"):
            continue
        tensors = [value.tensor for value in node.inputs if value is not None]
        if not all(tensor is not None for tensor in tensors):
            continue
        if node.domain:
            yield node, Skip("the operator is not a standard one")
        elif node.op_type in _KEPT:
            yield node, Skip("quantised constants stay quantised")
        elif any(tensor is not None and tensor.is_sparse for tensor in tensors):
            yield node, Skip("an operand is sparse")


def _graphs(main: Graph) -> Iterator[Graph]:
    """Yield the graphs of the model that are still there when they are reached."""
    for graph in tuple(main.model.graphs()):
        if graph.owner is None or graph.owner.is_live:
            yield graph


class _Look:
    """One look at a model: what it leaves alone is left for the whole of it.

    Args:
        failed: what could not be computed so far, and why; more is added.
    """

    def __init__(self, ctx: PassContext, failed: dict[Node, Skip]) -> None:
        self.ctx = ctx
        self.failed = failed
        self.refused = dict(failed)
        # Nodes whose results take more than what they would free.
        self.growing: set[Node] = set()
        self._most = min(_LARGEST_ROUND, (ctx.max_memory or _LARGEST_ROUND * 2) // 2)

    def fold_what_is_small(self, graph: Graph) -> None:
        """Fold all constants of a graph that do not make the model grow."""
        # What reads these is looked at once they are taken.
        pending = deque(_known(graph))
        while pending:
            sizes: Sizes = {}
            nodes = self._take(graph, pending, sizes)
            wanted = list[Value]()
            for value in _read_elsewhere(nodes):
                assert value.producer is not None
                if sizes[value] <= freed_bytes(value):
                    wanted.append(value)
                else:
                    self.growing.add(value.producer)
                    # What it is computed from has a reader now that is left alone.
                    pending.extend(_leading_to([value], nodes))
            pending.extend(self._fold(graph, wanted, nodes, sizes))

    def fold_what_grows(self, main: Graph, max_growth: Size) -> None:
        """Fold all constants that make the model grow, if it may grow by as much.

        None is folded that makes room for another one, or brings up more: then the second run
        would have to go on.
        """
        self.growing.clear()
        growths, limit = dict[Value, int](), _limit(main, max_growth)
        for graph in _graphs(main):
            sizes: Sizes = {}
            nodes = self._take(graph, deque(_known(graph)), sizes, ahead=True)
            growths |= self._growths(nodes, sizes, limit)
        if sum(growths.values()) > limit:
            reason = Skip("the constants together exceed max_growth")
            self.refused |= {value.producer: reason for value in growths if value.producer}
            return
        for graph in _graphs(main):
            sizes = {}
            nodes = self._take(graph, deque(_known(graph)), sizes)
            wanted = [value for value in _read_elsewhere(nodes) if value in growths]
            self._fold(graph, wanted, nodes, sizes)

    def _growths(self, nodes: Set[Node], sizes: Sizes, limit: int) -> dict[Value, int]:
        """Return by how many bytes values make the model grow, of those that fit each for itself.

        Args:
            nodes: what can be computed, at once or one after the other.
            sizes: the bytes of all that they read and make.
            limit: by how many bytes the model may grow.
        """
        found: dict[Value, int] = {}
        close: set[Node] = set()
        freed_by_all = _bytes_of(nodes, sizes)
        pending = deque(_read_elsewhere(nodes))
        # What must be computed before another node can be is there for a while.
        pending.extend(v for v in _made_by(nodes) if any(map(waits_for_operands, v.readers)))
        while pending:
            value = pending.popleft()
            node, growth = value.producer, sizes[value] - freed_bytes(value)
            if value in found or node is None or node in self.refused:
                continue
            if self._decides_a_size(value, nodes):
                self.refused[node] = Skip("its consumer has a data-dependent shape")
            elif growth <= limit:
                found[value] = max(growth, 0)
            else:
                self.refused[node] = Skip("the constant exceeds max_growth")
                if sizes[value] - freed_by_all > 2 * limit:
                    # It is too large even when all that it is computed from is folded.
                    pending.extend(v for v in node.inputs if v is not None and v.producer in nodes)
                else:
                    close |= _close_to(value, nodes, sizes, limit)
        for value in [value for value in found if value.producer in close]:
            assert value.producer is not None
            self.refused[value.producer] = Skip("it would make room for a larger constant")
            del found[value]
        return found

    def _decides_a_size(self, value: Value, nodes: Set[Node]) -> bool:
        """Return whether the output size of a consumer depends on the elements of a value."""
        return any(
            reader not in nodes and reader not in self.refused and _is_known(reader, nodes)
            for reader in value.readers
        )

    def _take(
        self, graph: Graph, pending: deque[Node], sizes: Sizes, *, ahead: bool = False
    ) -> set[Node]:
        """Take pending nodes, and return those that one session can compute.

        Args:
            graph: where they are.
            pending: what is not taken remains there.
            sizes: gets the bytes of all that the nodes read and make.
            ahead: take also what only the next sessions can compute, as far as its size is known.
        """
        works: dict[Node, int] = {}
        held = 0
        while pending and (ahead or held < self._most):
            node = pending.popleft()
            if node.graph is not graph or node in works or node in self.refused:
                continue
            if node in self.growing or not _is_known(node, works.keys()):
                continue
            needs, work = needs_of(node, sizes, self._most, ahead=ahead), work_of(node) or 0
            if isinstance(needs, Skip):
                self.refused[node] = needs
            elif work > _MOST_WORK:
                self.refused[node] = _TOO_LONG
            elif needs is not None:
                works[node] = work
                sizes.update(needs)
                held += sum(held_bytes(value, size) for value, size in needs.items())
                readers = (v.readers for v in node.outputs if v is not None)
                pending.extend(reader for each in readers for reader in each)
        if sum(works.values()) <= _MOST_WORK:
            return set(works)
        # All that takes long, or none of it: what a second run would compute, this one does.
        long = [node for node, work in works.items() if work > _LITTLE_WORK]
        # Where there is none of these, it is many little ones that take long together.
        self.refused |= dict.fromkeys(long or works, _TOO_LONG)
        return self._take(graph, deque(works), sizes, ahead=ahead)

    def _fold(
        self, graph: Graph, wanted: list[Value], nodes: Set[Node], sizes: Sizes
    ) -> list[Node]:
        """Compute values from nodes; return the nodes that are worth a look after it."""
        model, again = graph.model, list[Node]()

        def refuse(value: Value, reason: Skip) -> None:
            assert value.producer is not None
            self.failed[value.producer] = self.refused[value.producer] = reason
            again.extend(_leading_to([value], nodes))

        # Nobody knows beforehand what all of it takes, so this budget is spent. It is the model's:
        # were it the run's, the next run would go on. What is undone gives its part back.
        if model.folded_work > _MOST_WORK_OF_ALL:
            self.refused |= dict.fromkeys(nodes, _TOO_LONG)
            return []
        needed = {value.producer for value in wanted}.union(_leading_to(wanted, nodes))
        work = sum(work_of(node) or 0 for node in needed if node is not None)
        begin = model.mark()
        for value, array in _computed(wanted, sizes, refuse):
            node, mark = value.producer, model.mark()
            if node is None or node.graph is None:
                continue
            if not _is_as_declared(value, array):
                refuse(value, Skip("the result has another type than declared"))
                continue
            users = value.readers
            with graph.rewrite("a node that reads only constants => what it computes", node):
                graph.become_constant(value, Tensor.of(array))
            if model.changed_since(mark):
                again.extend(users)
        if model.changed_since(begin):
            model.note_folded_work(work)
        if again:
            # What is constant now may decide the size of what reads it.
            model.refresh_types()
        return list(dict.fromkeys(again))


# --- what can be computed -------------------------------------------------------------------------


def _known(graph: Graph) -> Iterator[Node]:
    return (node for node in graph.topological_order() if _is_known(node, _NONE))


def _is_known(node: Node, taken: Set[Node]) -> bool:
    """Return whether all that a node reads is constant, or made by nodes taken already."""
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


# --- computing it ---------------------------------------------------------------------------------


def _leading_to(values: Iterable[Value], nodes: Set[Node]) -> list[Node]:
    """Return which of some nodes lead to the producers of values, however far."""
    found: dict[Node, None] = {}
    pending = [value.producer for value in values]
    while pending:
        node = pending.pop()
        for value in node.inputs if node is not None else ():
            producer = value.producer if value is not None else None
            if producer is not None and producer in nodes and producer not in found:
                found[producer] = None
                pending.append(producer)
    return list(found)


def _bytes_of(nodes: Iterable[Node], sizes: Sizes) -> int:
    """Return the most that folding nodes can free: they, and all constants that they read."""
    read = {v for node in nodes for v in (*node.inputs, *node.captured) if v and v.is_constant}
    return sum(sizes[value] for value in read) + sum(node.proto.ByteSize() for node in nodes)


def _close_to(value: Value, nodes: Set[Node], sizes: Sizes, limit: int) -> set[Node]:
    """Return the nodes whose folding might make a value fit that is too large.

    Growth of at most `limit` moves into what it is computed from. Where that is not even needed,
    whatever leaves it the last reader of something is close too.
    """
    reach = set(_leading_to([value], nodes))
    if value.producer is not None:
        reach.add(value.producer)
    least = sizes[value] - _bytes_of(reach, sizes)
    if least > 2 * limit:
        return set()
    if least <= limit:
        pending = [reader for node in reach for v in node.inputs if v for reader in v.readers]
        while pending:
            node = pending.pop()
            if node in nodes and node not in reach:
                reach.add(node)
                pending.extend(reader for v in node.outputs if v for reader in v.readers)
    return reach


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


def _read_elsewhere(nodes: Set[Node]) -> Iterator[Value]:
    """Yield the outputs that something beside the nodes reads."""
    for value in _made_by(nodes):
        if value.output_of or any(use.node not in nodes for use in value.users):
            yield value


def _made_by(nodes: Iterable[Node]) -> Iterator[Value]:
    for node in sorted(nodes, key=lambda node: node.id):
        yield from (value for value in node.outputs if value is not None)


def _limit(main: Graph, max_growth: Size) -> int:
    """Return by how many bytes the present model may grow."""
    return max(size_in_bytes(max_growth, main.model.nbytes), 4096)


def _is_as_declared(value: Value, array: NDArray[np.generic]) -> bool:
    """Return whether a result is what the types in the file promise."""
    if Tensor.of(array).dtype != value.dtype:
        return False
    shape = array.shape if value.shape is None else value.shape
    return len(shape) == array.ndim and not any(
        isinstance(dim, int) and dim != size for dim, size in zip(shape, array.shape, strict=True)
    )
