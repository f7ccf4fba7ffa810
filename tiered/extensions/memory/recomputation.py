"""Tensors that are alive over the peak without being read there are computed again after it.

Source: Chen, Xu, Zhang and Guestrin 2016, "Training deep nets with sublinear memory cost", for the
exchange of memory for computation; here copies are chosen by their measured effect on the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory.liveness import Planner, view_source
from tiered.extensions.memory.recomputed_copies import (
    copy_marked,
    first_free_mark,
    maker_of,
    why_not_copied,
)
from tiered.graph import Model, Node, Value
from tiered.graph.queries.multiply_adds import multiply_adds
from tiered.rewriter import Skip

LONGEST: Final = 12
"""The nodes of a chain that is computed again, at most."""

TRIED: Final = 300_000
"""How many nodes the plans that judge copies visit together, about."""

TRIED_A_NODE: Final = 20
"""The same by node, for larger graphs."""

_LAW: Final = "a tensor, read before and after the peak  =>  computed again after the peak"
_DEFAULT: Final = LayoutSizes()


class Recomputed(NamedTuple):
    """What was computed again.

    Attributes:
        copies: how many nodes were added.
        multiply_adds: the multiply-adds of all copies.
        kept: for the tensors that are alive over the peak that is left, why they stay.
    """

    copies: int
    multiply_adds: int
    kept: tuple[tuple[Node, Skip], ...]


def recompute_values(
    model: Model, *, sizes: LayoutSizes = _DEFAULT, max_multiply_adds: int = 0
) -> Recomputed:
    """Copy nodes of the main graph to their later readers, as long as that lowers the peak.

    The result has the same bits. The peak never rises: a copy that does not help to lower it is
    undone. Bodies stay as they are.

    Args:
        model: the model, with types.
        sizes: the sizes of dynamic dims.
        max_multiply_adds: the budget of all copies together; an operator that is no product and no
            convolution takes nothing of it.
    """
    return _Recomputation(model, sizes, max_multiply_adds).run()


class _Peak(NamedTuple):
    """The peak of a plan, and how many nodes reach it; less is better."""

    nbytes: int
    nodes: int


class _Recomputation:
    def __init__(self, model: Model, sizes: LayoutSizes, budget: int) -> None:
        self.model = model
        self.graph = model.main
        self.planner = Planner(sizes, views=True, in_place=True)
        self.budget = budget
        self.spent = 0
        self.mark = first_free_mark(model)
        self.visits = max(TRIED, TRIED_A_NODE * len(self.graph))

    def run(self) -> Recomputed:
        count, least = len(self.graph), self._least()
        at = self._place()
        while at is not None and at.peak.nbytes > least and (lower := self._lower(at)) is not None:
            at = lower
        kept = () if at is None else tuple(self._reasons(at))
        return Recomputed(len(self.graph) - count, self.spent, kept)

    def _least(self) -> int:
        """Return the bytes below which no copy lowers the peak.

        The operands of a node are alive together while it runs, and all outputs at the end.
        """
        inputs = {value for value in self.graph.inputs if not value.is_constant}
        together = (self.graph.outputs, *(node.reads for node in self.graph.nodes))
        needed = [set(map(_stored_as, values)) - inputs for values in together]
        return sum(map(self.planner.nbytes, inputs)) + max(
            sum(self.planner.nbytes(value) for value in values if value.producer is not None)
            for values in needed
        )

    def _place(self) -> _Place | None:
        """Return the graph in its present order at its first peak; None without nodes."""
        order = self.graph.topological_order()
        self.visits -= len(order)
        curve = [step.nbytes for step in self.planner.plan(self.graph)[0]]
        if not curve:
            return None
        peak = max(curve)
        return _Place(order, curve.index(peak), _Peak(peak, curve.count(peak)))

    def _lower(self, at: _Place) -> _Place | None:
        """Add copies until the peak is lower; without success, all of them are undone."""
        mark, spent = self.model.mark(), self.spent
        reached: _Place | None = at
        with self.graph.rewrite(_LAW, at.node_at_peak):
            while reached is not None and reached.peak.nbytes == at.peak.nbytes:
                reached = self._better(reached)
            if reached is None:
                self.model.undo_to(mark)
        if self.model.changed_since(mark):
            return reached
        self.spent = spent
        return None

    def _better(self, at: _Place) -> _Place | None:
        """Make the copies of one tensor that lower the peak or how many nodes reach it."""
        for value in self._passing(at):
            late = at.late_readers(value)
            for chain in self._chains(value, at, late):
                if self.visits <= 0:
                    return None
                mark = self.model.mark()
                self._copy(value, chain, late)
                after = self._place()
                if after is not None and after.peak < at.peak:
                    self.spent += self._cost([node for node in chain if node.graph is not None])
                    # As the order will be when it was saved: a second run finds nothing more.
                    self.graph.order_nodes(after.order)
                    return after
                self.model.undo_to(mark)
        return None

    def _passing(self, at: _Place) -> list[Value]:
        """Return the tensors made before the peak and next read after it, largest first."""
        read_there = set(at.node_at_peak.inputs)
        found = [
            value
            for node in at.order[: at.at]
            if not node.is_op("Constant")
            for value in filter(None, node.outputs)
            if value not in read_there and at.is_read_later(value) and self.planner.nbytes(value)
        ]
        return sorted(found, key=lambda value: -self.planner.nbytes(value))

    def _chains(self, value: Value, at: _Place, late: Sequence[Node]) -> Iterator[list[Node]]:
        """Yield the nodes to copy: back to what is alive at the reader, or the last one alone."""
        if self._why_kept(value, at) is not None:
            return
        whole = self._whole_chain(value, at, at.place[late[0]])
        if whole is not None:
            yield whole
        producer = maker_of(value)
        if whole is None or len(whole) > 1:
            yield [producer]

    def _whole_chain(self, value: Value, at: _Place, reader: int) -> list[Node] | None:
        """Return the nodes from what a reader has alive to a value; None if one must stay."""
        chain: dict[Node, None] = {}
        pending = [value]
        while pending:
            producer = pending.pop().producer
            assert producer is not None
            chain.pop(producer, None)
            chain[producer] = None
            if len(chain) > LONGEST or why_not_copied(producer.output) is not None:
                return None
            pending += [
                operand
                for operand in filter(None, producer.inputs)
                if not at.is_fixed(operand)
                # A view keeps its source alive: without it that need not be.
                if operand is view_source(producer) or not at.is_read_from(operand, reader)
            ]
        nodes = sorted(chain, key=at.place.__getitem__)
        return nodes if self._cost(nodes) <= self.budget - self.spent else None

    def _copy(self, value: Value, chain: Sequence[Node], late: Sequence[Node]) -> None:
        stands: dict[Value, Value | None] = {}
        copy_marked(self.graph, chain, stands, self.mark)
        self.mark += 1
        copied = stands[value]
        assert copied is not None
        for reader in late:
            for slot, operand in enumerate(reader.inputs):
                if operand is value:
                    self.graph.set_input(reader, slot, copied)
        self.graph.prune(chain)

    def _cost(self, nodes: Sequence[Node]) -> int:
        return sum(multiply_adds(node, self.planner.sizes.known_dims) for node in nodes)

    def _why_kept(self, value: Value, at: _Place) -> Skip | None:
        """Return why a tensor is not computed again; None if nothing forbids it."""
        producer = maker_of(value)
        if any(other.is_graph_output for other in at.views(value)):
            return Skip("'{}' is an output of the graph", value.name)
        if any(user.node.graph is not self.graph for user in value.users):
            return Skip("a body reads '{}'", value.name)
        found = why_not_copied(value)
        if found is not None:
            return found
        if self._cost([producer]) > self.budget - self.spent:
            return Skip("'{}' takes more multiply-adds than the budget", value.name)
        return None

    def _reasons(self, at: _Place) -> Iterator[tuple[Node, Skip]]:
        for value in self._passing(at):
            found = self._why_kept(value, at)
            if found is None:
                found = Skip("the peak is no lower without '{}'", value.name)
            yield maker_of(value), found


class _Place:
    """An order of the nodes, and the first node at the peak."""

    def __init__(self, order: Sequence[Node], at: int, peak: _Peak) -> None:
        self.order = order
        self.at = at
        self.peak = peak
        self.node_at_peak = order[at]
        self.place: Mapping[Node, int] = {node: place for place, node in enumerate(order)}
        # The last reader of each value, through its views.
        self._last: dict[Value, int] = {}
        for place in reversed(range(len(order))):
            node = order[place]
            source = view_source(node)
            for value in node.reads:
                self._last[value] = max(self._last.get(value, 0), place)
            if source is not None:
                self._last[source] = max(self._last[source], self._last.get(node.output, 0))

    def views(self, value: Value) -> list[Value]:
        """Return a value and the views of it."""
        found = [value]
        for each in found:
            found += [
                user.node.output
                for user in each.users
                if view_source(user.node) is each and user.node.graph is value.graph
            ]
        return found

    def late_readers(self, value: Value) -> list[Node]:
        """Return the nodes after the peak that read a value, in order."""
        readers = {user.node for user in value.users if self.place.get(user.node, -1) > self.at}
        return sorted(readers, key=self.place.__getitem__)

    def is_read_later(self, value: Value) -> bool:
        """Return whether a node after the peak reads a value, itself or in a body."""
        if value.is_captured:
            return self.is_read_from(value, self.at + 1)
        return any(self.place.get(user.node, -1) > self.at for user in value.users)

    def is_fixed(self, value: Value) -> bool:
        """Return whether a value is alive whatever is copied: it is fed, constant or an output."""
        producer = value.producer
        return producer is None or producer.is_op("Constant") or value.is_graph_output

    def is_read_from(self, value: Value, place: int) -> bool:
        """Return whether the last reader of a value, or of a view of it, is at a place or after."""
        return self._last.get(value, -1) >= place


def _stored_as(value: Value) -> Value:
    """Return the value whose memory a value is in, past the views between."""
    while value.producer is not None and (source := view_source(value.producer)) is not None:
        value = source
    return value
