"""Writing a placement: operators in their new orders, and Transposes only where they are needed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tiered.graph import Graph, Model, Node, TensorType, Value
from tiered.layout.equivalence import Operator, Port, Wire, is_live
from tiered.layout.permutation import (
    Permutation,
    between,
    is_identity,
    keeps_the_data,
    permuted,
)
from tiered.layout.propagation import Permuted
from tiered.layout.region import Region, State


def positions(model: Model) -> dict[Node, int]:
    """Return the place of each node in an order in which producers come first, bodies included."""
    places: dict[Node, int] = {}
    for root in (model.main, *model.functions):
        _number(root, places)
    return places


def _number(graph: Graph, places: dict[Node, int]) -> None:
    for node in graph.topological_order():
        for body in node.bodies:
            _number(body, places)
        places[node] = len(places)


class Writer:
    """Writes the operators of a region in the states of a placement."""

    def __init__(self, region: Region, state: State, places: Mapping[Node, int]) -> None:
        self.region = region
        self.state = state
        changing = [operator for operator in region.operators if state[operator]]
        self.changing = sorted(changing, key=lambda operator: places[operator.node])
        self._rebuilt = [
            port.wire for operator in self.changing for port in operator.ports if port.is_output
        ]
        self._gone = {operator.node for operator in self.changing}
        # What there is of each wire, by order; the order in which it is made comes first.
        self._made: dict[Wire, dict[Permutation, Value]] = {}
        # What takes the place of sizes and the like that others have wires of.
        self._renamed: dict[Wire, Value] = {}
        self._constants: dict[tuple[Value, Permutation], Value] = {}

    def write(self) -> None:
        """Write the operators, and let everybody else read what they read before."""
        named = [(operator.node, self._write(operator)) for operator in self.changing]
        for wire in self._wires():
            self._serve(wire)
        nodes = [operator.node for operator in reversed(self.changing)]
        views = [view.producer for wire in self._wires() for view in list(wire.views)[1:]]
        names = {node: node.name for node, _ in named}
        for node in (*nodes, *filter(None, views)):
            if node.is_live:
                node.owner.prune([node])
        self._note_views()
        for old, new in named:
            if old.graph is None and names[old] and new is not None and new.op_type == old.op_type:
                new.owner.rename_node(new, names[old])

    def _note_views(self) -> None:
        """Tell other regions what there is now of the wires that were written anew."""
        for wire in self._rebuilt:
            wire.views = {value: order for order, value in self._made[wire].items()}
            wire.root = next(iter(wire.views))
        for wire, root in self._renamed.items():
            orders = list(wire.views.items())[1:]
            wire.views = {root: wire.identity, **dict(orders)}
            wire.root = root

    def _wires(self) -> list[Wire]:
        return list(dict.fromkeys(port.wire for each in self.changing for port in each.ports))

    def _write(self, operator: Operator) -> Node | None:
        labels, orders = operator.choices[self.state[operator]]
        ported = list(zip(operator.ports, orders, strict=True))
        inputs = {port.slot: (port.wire, order) for port, order in ported if not port.is_output}

        def fetch(op: Permuted, slot: int) -> Value:
            if slot in inputs:
                return self.fetch(*inputs[slot])
            value = operator.node.inputs[slot]
            assert value is not None
            return self._moved(operator.node.owner, value, op.perm(operator.passage.own(slot)))

        passage = operator.passage
        op = Permuted(operator.node, passage, labels, fetch)
        made = passage.write(op)
        for port, order in ported:
            if port.is_output:
                self._made[port.wire] = {order: made[port.slot]}
                _state_type(port, made[port.slot], order)
        for value, own, new in zip(operator.node.outputs, passage.outputs, made, strict=True):
            if value is not None and own is None:
                # Sizes and the like are the same in every order.
                value.owner.replace_uses(value, new)
                self._rename(value, new)
        return made[0].producer

    def _rename(self, old: Value, new: Value) -> None:
        """Note that the wire of a value has another value in its place, in the same order."""
        wire = self.region.wiring.wires.get(old)
        if wire is not None and wire.root is old:
            self._renamed[wire] = new
            self._made[wire] = {wire.identity: new}
            for view, order in wire.views.items():
                if view.graph is new.graph:
                    self._made[wire].setdefault(order, view)

    def _moved(self, graph: Graph, value: Value, perm: Permutation) -> Value:
        """Return a value of no wire in another order: constants are moved here and now."""
        if is_identity(perm):
            return value
        array = value.const
        if array is None:
            return graph.op.Transpose(value, perm=perm)
        key = value, perm
        known = self._constants.get(key)
        if known is None or known.graph is None or not graph.sees(known):
            moved = np.ascontiguousarray(array.transpose(perm))
            known = self._constants[key] = graph.constant(moved, value.name)
        return known

    # --- orders of wires --------------------------------------------------------------------------

    def fetch(self, wire: Wire, order: Permutation) -> Value:
        """Return a wire in an order, with a Transpose if nobody makes it like that."""
        made = self._made.get(wire)
        if made is None:
            made = self._made[wire] = {}
            for view, perm in wire.views.items():
                # A view of a body is not for everybody.
                if view.graph is wire.root.graph:
                    made.setdefault(perm, view)
        if order not in made:
            have, source = next(iter(made.items()))
            made[order] = self._transposed(source, between(have, order))
        return made[order]

    def _transposed(self, value: Value, perm: Permutation) -> Value:
        graph, shape = value.owner, value.shape
        if shape is not None and keeps_the_data(perm, shape):
            target = [dim if isinstance(dim, int) else -1 for dim in permuted(shape, perm)]
            if target.count(-1) <= 1 and 0 not in target:
                return graph.op.Reshape(value, np.array(target, np.int64))
        return graph.op.Transpose(value, perm=perm)

    def _serve(self, wire: Wire) -> None:
        """Give those who read a wire and stay as they are what they read before."""
        gone = self._gone
        for view, perm in list(wire.views.items()):
            if not is_live(view):
                continue
            others = any(
                node not in gone and not (node.outputs and node.outputs[0] in wire.views)
                for node, _ in view.users
            )
            if others or view.output_of or view.pins:
                value = self.fetch(wire, perm)
                if value is not view:
                    view.owner.replace_uses(view, value)


def _state_type(port: Port, value: Value, order: Permutation) -> None:
    """State a type that no inference would find."""
    old = port.wire.root
    node = value.producer
    if node is not None and node.domain and old.shape is not None and old.dtype is not None:
        node.owner.set_type(value, TensorType(old.dtype, permuted(old.shape, order)))
