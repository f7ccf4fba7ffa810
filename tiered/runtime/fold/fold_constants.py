"""Constant folding of a whole model: round after round, until a round finds nothing to fold.

A round folds all constants that do not make the model grow, a batch at a time, then those that do,
if they fit together. The bounds: bytes and work of a batch (`session_batches.py`), work of a model
(here), growth (`growth.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Final

from tiered.graph.core.tensor import Tensor
from tiered.rewriter.skip import Skip
from tiered.runtime.fold.compute_cost import waits_for_operands, work_of
from tiered.runtime.fold.foldable_nodes import (
    is_known,
    known_nodes,
    never_computed,
    nodes_leading_to,
    outputs_of,
    outputs_used_elsewhere,
)
from tiered.runtime.fold.node_evaluation import evaluate_in_sessions, freed_bytes
from tiered.runtime.fold.session_batches import TOO_LONG, Batches, Sizes
from tiered.support.typed_options import Size, size_in_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value
    from tiered.runtime.fold.session_batches import Sizes

# Multiplications in all, as one result may decide what is computed next.
_MOST_WORK_OF_ALL: Final = 1 << 36

# A model may always grow by as much.
_LEAST_GROWTH: Final = 4096


def fold_constants(
    model: ModelState,
    max_growth: Size,
    on_skip: Callable[[Node, Skip], object],
    *,
    max_memory: int | None = None,
    max_tensor_size: int = -1,
) -> None:
    """Compute the nodes that depend on constants alone, in all graphs of a model.

    Args:
        model: the model; it is edited.
        max_growth: bytes, or a share of the model, by which it may grow; at least 4 KiB.
        on_skip: called with each node that is not computed, and why.
        max_memory: the memory that may be used, in bytes; None for the default.
        max_tensor_size: the bytes of the largest constant that is computed; -1 for no limit.
    """
    failed: dict[Node, Skip] = {}
    while True:
        mark, failures = model.mark(), len(failed)
        a_round = _Round(model, failed, Batches(dict(failed), max_memory, max_tensor_size))
        for graph in _graphs(model):
            a_round.fold_small(graph)
        if a_round.has_growing:
            a_round.fold_growing(max_growth)
        # A decision that holds for the result is the one that a second run makes.
        if not model.changed_since(mark) and len(failed) == failures:
            break
    refused = a_round.refused
    for graph in _graphs(model):
        refused.update(never_computed(graph))
    for node, reason in refused.items():
        if node.is_live:
            on_skip(node, reason)


def _graphs(model: ModelState) -> Iterator[Graph]:
    """Yield the graphs of the model that are still there when they are reached."""
    for graph in tuple(model.graphs()):
        if graph.parent_node is None or graph.parent_node.is_live:
            yield graph


class _Round:
    """One round over a model. A node that is refused stays refused until the next round.

    Args:
        failed: the nodes whose computation failed in any round, and why; more are added.
        batches: takes the nodes that are computed together.
    """

    def __init__(self, model: ModelState, failed: dict[Node, Skip], batches: Batches) -> None:
        self.model = model
        self.failed = failed
        self.refused = batches.refused
        self._batches = batches

    @property
    def has_growing(self) -> bool:
        """Whether a constant takes more bytes than it would free."""
        return bool(self._batches.growing)

    def fold_small(self, graph: Graph) -> None:
        """Fold all constants of a graph that do not make the model grow."""
        # Consumers are considered once their operands are taken.
        pending = deque(known_nodes(graph))
        while pending:
            sizes: Sizes = {}
            nodes = self._batches.take(graph, pending, sizes)
            wanted, growing = _by_growth(nodes, sizes)
            while growing and not wanted and not pending:
                # The next batch would be the same nodes without these.
                nodes = _without(nodes, self._keep(growing))
                wanted, growing = _by_growth(nodes, sizes)
            self._keep(growing)
            for value in growing:
                # Its operands have a consumer now that stays.
                pending.extend(nodes_leading_to([value], nodes))
            pending.extend(self._fold(graph, wanted, nodes, sizes))

    def _keep(self, growing: Sequence[Value]) -> list[Node]:
        """Leave values to `fold_growing`; return the nodes that compute them."""
        nodes = [value.producer for value in growing if value.producer is not None]
        self._batches.growing.update(nodes)
        return nodes

    def fold_growing(self, max_growth: Size) -> None:
        """Fold all constants that make the model grow, if together they fit into the limit.

        None is folded that makes room for another one, or enables more: then a second run would
        have to go on.
        """
        self._batches.growing.clear()
        limit = max(size_in_bytes(max_growth, self.model.nbytes), _LEAST_GROWTH)
        growths = dict["Value", int]()
        for graph in _graphs(self.model):
            sizes: Sizes = {}
            nodes = self._batches.take(graph, deque(known_nodes(graph)), sizes, ahead=True)
            growths |= admissible_growth(nodes, sizes, limit, self.refused)
        if not growths:
            return
        if sum(growths.values()) > limit:
            reason = Skip("the constants together exceed max_growth")
            self.refused.update((value.producer, reason) for value in growths if value.producer)
            return
        for graph in _graphs(self.model):
            sizes = {}
            nodes = self._batches.take(graph, deque(known_nodes(graph)), sizes)
            wanted = [value for value in outputs_used_elsewhere(nodes) if value in growths]
            self._fold(graph, wanted, nodes, sizes)

    def _fold(
        self, graph: Graph, wanted: list[Value], nodes: Set[Node], sizes: Sizes
    ) -> list[Node]:
        """Compute values from nodes; return the nodes to consider again."""
        model, again = self.model, list["Node"]()

        def refuse(value: Value, reason: Skip) -> None:
            assert value.producer is not None
            self.failed[value.producer] = self.refused[value.producer] = reason
            again.extend(nodes_leading_to([value], nodes))

        # The whole work is not known beforehand, so this budget is spent. It is the model's, not
        # the run's: otherwise the next run would go on. Undoing an edit refunds its part.
        if model.folded_work > _MOST_WORK_OF_ALL:
            self.refused.update(dict.fromkeys(nodes, TOO_LONG))
            return []
        needed = {value.producer for value in wanted}.union(nodes_leading_to(wanted, nodes))
        work = sum(work_of(node) or 0 for node in needed if node is not None)
        begin = model.mark()
        for value, array in evaluate_in_sessions(wanted, sizes, refuse):
            node, mark = value.producer, model.mark()
            if node is None or node.graph is None:
                continue
            if not _is_as_declared(value, array):
                refuse(value, Skip("the result has another type than declared"))
                continue
            users, constant = value.readers, Tensor.of(array)
            # A large one is on disk now, and the next session needs the memory.
            del array
            with graph.rewrite("a node that reads only constants => what it computes", node):
                graph.become_constant(value, constant)
            if model.changed_since(mark):
                again.extend(users)
        if model.changed_since(begin):
            model.note_folded_work(work)
        if again:
            # A new constant may decide the size of its consumers' outputs.
            model.refresh_types()
        return list(dict.fromkeys(again))


def _by_growth(nodes: Set[Node], sizes: Sizes) -> tuple[list[Value], list[Value]]:
    """Return the values that others need of nodes: those that do not grow the model, the others."""
    wanted, growing = list["Value"](), list["Value"]()
    for value in outputs_used_elsewhere(nodes):
        (wanted if sizes[value] <= freed_bytes(value) else growing).append(value)
    return wanted, growing


def _without(nodes: Set[Node], dropped: Iterable[Node]) -> set[Node]:
    """Return nodes without some of them, and without all that depend on these."""
    left, pending = set(nodes), [*dropped]
    while pending:
        node = pending.pop()
        if node in left:
            left.remove(node)
            pending.extend(reader for v in node.outputs if v for reader in v.readers)
    return left


def _is_as_declared(value: Value, array: NDArray[np.generic]) -> bool:
    """Return whether a result has the type that the file declares."""
    if Tensor.of(array).dtype != value.dtype:
        return False
    shape = array.shape if value.shape is None else value.shape
    return len(shape) == array.ndim and not any(
        isinstance(dim, int) and dim != size for dim, size in zip(shape, array.shape, strict=True)
    )


# --- Growth: which constants may take more bytes than the nodes that they replace -----------------


def admissible_growth(
    nodes: Set[Node], sizes: Sizes, limit: int, refused: dict[Node, Skip]
) -> dict[Value, int]:
    """Return the admissible constants, and by how many bytes each makes the model grow.

    Args:
        nodes: nodes that can be computed, in one session or several.
        sizes: the bytes of all their operands and outputs.
        limit: by how many bytes the model may grow.
        refused: gets the producers of the other constants, and why.
    """
    found: dict[Value, int] = {}
    close: set[Node] = set()
    freed_by_all = _bytes_of(nodes, sizes)
    pending = deque(outputs_used_elsewhere(nodes))
    # A constant that a waiting node needs exists for a while.
    pending.extend(v for v in outputs_of(nodes) if any(map(waits_for_operands, v.readers)))
    while pending:
        value = pending.popleft()
        node, growth = value.producer, sizes[value] - freed_bytes(value)
        if value in found or node is None or node in refused:
            continue
        if _decides_a_size(value, nodes, refused):
            refused[node] = Skip("its consumer has a data-dependent shape")
        elif growth <= limit:
            found[value] = max(growth, 0)
        else:
            refused[node] = Skip("the constant exceeds max_growth")
            if sizes[value] - freed_by_all > 2 * limit:
                # It is too large even when everything on which it depends is folded.
                pending.extend(v for v in node.inputs if v is not None and v.producer in nodes)
            else:
                close |= _close_to(value, nodes, sizes, limit)
    for value in [value for value in found if value.producer in close]:
        assert value.producer is not None
        refused[value.producer] = Skip("it would make room for a larger constant")
        del found[value]
    return found


def _decides_a_size(value: Value, nodes: Set[Node], refused: dict[Node, Skip]) -> bool:
    """Return whether the output size of a consumer depends on the elements of a value."""
    return any(
        reader not in nodes and reader not in refused and is_known(reader, nodes)
        for reader in value.readers
    )


def _bytes_of(nodes: Iterable[Node], sizes: Sizes) -> int:
    """Return the most that folding nodes can free: the nodes and all constants they read."""
    read = {value for node in nodes for value in node.reads if value.is_constant}
    return sum(sizes[value] for value in read) + sum(node.proto.ByteSize() for node in nodes)


def _close_to(value: Value, nodes: Set[Node], sizes: Sizes, limit: int) -> set[Node]:
    """Return the nodes whose folding might make a value fit that is too large.

    Growth of at most `limit` moves into the values on which it depends. If not even that is
    needed, each node that shares an operand with them is close too.
    """
    reach = set(nodes_leading_to([value], nodes))
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
