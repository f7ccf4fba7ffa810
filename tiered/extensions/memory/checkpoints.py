"""Tensors of a forward pass that the backward pass computes again instead of keeping them alive.

The forward pass is cut into segments. What crosses a cut stays. All else that the backward pass
reads is computed again from it, when the backward pass reaches the segment.

Source: Chen, Xu, Zhang and Guestrin 2016, "Training deep nets with sublinear memory cost".
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate
from math import isqrt
from typing import Final, NamedTuple

from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory.liveness import Planner, view_source
from tiered.extensions.memory.recomputation import Recomputed
from tiered.extensions.memory.recomputed_copies import (
    copy_marked,
    first_free_mark,
    maker_of,
    why_not_copied,
)
from tiered.graph import Model, Node, Value
from tiered.graph.queries.multiply_adds import multiply_adds
from tiered.rewriter import Skip
from tiered.support.errors import UsageError, did_you_mean

_LAW: Final = "a tensor that a backward pass reads  =>  computed again there"
_DEFAULT: Final = LayoutSizes()

_SMALL: Final = 0.01
"""The part of all bytes that the smallest tensors may have together, which stay."""


def recompute_forward(
    model: Model,
    forward: Collection[Node],
    *,
    stay: Sequence[str] = (),
    sizes: LayoutSizes = _DEFAULT,
) -> Recomputed:
    """Copy nodes of a forward pass to their readers in the backward pass.

    The results have the same bits. Random and unknown operators, and nodes with bodies, are not
    computed twice. Without `stay`, the cuts are those of the lowest estimate of the peak, and the
    copies are undone if the peak of `memory_plan` is not lower with them.

    Args:
        model: the model, with types.
        forward: the nodes of the forward pass; all others of the main graph are backward.
        stay: names of tensors and labels of nodes, with wildcards, whose tensors stay; what is
            computed after the last of them stays too.
        sizes: the sizes of dynamic dims.

    Raises:
        UsageError: an entry of `stay` matches nothing in the forward pass.
    """
    return _Checkpoints(model, forward, sizes).run(stay)


class _Checkpoints:
    def __init__(self, model: Model, forward: Collection[Node], sizes: LayoutSizes) -> None:
        self.model, self.graph = model, model.main
        self.planner = Planner(sizes, views=True, in_place=True)
        inside = frozenset(forward)
        self.order = [node for node in self.graph.topological_order() if node in inside]
        self.place = {node: at for at, node in enumerate(self.order)}
        self.last = self._last_readers()
        self.read = self._read_backward()
        self.must_stay = {
            node: why
            for node in self.order
            if (why := next(map(why_not_copied, filter(None, node.outputs)), None))
        }

    def run(self, stay: Sequence[str]) -> Recomputed:
        if stay:
            named = self._named(stay)
            last = max((self.place[maker_of(value)] for value in named), default=-1)
            return self._copy(named.__contains__, last)
        before, mark = self._peak(), self.model.mark()
        cuts = best_cuts(self._extents(), len(self.order))
        if cuts:
            done = self._copy(lambda value: self._crosses(value, cuts), cuts[-1] - 1)
            if self._peak() < before:
                return done
            self.model.undo_to(mark)
        reason = Skip("the peak is no lower with segments")
        return Recomputed(0, 0, tuple((node, reason) for node in self.order[-1:]))

    def _peak(self) -> int:
        return max((step.nbytes for step in self.planner.plan(self.graph)[0]), default=0)

    # --- what stays -------------------------------------------------------------------------------

    def _read_backward(self) -> list[Value]:
        """Return the tensors that the backward pass reads, but the smallest."""
        found = [
            value
            for value in self._tensors()
            if any(self._outer(user.node) not in self.place for user in value.users)
        ]
        room = _SMALL * sum(map(self.planner.nbytes, found))
        smallest: set[Value] = set()
        for value in sorted(found, key=self.planner.nbytes):
            room -= self.planner.nbytes(value)
            if room < 0:
                break
            smallest.add(value)
        return [value for value in found if value not in smallest]

    def _tensors(self) -> Iterator[Value]:
        """Yield the results of the forward pass that may be computed again."""
        for node in self.order:
            for value in filter(None, node.outputs):
                if not value.is_graph_output and not node.is_op("Constant"):
                    yield value

    def _outer(self, node: Node) -> Node:
        """Return the node of the main graph that a node is inside of, or that it is."""
        while (outer := node.owner.parent_node) is not None:
            node = outer
        return node

    def _named(self, stay: Sequence[str]) -> set[Value]:
        """Return the tensors that match names, and those of nodes that do.

        Raises:
            UsageError: an entry matches nothing.
        """
        found: set[Value] = set()
        for pattern in stay:
            named = [
                value
                for node in self.order
                for value in filter(None, node.outputs)
                if fnmatchcase(value.name, pattern) or fnmatchcase(node.label, pattern)
            ]
            if not named:
                names = [value.name for value in self._tensors()]
                raise UsageError(
                    f"gradient: stay={pattern!r} matches no tensor and no node of the "
                    f"forward pass{did_you_mean(pattern, names)}"
                )
            found.update(named)
        return found

    # --- where to cut -----------------------------------------------------------------------------

    def _extents(self) -> list[Extent]:
        """Return the memory of the tensors that may be computed again."""
        read = set(self.read)
        roots: dict[Value, Value] = {}
        is_read: set[Value] = set()
        for value in self._tensors():
            source = view_source(maker_of(value))
            roots[value] = value if source is None else roots.get(source, source)
            if value in read:
                is_read.add(roots[value])
        nbytes, place, last = self.planner.nbytes, self.place, self.last
        return [
            Extent(nbytes(root), place[producer], last[root], root in is_read)
            for root in dict.fromkeys(roots.values())
            if (producer := root.producer) in place and producer not in self.must_stay
        ]

    def _last_readers(self) -> dict[Value, int]:
        """Return the place of the last forward reader of each value, through views of it."""
        last: dict[Value, int] = {}
        for node in reversed(self.order):
            source = view_source(node)
            for value in node.reads:
                last[value] = max(last.get(value, -1), self.place[node])
            if source is not None:
                last[source] = max(last[source], last.get(node.output, -1))
        return defaultdict(lambda: -1, last)

    def _crosses(self, value: Value, cuts: Sequence[int]) -> bool:
        segment = bisect_right(cuts, self.place[maker_of(value)])
        return cuts[segment] <= self.last[value]

    # --- copies -----------------------------------------------------------------------------------

    def _copy(self, stays: Callable[[Value], bool], last: int) -> Recomputed:
        """Let the backward pass read copies of what does not stay.

        Args:
            stays: whether a tensor stays.
            last: the place of the last node whose tensors may be computed again.
        """

        def is_kept(value: Value) -> bool:
            producer = value.producer
            if producer not in self.place:
                return True
            is_fixed = producer.is_op("Constant") or value.is_graph_output
            is_fixed = is_fixed or self.place[producer] > last or producer in self.must_stay
            return is_fixed or stays(value)

        again = [value for value in self.read if not is_kept(value)]
        chain: set[Node] = set()
        pending: list[Value] = list(again)
        while pending:
            producer = maker_of(pending.pop())
            if producer not in chain:
                chain.add(producer)
                pending += [each for each in filter(None, producer.inputs) if not is_kept(each)]
        nodes = sorted(chain, key=self.place.__getitem__)
        if nodes:
            with self.graph.rewrite(_LAW, nodes[0]):
                self._redirect(again, nodes)
        cost = sum(multiply_adds(node, self.planner.sizes.known_dims) for node in nodes)
        kept = [
            (node, why)
            for node, why in self.must_stay.items()
            if any(value in self.read for value in node.outputs)
        ]
        return Recomputed(len(nodes), cost, tuple(kept))

    def _redirect(self, values: Sequence[Value], nodes: Sequence[Node]) -> None:
        """Copy nodes, and let the backward pass read their values instead of the first ones."""
        stands: dict[Value, Value | None] = {}
        copy_marked(self.graph, nodes, stands, first_free_mark(self.model))
        for value in values:
            for user in list(value.users):
                if self._outer(user.node) not in self.place:
                    user.node.owner.set_input(user.node, user.slot, stands[value])


# --- Where a forward pass is cut into segments, so that little memory is alive in the backward pass

_FINER: Final = 1.25
"""By which factor more segments are tried next."""

_MOST: Final = 4
"""How many times the square root of the number of nodes is the largest number of segments."""


class Extent(NamedTuple):
    """Memory that a tensor is in, or a tensor and its views.

    Attributes:
        nbytes: its bytes.
        first: the place of the node that computes it.
        last: the place of its last reader in the forward pass.
        is_read: whether the backward pass reads it.
    """

    nbytes: int
    first: int
    last: int
    is_read: bool


def best_cuts(extents: Sequence[Extent], count: int) -> list[int]:
    """Return the places before which to cut, for the lowest estimate; none if no cut lowers it.

    Args:
        extents: the memory that could be computed again.
        count: the number of nodes of the forward pass.
    """
    inner = [0] * count
    change = [0] * (count + 1)
    for each in extents:
        inner[each.first] += each.nbytes if each.is_read else 0
        change[each.first + 1] += each.nbytes
        change[each.last + 1] -= each.nbytes
    crossing, total = list(accumulate(change)), sum(inner)
    best, lowest, parts = list[int](), total, 2.0
    while parts <= max(2, _MOST * isqrt(count)):
        cuts = _cuts(inner, crossing, total / parts)
        estimate = _estimate(extents, cuts)
        if estimate < lowest:
            best, lowest = cuts, estimate
        parts *= _FINER
    return best


def _cuts(inner: Sequence[int], crossing: Sequence[int], budget: float) -> list[int]:
    """Return cuts into segments of about `budget` bytes each, where few bytes cross."""
    cuts = list[int]()
    start, held, narrow = 0, 0, None
    for at, nbytes in enumerate(inner):
        if held > budget and narrow is not None:
            cuts.append(narrow)
            held = sum(inner[narrow:at])
            start, narrow = narrow, None
        if (
            at > start
            and held >= budget / 2
            and (narrow is None or crossing[at] <= crossing[narrow])
        ):
            narrow = at
        held += nbytes
    return cuts


def _estimate(extents: Sequence[Extent], cuts: Sequence[int]) -> int:
    """Return the bytes of what crosses a cut, and those of the largest segment."""
    kept, segments = 0, [0] * (len(cuts) + 1)
    for each in extents:
        segment = bisect_right(cuts, each.first)
        if segment < len(cuts) and cuts[segment] <= each.last:
            kept += each.nbytes
        elif each.is_read:
            segments[segment] += each.nbytes
    return kept + max(segments)
