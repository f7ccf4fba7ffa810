"""Liveness: from which node to which each tensor is alive, and the bytes alive at each node.

Sources: TensorFlow Lite's greedy memory planner, and Pisarchyk and Lee 2020, "Efficient memory
management for deep neural net inference", for the terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from tiered.analysis.layout.sizes import LayoutSizes
from tiered.graph import ELEMENTWISE, Graph, Model, Node, Tensor, Value
from tiered.graph.core.dim_names import check_named, check_sizes
from tiered.graph.queries.op_traits import VIEWS
from tiered.graph.shape_inference.symbolic_dims import is_invented


class Lifetime(NamedTuple):
    """A tensor that takes memory of its own.

    Attributes:
        name: of its first value; views of it have other names.
        nbytes: its bytes, with the sizes that dynamic dims were given.
        first: the index of the node that computes it; -1 for an input of the model.
        last: the index of the last node that reads it; the number of nodes for an output.
    """

    name: str
    nbytes: int
    first: int
    last: int


class LivenessStep(NamedTuple):
    """One node in the order of the run.

    Attributes:
        node: its label.
        op_type: its operator.
        nbytes: the bytes that are alive while it runs, those inside of its bodies included.
    """

    node: str
    op_type: str
    nbytes: int


class MemoryPlan(NamedTuple):
    """The memory of the tensors of a model while it runs, node by node.

    Attributes:
        steps: the nodes of the main graph, in the order of the run.
        lifetimes: the tensors that take memory, in the order in which they are computed.
        weights: the bytes of all constants, which are not in the steps.
        assumed: the names of dynamic dims that have no given size, "" for those without a name.
        unknown: the names of values without a known rank, which count as nothing.
        guessed: the names of values with a dim that no dim of an input determines; it has the size
            of one without a given size.
    """

    steps: tuple[LivenessStep, ...]
    lifetimes: tuple[Lifetime, ...]
    weights: int
    assumed: tuple[str, ...]
    unknown: tuple[str, ...]
    guessed: tuple[str, ...]

    @property
    def peak(self) -> int:
        """The largest number of bytes that are alive at one node."""
        return max((step.nbytes for step in self.steps), default=0)

    @property
    def peak_at(self) -> int:
        """The index of the first node at the peak; -1 for a model without nodes."""
        peak = self.peak
        return next((at for at, step in enumerate(self.steps) if step.nbytes == peak), -1)

    def alive_at(self, at: int) -> tuple[Lifetime, ...]:
        """Return the tensors that are alive at a node, largest first."""
        alive = (each for each in self.lifetimes if each.first <= at <= each.last)
        return tuple(sorted(alive, key=lambda each: (-each.nbytes, each.first, each.name)))


def memory_plan(
    model: Model,
    *,
    dims: Mapping[str, int] | None = None,
    default_dim: int = 16,
    views: bool = True,
    in_place: bool = True,
) -> MemoryPlan:
    """Return which tensors are alive when, in the order in which the model is saved.

    The inputs of the model are alive all the time, as the caller holds them; its outputs from
    where they are computed. Constants are counted apart. The peak inside of a body counts at its
    node. The nodes of local functions do not count: inline them first.

    Args:
        model: the model.
        dims: the sizes of dynamic dims, by name.
        default_dim: the size of all others.
        views: a Reshape, Squeeze, Unsqueeze, Flatten or Identity takes no memory.
        in_place: an elementwise operator writes over an operand that nothing reads later.

    Raises:
        UsageError: no input has a dim of a name in `dims`, or a size is none.
    """
    check_sizes(dims or {})
    sizes = LayoutSizes(dict(dims or {}), default_dim)
    check_named(sizes.known, dict.fromkeys(filter(None, _dynamic_dims(model))))
    planner = Planner(sizes, views=views, in_place=in_place)
    steps, lifetimes = planner.plan(model.main)
    weights = sum(tensor.nbytes for tensor in _constants(model))
    assumed = {name for name in _dynamic_dims(model) if name not in sizes.known}
    named = (tuple(sorted(assumed)), tuple(planner.unknown), tuple(planner.guessed))
    return MemoryPlan(steps, lifetimes, weights, *named)


def peak_change(before: MemoryPlan, after: MemoryPlan) -> str:
    """Return a sentence on the peaks before and after a change."""
    return f"the peak was {before.peak} bytes and is {after.peak} now"


class _Storage:
    """Memory that one value or several in turn are in."""

    __slots__ = ("first", "is_input", "last", "name", "nbytes")

    def __init__(self, value: Value, nbytes: int, first: int, last: int, *, is_input: bool) -> None:
        self.name = value.name
        self.nbytes = nbytes
        self.first = first
        self.last = last
        self.is_input = is_input


def view_source(node: Node) -> Value | None:
    """Return the operand that has the memory of the first output; None if it has its own."""
    return node.input(0) if node.op_type in VIEWS and not node.domain else None


def may_write_over(node: Node) -> bool:
    """Return whether the first output of a node may take the memory of an operand of its size."""
    return not node.domain and node.op_type in ELEMENTWISE


class Planner:
    """Plans graphs, with one rule for the sizes of values and for what takes no memory."""

    def __init__(self, sizes: LayoutSizes, *, views: bool, in_place: bool) -> None:
        self.sizes = sizes
        self.views = views
        self.in_place = in_place
        self.unknown: dict[str, None] = {}
        self.guessed: dict[str, None] = {}

    def plan(self, graph: Graph) -> tuple[tuple[LivenessStep, ...], tuple[Lifetime, ...]]:
        """Return the steps and lifetimes of a graph, without what it captures from outside."""
        order = graph.topological_order()
        last = _last_uses(graph, order)
        stored = {
            value: _Storage(value, self.nbytes(value), -1, len(order), is_input=True)
            for value in graph.inputs
            if not value.is_constant
        }
        for at, node in enumerate(order):
            if not node.is_op("Constant"):
                self._store(node, at, last, stored)
        storages = dict.fromkeys(stored.values())
        alive = _alive(storages, len(order))
        steps = tuple(
            LivenessStep(node.label, node.op_type, alive[at] + self.inside(node))
            for at, node in enumerate(order)
        )
        lifetimes = (Lifetime(each.name, each.nbytes, each.first, each.last) for each in storages)
        return steps, tuple(each for each in lifetimes if each.nbytes)

    def _store(
        self, node: Node, at: int, last: Mapping[Value, int], stored: dict[Value, _Storage]
    ) -> None:
        """Give memory to the outputs of a node: that of an operand to the first, if it can."""
        for place, value in enumerate(node.outputs):
            if value is None:
                continue
            end = last.get(value, at)
            found = self._reused(node, at, stored) if place == 0 else None
            if found is None:
                found = _Storage(value, self.nbytes(value), at, end, is_input=False)
            found.last = max(found.last, end)
            stored[value] = found

    def _reused(self, node: Node, at: int, stored: Mapping[Value, _Storage]) -> _Storage | None:
        """Return the memory of an operand that the first output of a node is in."""
        source = view_source(node)
        if source is not None:
            return stored.get(source) if self.views else None
        if not self.in_place or not may_write_over(node):
            return None
        needed = self.nbytes(node.output)
        operands = (stored.get(value) for value in node.inputs if value is not None)
        for storage in operands:
            if storage is None or storage.is_input or storage.nbytes != needed:
                continue
            if storage.last <= at:
                return storage
        return None

    def inside(self, node: Node) -> int:
        """Return the peak inside of the bodies of a node; one body runs at a time."""
        plans = (self.plan(body)[0] for body in node.bodies)
        return max((step.nbytes for steps in plans for step in steps), default=0)

    def nbytes(self, value: Value) -> int:
        """Return the bytes of a value; one of unknown rank is noted, and has none."""
        if value.shape is None:
            self.unknown[value.name] = None
            return 0
        if any(map(value.owner.model.dims.is_unknown, value.shape)):
            self.guessed[value.name] = None
        return self.sizes.nbytes(value)


def _constants(model: Model) -> Iterator[Tensor]:
    """Yield the initializers and the tensors of Constant nodes."""
    for graph in model.graphs():
        yield from (value.default for value in graph.initializers if value.default is not None)
        for node in graph.nodes_of("Constant"):
            if (tensor := node.constant_tensor()) is not None:
                yield tensor


def _last_uses(graph: Graph, order: Sequence[Node]) -> dict[Value, int]:
    """Return the index of the last node that reads each value, in its bodies too."""
    last: dict[Value, int] = {}
    for at, node in enumerate(order):
        last.update(dict.fromkeys(node.reads, at))
    for value in graph.outputs:
        last[value] = len(order)
    return last


def _alive(storages: Iterable[_Storage], count: int) -> list[int]:
    """Return the bytes that are alive at each of `count` nodes."""
    change = [0] * (count + 1)
    for each in storages:
        change[max(each.first, 0)] += each.nbytes
        change[min(each.last + 1, count)] -= each.nbytes
    return list(accumulate(change[:count]))


def _dynamic_dims(model: Model) -> Iterator[str]:
    """Yield the dynamic dims of the inputs: the name, or "" for one without a name."""
    for value in model.main.inputs:
        for dim in value.shape or (None,):
            if not isinstance(dim, int):
                yield "" if dim is None or is_invented(dim) else dim
