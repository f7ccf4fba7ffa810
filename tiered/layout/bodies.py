"""Borders of bodies: what If, Loop and Scan hand in and out, in another order of its axes.

One tensor has several names where it crosses a border: the operand, the input of the body, its
output, the result. All of them turn together, with Transposes on either side, which the placement
moves on. A turn that does not save bytes by that is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tiered.graph import Graph, Model, Node, TensorType, Value
from tiered.layout.cost import Cost
from tiered.layout.interface import turn_input, turn_output
from tiered.layout.permutation import Permutation, between, inverse, permuted
from tiered.layout.reach import Wiring, open_graphs

MOST_TURNS: Final = 64
"""Turns that are tried in one model: each is a placement of its own."""

LAW = "what a body is given and gives  =>  the same in another order of its axes"


class Turn(NamedTuple):
    """An order of a tensor as the bodies see it, and where outside the axis of iterations is."""

    perm: Permutation
    axis: int | None


class Border(NamedTuple):
    """One tensor on both sides of the bodies of a node.

    Attributes:
        node: the If, Loop or Scan.
        slot: the operand that it is before; None if a body makes it first.
        inside: what it is in the bodies: their inputs and outputs, by body and place.
        place: the output that it is after; None if it only goes in.
        axis: where it has one more axis outside, that of the iterations.
        attribute: the list of the node that says so, and the place there; None where it is fixed.
    """

    node: Node
    slot: int | None
    inside: tuple[tuple[Graph, bool, int], ...]
    place: int | None
    axis: int | None = None
    attribute: tuple[str, int] | None = None

    @property
    def ends(self) -> Iterator[tuple[Value | None, int | None]]:
        """Yield all that it is, and which axis of it the bodies do not see."""
        if self.slot is not None:
            yield self.node.inputs[self.slot], self.axis
        for body, is_input, at in self.inside:
            yield (body.inputs if is_input else body.outputs)[at], None
        if self.place is not None:
            yield self.node.outputs[self.place], self.axis

    @property
    def can_turn(self) -> bool:
        """Tell whether all ends are known well enough, and stand for nothing else."""
        ranks = set()
        for value, axis in self.ends:
            if value is None or value.shape is None or value.dtype is None or value.pins:
                return False
            ranks.add(len(value.shape) - (axis is not None))
        outputs = [(body, at) for body, is_input, at in self.inside if not is_input]
        return len(ranks) == 1 and all(_is_one_output(body, at) for body, at in outputs)

    def turns(self, wiring: Wiring) -> list[Turn]:
        """Return the orders in which somebody would have it."""
        found: dict[Turn, None] = {}
        for value, axis in self.ends:
            wire = None if value is None else wiring.wires.get(value)
            if wire is None or value is None:
                continue
            for order in wire.orders:
                found[self._turn(between(wire.views[value], order), axis)] = None
        return [turn for turn in found if turn != self._as_it_is(turn)]

    def _turn(self, perm: Permutation, axis: int | None) -> Turn:
        """Return the turn that gives one end a permutation, as far as that can be."""
        if axis is None:
            return Turn(perm, self.axis)
        rest = tuple(at - (at > axis) for at in perm if at != axis)
        return Turn(rest, axis if self.attribute is None else perm.index(axis))

    def _as_it_is(self, turn: Turn) -> Turn:
        return Turn(tuple(sorted(turn.perm)), self.axis)

    def _outside(self, turn: Turn) -> Permutation:
        """Return what becomes of the tensor outside."""
        if self.axis is None or turn.axis is None:
            return turn.perm
        wide = [at + (at >= self.axis) for at in turn.perm]
        return (*wide[: turn.axis], self.axis, *wide[turn.axis :])

    def make(self, turn: Turn) -> None:
        """Give all ends another order, and let what reads them or makes them stay as it is."""
        node, outside = self.node, self._outside(turn)
        graph = node.owner
        if self.slot is not None:
            turned = graph.op.Transpose(node.inputs[self.slot], perm=outside)
            graph.set_input(node, self.slot, turned)
        for body, is_input, at in self.inside:
            if is_input:
                turn_input(body, body.inputs[at], turn.perm)
            else:
                turn_output(body, body.outputs[at], turn.perm)
        if self.attribute is not None and turn.axis != self.axis:
            name, at = self.attribute
            axes = list(node.attr(name, None) or [0] * _scanned(node, name))
            axes[at] = turn.axis
            graph.set_attribute(node, name, axes)
        if self.place is not None:
            _turn_result(node.outputs[self.place], outside)


def _is_one_output(body: Graph, at: int) -> bool:
    """Tell whether an output of a body is made there, and is no other output too."""
    value = body.outputs[at]
    return value.graph is body and not value.is_graph_input and body.outputs.count(value) == 1


def _turn_result(value: Value | None, perm: Permutation) -> None:
    """Give an output of a node another order; what reads it reads a Transpose of it."""
    assert value is not None
    assert value.shape is not None
    assert value.dtype is not None
    graph = value.owner
    graph.set_type(value, TensorType(value.dtype, permuted(value.shape, perm)))
    since = graph.model.peek_serial()
    graph.replace_uses(value, graph.op.Transpose(value, perm=inverse(perm)), since=since)


# --- which borders there are ----------------------------------------------------------------------


class Turning:
    """Turns what crosses borders of bodies, as long as that saves bytes.

    Args:
        model: edited in place; its Transposes are placed.
        wire: returns the wiring of it.
        place: places the Transposes of a wiring.
        weigh: returns what the Transposes of a wiring cost.
    """

    def __init__(
        self,
        model: Model,
        wire: Callable[[], Wiring],
        place: Callable[[Wiring], None],
        weigh: Callable[[Wiring], Cost],
    ) -> None:
        self.model = model
        self._wire = wire
        self._place = place
        self._weigh = weigh
        self._tried: set[tuple[int, int | None, int | None, Turn]] = set()

    def run(self) -> None:
        """Turn one border after the other, until no turn saves anything."""
        wiring: Wiring | None = self._wire()
        while wiring is not None and wiring.wires:
            wiring = self._turn_one(wiring)

    def _turn_one(self, wiring: Wiring) -> Wiring | None:
        """Turn the first border that saves something; return the wiring after it."""
        now = self._weigh(wiring)
        for border in _borders(self.model):
            for turn in border.turns(wiring) if border.can_turn else ():
                key = border.node.id, border.slot, border.place, turn
                if key in self._tried or len(self._tried) == MOST_TURNS:
                    continue
                self._tried.add(key)
                mark = self.model.mark()
                with border.node.owner.rewrite(LAW, border.node):
                    border.make(turn)
                self._place(self._wire())
                after = self._wire()
                cost = self._weigh(after)
                fewer = cost.nbytes <= now.nbytes and cost.transposes <= now.transposes
                if fewer and cost != now:
                    return after
                self.model.undo_to(mark)
        return None


def _borders(model: Model) -> list[Border]:
    """Return the borders of all nodes with bodies."""
    found: list[Border] = []
    for graph in open_graphs(model):
        for op_type, rule in (("If", _of_if), ("Loop", _of_loop), ("Scan", _of_scan)):
            for node in graph.nodes_of(op_type):
                if not node.domain and not node.has_references:
                    found += rule(node)
    return found


def _place(node: Node, at: int) -> int | None:
    """Return which output of a node that is; None where it is left out."""
    return at if at < len(node.outputs) and node.outputs[at] is not None else None


def _of_if(node: Node) -> Iterator[Border]:
    for place in range(len(node.outputs)):
        yield Border(node, None, tuple((body, False, place) for body in node.bodies), place)


def _of_loop(node: Node) -> Iterator[Border]:
    (body,) = node.bodies
    carried = len(node.inputs) - 2
    for at in range(carried):
        inside = ((body, True, 2 + at), (body, False, 1 + at))
        yield Border(node, 2 + at, inside, _place(node, at))
    for at in range(carried, len(node.outputs)):
        yield Border(node, None, ((body, False, 1 + at),), at, axis=0)


def _of_scan(node: Node) -> Iterator[Border]:
    # Before opset 9 there was a batch before all of it.
    if node.owner.opset() < 9:
        return
    (body,) = node.bodies
    carried = len(node.inputs) - node.attr("num_scan_inputs")
    for at in range(carried):
        yield Border(node, at, ((body, True, at), (body, False, at)), _place(node, at))
    for name, values in ((_INPUT_AXES, node.inputs), (_OUTPUT_AXES, node.outputs)):
        is_input = name == _INPUT_AXES
        axes = node.attr(name, None) or [0] * _scanned(node, name)
        for entry, axis in enumerate(axes):
            at = carried + entry
            value = values[at]
            if value is not None and value.rank:
                inside, own = ((body, is_input, at),), axis % value.rank
                ends = (at, None) if is_input else (None, at)
                yield Border(node, ends[0], inside, ends[1], own, (name, entry))


_INPUT_AXES, _OUTPUT_AXES = "scan_input_axes", "scan_output_axes"


def _scanned(node: Node, name: str) -> int:
    """Return of how many tensors a list of axes of a Scan speaks."""
    scanned: int = node.attr("num_scan_inputs")
    return scanned if name == _INPUT_AXES else len(node.outputs) - len(node.inputs) + scanned
