"""Permutation of the tensors that If, Loop and Scan pass into and out of their bodies.

Such a tensor has several values: the operand of the node, the input and the output of the body, and
the output of the node. All of them are permuted together, with Transposes on either side; then the
model is solved again, which moves these Transposes. The change is undone if it saves no bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tiered.analysis.layout.cost import Cost
from tiered.analysis.layout.interface_layouts import permute_input, permute_output
from tiered.analysis.layout.permutation import Permutation, between, inverse, permuted
from tiered.analysis.layout.reach import Reach, open_graphs
from tiered.graph import Graph, Model, Node, TensorType, Value

MAX_TRIALS: Final = 64
"""Bound on the orders that are tried in one model: each is solved on its own."""

LAW = "an input or output of a body  =>  the same in another order of its axes"


class BodyOrder(NamedTuple):
    """An order of a tensor in the bodies, and the index of the iteration axis outside of them."""

    perm: Permutation
    axis: int | None


class BodyTensor(NamedTuple):
    """One tensor that is inside and outside the bodies of a node.

    Attributes:
        node: the If, Loop or Scan.
        slot: the operand; None if the tensor is made in a body.
        inside: the inputs and outputs of the bodies: body, whether it is an input, index.
        place: the output of the node; None if the tensor is only read.
        axis: the index of the iteration axis, which it has outside only; None if it has none.
        attribute: the attribute that lists this axis and the index there; None if it is fixed.
    """

    node: Node
    slot: int | None
    inside: tuple[tuple[Graph, bool, int], ...]
    place: int | None
    axis: int | None = None
    attribute: tuple[str, int] | None = None

    @property
    def ends(self) -> Iterator[tuple[Value | None, int | None]]:
        """Yield the values that the tensor is, with the iteration axis of each."""
        if self.slot is not None:
            yield self.node.inputs[self.slot], self.axis
        for body, is_input, at in self.inside:
            yield (body.inputs if is_input else body.outputs)[at], None
        if self.place is not None:
            yield self.node.outputs[self.place], self.axis

    @property
    def can_permute(self) -> bool:
        """Return whether the types of all ends are known and no end is shared."""
        ranks = set()
        for value, axis in self.ends:
            if value is None or value.shape is None or value.dtype is None or value.pins:
                return False
            ranks.add(len(value.shape) - (axis is not None))
        outputs = [(body, at) for body, is_input, at in self.inside if not is_input]
        return len(ranks) == 1 and all(_is_one_output(body, at) for body, at in outputs)

    def orders(self, reach: Reach) -> list[BodyOrder]:
        """Return the orders that operators on either side may have it in."""
        found: dict[BodyOrder, None] = {}
        for value, axis in self.ends:
            assert value is not None
            tensor = reach.tensors.get(value)
            if tensor is None:
                continue
            for order in tensor.orders:
                found[self._order(between(tensor.views[value], order), axis)] = None
        return [order for order in found if order != self._as_it_is(order)]

    def _order(self, perm: Permutation, axis: int | None) -> BodyOrder:
        """Return the order that permutes one end so, as far as possible."""
        if axis is None:
            return BodyOrder(perm, self.axis)
        rest = tuple(at - (at > axis) for at in perm if at != axis)
        return BodyOrder(rest, axis if self.attribute is None else perm.index(axis))

    def _as_it_is(self, order: BodyOrder) -> BodyOrder:
        return BodyOrder(tuple(sorted(order.perm)), self.axis)

    def _outside(self, order: BodyOrder) -> Permutation:
        """Return the permutation of the tensor outside of the bodies."""
        if self.axis is None:
            return order.perm
        wide = [at + (at >= self.axis) for at in order.perm]
        return (*wide[: order.axis], self.axis, *wide[order.axis :])

    def apply(self, order: BodyOrder) -> None:
        """Permute all ends; insert Transposes for their producers and consumers."""
        node, outside = self.node, self._outside(order)
        graph = node.owner
        if self.slot is not None:
            permuted_value = graph.op.Transpose(node.inputs[self.slot], perm=outside)
            graph.set_input(node, self.slot, permuted_value)
        for body, is_input, at in self.inside:
            if is_input:
                permute_input(body, body.inputs[at], order.perm)
            else:
                permute_output(body, body.outputs[at], order.perm)
        if self.attribute is not None and order.axis != self.axis:
            name, at = self.attribute
            axes = list(node.attr(name, None) or [0] * _scanned(node, name))
            axes[at] = order.axis
            graph.set_attribute(node, name, axes)
        if self.place is not None:
            _permute_result(node.outputs[self.place], outside)


def _is_one_output(body: Graph, at: int) -> bool:
    """Return whether an output of a body is made there, and is no other output too."""
    value = body.outputs[at]
    return value.graph is body and not value.is_graph_input and body.outputs.count(value) == 1


def _permute_result(value: Value | None, perm: Permutation) -> None:
    """Permute an output of a node; its consumers read a Transpose of it."""
    assert value is not None
    assert value.shape is not None
    assert value.dtype is not None
    graph = value.owner
    graph.set_type(value, TensorType(value.dtype, permuted(value.shape, perm)))
    since = graph.model.peek_serial()
    graph.replace_uses(value, graph.op.Transpose(value, perm=inverse(perm)), since=since)


# --- the tensors of bodies ------------------------------------------------------------------------


class BodyConversion:
    """Permutes tensors of bodies as long as that lowers the cost.

    Args:
        model: edited in place; it is solved already.
        find_reach: returns the operators around its Transposes.
        optimize: solves the model and writes the solution.
        cost_of: returns the cost of the Transposes of the model.
    """

    def __init__(
        self,
        model: Model,
        find_reach: Callable[[], Reach],
        optimize: Callable[[Reach], None],
        cost_of: Callable[[Reach], Cost],
    ) -> None:
        self.model = model
        self._find_reach = find_reach
        self._optimize = optimize
        self._cost_of = cost_of
        self._tried: set[tuple[int, int | None, int | None, BodyOrder]] = set()

    def run(self) -> None:
        """Permute one tensor after the other, until none lowers the cost."""
        reach: Reach | None = self._find_reach()
        while reach is not None and reach.tensors:
            reach = self._convert_one(reach)

    def _convert_one(self, reach: Reach) -> Reach | None:
        """Permute the first tensor that lowers the cost; return the new reach, or None."""
        now = self._cost_of(reach)
        for tensor in _body_tensors(self.model):
            for order in tensor.orders(reach) if tensor.can_permute else ():
                key = tensor.node.id, tensor.slot, tensor.place, order
                if key in self._tried or len(self._tried) == MAX_TRIALS:
                    continue
                self._tried.add(key)
                mark = self.model.mark()
                with tensor.node.owner.rewrite(LAW, tensor.node):
                    tensor.apply(order)
                self._optimize(self._find_reach())
                after = self._find_reach()
                cost = self._cost_of(after)
                fewer = cost.nbytes <= now.nbytes and cost.transposes <= now.transposes
                if fewer and cost != now:
                    return after
                self.model.undo_to(mark)
        return None


def _body_tensors(model: Model) -> list[BodyTensor]:
    """Return the tensors of all nodes with bodies."""
    found: list[BodyTensor] = []
    for graph in open_graphs(model):
        for op_type, rule in (("If", _of_if), ("Loop", _of_loop), ("Scan", _of_scan)):
            for node in graph.nodes_of(op_type):
                if not node.has_references:
                    found += rule(node)
    return found


def _output_index(node: Node, at: int) -> int | None:
    """Return the index of an output of a node; None if it is absent."""
    return at if at < len(node.outputs) and node.outputs[at] is not None else None


def _of_if(node: Node) -> Iterator[BodyTensor]:
    for place in range(len(node.outputs)):
        yield BodyTensor(node, None, tuple((body, False, place) for body in node.bodies), place)


def _of_loop(node: Node) -> Iterator[BodyTensor]:
    (body,) = node.bodies
    carried = len(node.inputs) - 2
    for at in range(carried):
        inside = ((body, True, 2 + at), (body, False, 1 + at))
        yield BodyTensor(node, 2 + at, inside, _output_index(node, at))
    for at in range(carried, len(node.outputs)):
        yield BodyTensor(node, None, ((body, False, 1 + at),), at, axis=0)


def _of_scan(node: Node) -> Iterator[BodyTensor]:
    # Before opset 9 the operands have a batch axis.
    if node.owner.opset() < 9:
        return
    (body,) = node.bodies
    carried = len(node.inputs) - node.attr("num_scan_inputs")
    for at in range(carried):
        yield BodyTensor(node, at, ((body, True, at), (body, False, at)), _output_index(node, at))
    for name, values in ((_INPUT_AXES, node.inputs), (_OUTPUT_AXES, node.outputs)):
        is_input = name == _INPUT_AXES
        axes = node.attr(name, None) or [0] * _scanned(node, name)
        for entry, axis in enumerate(axes):
            at = carried + entry
            value = values[at]
            if value is not None and value.rank:
                inside, own = ((body, is_input, at),), axis % value.rank
                ends = (at, None) if is_input else (None, at)
                yield BodyTensor(node, ends[0], inside, ends[1], own, (name, entry))


_INPUT_AXES, _OUTPUT_AXES = "scan_input_axes", "scan_output_axes"


def _scanned(node: Node, name: str) -> int:
    """Return the length of a list of axes of a Scan."""
    scanned: int = node.attr("num_scan_inputs")
    return scanned if name == _INPUT_AXES else len(node.outputs) - len(node.inputs) + scanned
