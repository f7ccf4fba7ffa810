"""The cost of layouts: bytes and Transposes of each tensor, for an assignment and for a model.

A tensor costs its bytes once for each order in which it is read and its producer does not make it,
however many consumers read it in that order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from tiered.analysis.layout.equivalence import LayoutOperator, TensorClass
from tiered.analysis.layout.kernel_times import TRANSPOSE_START
from tiered.analysis.layout.permutation import Permutation, between
from tiered.analysis.layout.reach import Reach, open_graphs, transposes
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.analysis.layout.work import transpose_time
from tiered.graph import Node

PortRef = tuple[LayoutOperator, int]
"""An operator, and the index of one of its ports."""


class Cost(NamedTuple):
    """Bytes that are moved, the Transposes that move them, and the time that depends on orders.

    The time is in nanoseconds: that of the Transposes, and that which operators take beyond their
    fastest order.
    """

    nbytes: int
    transposes: int
    time: int = 0


FREE: Final = Cost(0, 0)


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    nbytes, transposes, time = 0, 0, 0
    for cost in costs:
        nbytes += cost.nbytes
        transposes += cost.transposes
        time += cost.time
    return Cost(nbytes, transposes, time)


class TensorCost:
    """The cost term of one tensor.

    Attributes:
        tensor: the tensor.
        nbytes: the bytes that a Transpose of it moves.
        dims: the sizes of the axes of its root.
        producer: the free operator that makes it; None if its order cannot be chosen.
        consumers: the free operators that read it, with the indices of these ports.
        pinned: the orders in which all others read it.
        has_ones: whether some of its axes have size 1.
        start: what each Transpose of it costs beside the time that it takes for its elements.
    """

    def __init__(self, tensor: TensorClass, nbytes: int, dims: tuple[int, ...]) -> None:
        self.tensor = tensor
        self.nbytes = nbytes
        self.dims = dims
        self.producer: PortRef | None = None
        self.consumers: dict[LayoutOperator, list[int]] = {}
        self.pinned: set[Permutation] = set()
        self.has_ones = 1 in tensor.shape
        self.start = TRANSPOSE_START

    @property
    def free_ports(self) -> Iterator[PortRef]:
        """Yield the ports of free operators that read or make it."""
        if self.producer is not None:
            yield self.producer
        for operator, own in self.consumers.items():
            for at in own:
                yield operator, at

    @property
    def operators(self) -> list[LayoutOperator]:
        """The free operators that read or make it, each once."""
        made_by = () if self.producer is None else self.producer[:1]
        return list(dict.fromkeys((*made_by, *self.consumers)))

    def is_local_to(self, operator: LayoutOperator) -> bool:
        """Return whether no other free operator reads or makes it."""
        if self.producer is not None and self.producer[0] is not operator:
            return False
        return len(self.consumers) == (operator in self.consumers)

    def moving(self, order: Permutation) -> Permutation:
        """Return the axes of an order that are not of size 1: only these move data."""
        if not self.has_ones:
            return order
        shape = self.tensor.shape
        return tuple([axis for axis in order if shape[axis] != 1])

    def cost(self, made: Permutation, wanted: Iterable[Permutation]) -> Cost:
        """Return the cost of reading it in the wanted orders if it is made in another one."""
        others = {order for order in wanted if order != made}
        if not others:
            return FREE
        have = self.moving(made)
        moves = {self.moving(order) for order in others} - {have}
        time = sum([self.time(have, order) for order in moves])
        return Cost(self.nbytes * len(moves), len(others), time + len(others) * self.start)

    def time(self, made: Permutation, wanted: Permutation) -> int:
        """Return the time of a Transpose from one order of the moving axes to another."""
        return _time(self.dims, made, wanted)

    @cached_property
    def most_time(self) -> int:
        """The time of the slowest Transpose between orders that it may have."""
        return _most_time(self.dims, tuple(dict.fromkeys(map(self.moving, self.tensor.orders))))

    def pin(self, operator: LayoutOperator) -> None:
        """Treat an operator as not free: it keeps its present order."""
        if self.producer is not None and self.producer[0] is operator:
            self.producer = None
        self.pinned.update(operator.ports[at].view for at in self.consumers.pop(operator, ()))


@lru_cache(maxsize=1 << 14)
def _time(dims: tuple[int, ...], made: Permutation, wanted: Permutation) -> int:
    """Return the time of a Transpose; most tensors of a model have the same few shapes."""
    return transpose_time(tuple([dims[axis] for axis in made]), between(made, wanted))


@lru_cache(maxsize=1 << 12)
def _most_time(dims: tuple[int, ...], orders: tuple[Permutation, ...]) -> int:
    """Return the time of the slowest Transpose between two of some orders."""
    return max([_time(dims, one, other) for one in orders for other in orders], default=0)


def tensor_costs_of(
    operators: Sequence[LayoutOperator], sizes: LayoutSizes
) -> dict[TensorClass, TensorCost]:
    """Return the cost terms of all tensors that free operators may have in several orders."""
    terms: dict[TensorClass, TensorCost] = {}
    # Most tensors of a model are of few types.
    known: dict[Hashable, tuple[int, tuple[int, ...]]] = {}
    for operator in operators:
        for at in operator.moving_ports:
            port = operator.ports[at]
            tensor = port.tensor
            term = terms.get(tensor)
            if term is None:
                key = tensor.shape, tensor.root.dtype
                if key not in known:
                    root = tensor.root
                    known[key] = sizes.nbytes(root), sizes.dims(root)
                term = terms[tensor] = TensorCost(tensor, *known[key])
            if port.is_output:
                term.producer = operator, at
            else:
                term.consumers.setdefault(operator, []).append(at)
    for term in terms.values():
        term.pinned = _pinned(term)
    _set_starts(operators, terms)
    return terms


def _set_starts(
    operators: Sequence[LayoutOperator], terms: Mapping[TensorClass, TensorCost]
) -> None:
    """Set what a new Transpose costs above Slices and Splits: the start of one for each result.

    onnxruntime moves a Transpose down as far as operators allow it, and behind each Slice and each
    output of a Split. Those that the model has are not counted so: moving them is the aim.
    """
    parts: dict[TensorCost, int] = {}
    for operator in operators:
        kernel = operator.propagation.kernel
        if kernel is not None and kernel.family in ("slice", "split"):
            for term in _operands(operator, terms):
                parts[term] = parts.get(term, 0) + len(operator.node.outputs)
    reached: set[TensorCost] = set()
    for cut, count in sorted(parts.items(), key=lambda each: -each[1]):
        pending = [cut]
        while pending:
            term = pending.pop()
            if term in reached:
                continue
            reached.add(term)
            if len(term.tensor.views) == 1:
                term.start = count * TRANSPOSE_START
            if term.producer is not None:
                pending += _operands(term.producer[0], terms)


def _operands(
    operator: LayoutOperator, terms: Mapping[TensorClass, TensorCost]
) -> list[TensorCost]:
    """Return the cost terms of the tensors that an operator reads."""
    read = dict.fromkeys(port.tensor for port in operator.ports if not port.is_output)
    return [terms[tensor] for tensor in read if tensor in terms]


def _pinned(term: TensorCost) -> set[Permutation]:
    """Return the orders in which a tensor is read by others than free operators."""
    tensor = term.tensor
    others = dict.fromkeys(tensor.views.values(), 0)
    for value, view in tensor.views.items():
        others[view] += len(tensor.uses[value]) + len(value.output_of) + value.pins
    for operator, own in term.consumers.items():
        for at in own:
            others[operator.ports[at].view] -= 1
    return {view for view, number in others.items() if number}


# --- the Transposes that a model has --------------------------------------------------------------


def transpose_cost(reach: Reach, sizes: LayoutSizes) -> Cost:
    """Return the cost of the Transposes that a model has, without those of constants."""
    return total(Cost(moved_bytes(node, tensor, sizes), 1) for node, tensor in transposes_of(reach))


def transposes_of(reach: Reach) -> Iterator[tuple[Node, TensorClass]]:
    """Yield the Transposes of a model with their tensors, without those of constants."""
    for graph in open_graphs(reach.model):
        for node in transposes(graph):
            tensor = reach.tensor_of(node.output)
            if tensor is not None:
                yield node, tensor


def moved_bytes(node: Node, tensor: TensorClass, sizes: LayoutSizes) -> int:
    """Return the bytes that a Transpose moves: 0 if only dims of size 1 change places."""
    perm, view = node.perm, tensor.views[node.output]
    assert perm is not None
    moving = [axis for axis, own in zip(perm, view, strict=True) if tensor.shape[own] != 1]
    return 0 if moving == sorted(moving) else sizes.nbytes(tensor.root)
