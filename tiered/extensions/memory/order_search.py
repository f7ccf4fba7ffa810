"""The order of lowest peak of a short stretch: best first over the sets of nodes that are done.

The bytes alive after a set of nodes do not depend on their order, so the lowest peak with which
each set can be done decides: dynamic programming over the ideals of the partial order. Only
ideals that may lead to a lower peak are visited. Source: Kayaaslan, Lambert, Marchal and Ucar
2018, "Scheduling series-parallel task graphs to minimize peak memory", for the problem; Bellman
1962 for sets as states.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from tiered.extensions.memory.order_problem import Stretch


class FoundOrder(NamedTuple):
    """The result of a search.

    Attributes:
        order: an order with a lower peak than that of the present order; None if none was found.
        is_decided: whether the order, or that there is none, is proved.
        tried: how many nodes were tried as the next one.
    """

    order: list[int] | None
    is_decided: bool
    tried: int


class _State(NamedTuple):
    """A set of nodes that are done, as bits, with the bytes that are alive then."""

    done: int
    ready: int
    alive: int


def best_order(stretch: Stretch, *, floor: int, limit: int) -> FoundOrder:
    """Search for the order of lowest peak.

    Args:
        stretch: the nodes.
        floor: a peak that is not worth going below.
        limit: how many nodes to try as the next one, about.
    """
    return _OrderSearch(stretch, max(floor, stretch.start)).run(limit)


class _OrderSearch:
    def __init__(self, stretch: Stretch, floor: int) -> None:
        self.steps = stretch.steps
        self.buffers = stretch.buffers
        self.start = stretch.start
        self.floor = floor
        self.tried = 0
        self.bound = stretch.peak(range(len(stretch)))
        self.before = [_bits(step.before) for step in self.steps]
        self.readers = [_bits(buffer.readers) for buffer in self.buffers]
        self.kept = [
            sum(
                self.buffers[each].nbytes
                for each in step.makes
                if self.buffers[each].readers or self.buffers[each].is_needed_later
            )
            for step in self.steps
        ]

    def run(self, limit: int) -> FoundOrder:
        whole = (1 << len(self.steps)) - 1
        ready = sum(1 << at for at, before in enumerate(self.before) if not before)
        # The lowest peak first; of equal ones, the set with the most nodes.
        pending = [(self.floor, 0, 0, _State(0, ready, self.start))]
        lowest = {0: self.floor}
        came: dict[int, tuple[int, int]] = {}
        pushed = 0
        while pending:
            peak, _, _, state = heappop(pending)
            if peak > lowest[state.done]:
                continue
            if state.done == whole:
                return FoundOrder(_path(came, whole), is_decided=True, tried=self.tried)
            if self.tried >= limit:
                return FoundOrder(None, is_decided=False, tried=self.tried)
            for node, reached, following in self._successors(state, peak):
                if reached < min(lowest.get(following.done, self.bound), self.bound):
                    lowest[following.done] = reached
                    came[following.done] = state.done, node
                    pushed += 1
                    rank = -following.done.bit_count()
                    heappush(pending, (reached, rank, pushed, following))
        return FoundOrder(None, is_decided=True, tried=self.tried)

    def _successors(self, state: _State, peak: int) -> Iterator[tuple[int, int, _State]]:
        """Yield each node that may be next, the peak with it, and the state after it.

        A node that neither raises the peak nor the bytes alive after it is the only one: whichever
        order follows, it has no higher peak with this node moved to its front.
        """
        found = []
        ready = state.ready
        while ready:
            node = (ready & -ready).bit_length() - 1
            ready &= ready - 1
            self.tried += 1
            at, after = self._bytes(state, node)
            if at <= peak and after <= state.alive:
                yield node, peak, self._after(state, node, after)
                return
            found.append((node, max(peak, at), after))
        for node, reached, after in found:
            if reached < self.bound:
                yield node, reached, self._after(state, node, after)

    def _bytes(self, state: _State, node: int) -> tuple[int, int]:
        """Return the bytes that are alive at a node, and after it."""
        step, left = self.steps[node], ~(state.done | 1 << node)
        freed = [
            each
            for each in step.reads
            if not self.readers[each] & left and not self.buffers[each].is_needed_later
        ]
        at = state.alive + step.allocated
        if any(each in freed for each in step.targets):
            at -= step.written_over
        gone = sum(self.buffers[each].nbytes for each in freed)
        return at, state.alive + self.kept[node] - gone

    def _after(self, state: _State, node: int, alive: int) -> _State:
        done = state.done | 1 << node
        ready = state.ready & ~(1 << node)
        for each in self.steps[node].after:
            if not self.before[each] & ~done:
                ready |= 1 << each
        return _State(done, ready, alive)


def _bits(numbers: list[int]) -> int:
    bits = 0
    for each in numbers:
        bits |= 1 << each
    return bits


def _path(came: dict[int, tuple[int, int]], done: int) -> list[int]:
    """Return the nodes in the order in which a set was done."""
    order = []
    while done:
        done, node = came[done]
        order.append(node)
    return order[::-1]


# --- Orders of a long stretch by the bytes that each node allocates and frees, in n log n ---------


def forward_order(stretch: Stretch) -> list[int]:
    """Return an order in which the next node is the one after which the fewest bytes are alive."""
    left = [len(buffer.readers) + buffer.is_needed_later for buffer in stretch.buffers]
    readers = [set(buffer.readers) for buffer in stretch.buffers]
    missing = [len(step.before) for step in stretch.steps]

    def growth(node: int) -> int:
        step = stretch.steps[node]
        made = sum(stretch.buffers[each].nbytes for each in step.makes if left[each])
        return made - sum(stretch.buffers[each].nbytes for each in step.reads if left[each] == 1)

    order: list[int] = []
    pending = [(growth(node), node) for node, count in enumerate(missing) if not count]
    heapify(pending)
    done = [False] * len(missing)
    while pending:
        _, node = heappop(pending)  # growth only falls: of several entries the right one is first
        if done[node]:
            continue
        done[node] = True
        order.append(node)
        changed: list[int] = []
        for buffer in stretch.steps[node].reads:
            left[buffer] -= 1
            readers[buffer].discard(node)
            if left[buffer] == 1:
                changed += readers[buffer]
        for each in stretch.steps[node].after:
            missing[each] -= 1
            if not missing[each]:
                changed.append(each)
        for each in changed:
            if not missing[each]:
                heappush(pending, (growth(each), each))
    return order


def backward_order(stretch: Stretch) -> list[int]:
    """Return an order in which the last node is the one before which the fewest bytes are alive."""
    is_alive = [buffer.is_needed_later for buffer in stretch.buffers]
    missing = [len(step.after) for step in stretch.steps]

    def growth(node: int) -> int:
        step = stretch.steps[node]
        read = sum(stretch.buffers[each].nbytes for each in step.reads if not is_alive[each])
        return read - sum(stretch.buffers[each].nbytes for each in step.makes if is_alive[each])

    order: list[int] = []
    pending = [(growth(node), -node) for node, count in enumerate(missing) if not count]
    heapify(pending)
    done = [False] * len(missing)
    while pending:
        _, negative = heappop(pending)
        node = -negative
        if done[node]:
            continue
        done[node] = True
        order.append(node)
        changed = []
        for buffer in stretch.steps[node].reads:
            if not is_alive[buffer]:
                is_alive[buffer] = True
                changed += stretch.buffers[buffer].readers
        for each in stretch.steps[node].before:
            missing[each] -= 1
            if not missing[each]:
                changed.append(each)
        for each in changed:
            if not missing[each] and not done[each]:
                heappush(pending, (growth(each), -each))
    return order[::-1]
