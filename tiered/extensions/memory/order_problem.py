"""Nodes as an order of low peak sees them: what each must follow, allocates and frees.

A `Stretch` is a run of consecutive nodes, of a graph or of a longer stretch. Its nodes have local
numbers, in the present order. A buffer is a tensor with its views.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tiered.extensions.memory.liveness import Planner, may_write_over, view_source
from tiered.graph import Graph, Node, Value, is_deterministic


@dataclass
class Buffer:
    """The memory of a tensor and of its views.

    Attributes:
        nbytes: its size.
        readers: the nodes of the stretch that read it, ascending.
        is_needed_later: whether it is alive after the stretch.
    """

    nbytes: int
    readers: list[int] = field(default_factory=list)
    is_needed_later: bool = False


@dataclass
class OrderStep:
    """One node of a stretch.

    Attributes:
        before, after: the nodes that must come before it, and after it.
        reads: the buffers that it reads.
        makes: the buffers that it makes.
        allocated: the bytes of its outputs, and of the peak inside of its bodies.
        written_over: the bytes that it saves if it writes over one of `targets`.
        targets: the buffers that it may write over if it is the last to read them.
    """

    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    makes: list[int] = field(default_factory=list)
    allocated: int = 0
    written_over: int = 0
    targets: list[int] = field(default_factory=list)

    def mapped(
        self, nodes: Callable[[list[int]], list[int]], buffer: Callable[[int], int]
    ) -> OrderStep:
        """Return the step with other numbers of nodes and buffers."""
        return OrderStep(
            before=nodes(self.before),
            after=nodes(self.after),
            reads=[buffer(each) for each in self.reads],
            makes=[buffer(each) for each in self.makes],
            allocated=self.allocated,
            written_over=self.written_over,
            targets=[buffer(each) for each in self.targets],
        )


@dataclass
class Stretch:
    """Consecutive nodes, with the bytes that are alive before the first of them."""

    steps: list[OrderStep]
    buffers: list[Buffer]
    start: int

    def __len__(self) -> int:
        return len(self.steps)

    def curve(self, order: Iterable[int]) -> list[int]:
        """Return the bytes that are alive at each node of an order."""
        return [nbytes for _, nbytes in self.run(order)]

    def peak(self, order: Iterable[int]) -> int:
        """Return the largest number of bytes that are alive at a node of an order."""
        return max(self.curve(order), default=self.start)

    def run(self, order: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield the bytes that are alive before each node of an order, and at the node."""
        left = [len(buffer.readers) + buffer.is_needed_later for buffer in self.buffers]
        alive = self.start
        for at in order:
            step = self.steps[at]
            for buffer in step.reads:
                left[buffer] -= 1
            saved = step.written_over if any(not left[each] for each in step.targets) else 0
            yield alive, alive + step.allocated - saved
            alive += sum(self.buffers[each].nbytes for each in step.makes if left[each])
            alive -= sum(self.buffers[each].nbytes for each in step.reads if not left[each])

    def window(self, low: int, high: int, start: int) -> Stretch:
        """Return the nodes from one to before another; `start` bytes are alive before them."""
        numbers: dict[int, int] = {}
        buffers: list[Buffer] = []

        def number(key: int) -> int:
            if key not in numbers:
                numbers[key] = len(buffers)
                whole = self.buffers[key]
                first, end = (bisect_left(whole.readers, each) for each in (low, high))
                readers = [each - low for each in whole.readers[first:end]]
                is_needed_later = whole.is_needed_later or end < len(whole.readers)
                buffers.append(Buffer(whole.nbytes, readers, is_needed_later))
            return numbers[key]

        def within(nodes: list[int]) -> list[int]:
            return [each - low for each in nodes if low <= each < high]

        steps = [step.mapped(within, number) for step in self.steps[low:high]]
        return Stretch(steps, buffers, start)

    def permuted(self, order: Sequence[int]) -> Stretch:
        """Return the stretch with its nodes in another order."""
        place = [0] * len(order)
        for at, each in enumerate(order):
            place[each] = at

        def placed(nodes: list[int]) -> list[int]:
            return sorted(place[each] for each in nodes)

        buffers = [
            Buffer(each.nbytes, placed(each.readers), each.is_needed_later) for each in self.buffers
        ]
        steps = [self.steps[each].mapped(placed, int) for each in order]
        return Stretch(steps, buffers, self.start)


def stretch_of(graph: Graph, nodes: Sequence[Node], planner: Planner) -> Stretch:
    """Return a graph as a stretch: all of its nodes but Constants, in a topological order.

    Random nodes and unknown operators keep their order.
    """
    return _Reading(planner).read(graph, nodes)


class _Reading:
    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.buffers: list[Buffer] = []
        # The buffer of each value but of inputs and constants; their views are not in it either.
        self.of: dict[Value, int] = {}
        self.fed: set[Value] = set()

    def read(self, graph: Graph, nodes: Sequence[Node]) -> Stretch:
        self.fed = {value for value in graph.inputs if not value.is_constant}
        start = sum(map(self.planner.nbytes, self.fed))
        place = {node: at for at, node in enumerate(nodes)}
        steps = [self._step(node, at, place) for at, node in enumerate(nodes)]
        for value in graph.outputs:
            if value in self.of:
                self.buffers[self.of[value]].is_needed_later = True
        fixed = [at for at, node in enumerate(nodes) if not is_deterministic(node)]
        for one, other in pairwise(fixed):
            steps[other].before.append(one)
        for at, step in enumerate(steps):
            step.before = sorted(set(step.before))
            for each in step.before:
                steps[each].after.append(at)
        return Stretch(steps, self.buffers, start)

    def _step(self, node: Node, at: int, place: dict[Node, int]) -> OrderStep:
        step = OrderStep()
        read = node.reads
        step.before = [place[each.producer] for each in read if each.producer in place]
        step.reads = sorted({self.of[value] for value in read if value in self.of})
        for buffer in step.reads:
            self.buffers[buffer].readers.append(at)
        step.allocated = self.planner.inside(node)
        for index, value in enumerate(node.outputs):
            source = view_source(node) if index == 0 else None
            if value is None:
                continue
            if source in self.fed:
                self.fed.add(value)
            elif source in self.of:
                self.of[value] = self.of[source]
            else:
                nbytes = self.planner.nbytes(value)
                self.of[value] = len(self.buffers)
                step.makes.append(len(self.buffers))
                step.allocated += nbytes
                self.buffers.append(Buffer(nbytes))
                if index == 0 and source is None and may_write_over(node):
                    self._find_targets(node, step, nbytes)
        return step

    def _find_targets(self, node: Node, step: OrderStep, nbytes: int) -> None:
        """Note the buffers of operands that the first output of a node may be in."""
        step.written_over = nbytes
        found = {self.of[value] for value in node.inputs if value in self.of}
        step.targets = sorted(each for each in found if self.buffers[each].nbytes == nbytes)
