"""Apply an assignment: write operators in their new orders, and Transposes where orders differ."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tiered.analysis.layout.axis_propagation import Permuted
from tiered.analysis.layout.equivalence import LayoutOperator, OperatorPort, TensorClass, is_live
from tiered.analysis.layout.layout_region import Assignment, LayoutRegion
from tiered.analysis.layout.permutation import (
    Permutation,
    between,
    is_identity,
    keeps_the_data,
    permuted,
)
from tiered.graph import Graph, Model, Node, TensorType, Value
from tiered.graph.edits.operand_edits import has_node_named


def positions(model: Model) -> dict[Node, int]:
    """Return the index of each node in topological order, bodies included."""
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
    """Writes the operators of a region in the orders of an assignment."""

    def __init__(
        self, region: LayoutRegion, assignment: Assignment, places: Mapping[Node, int]
    ) -> None:
        self.region = region
        self.assignment = assignment
        changing = [operator for operator in region.operators if assignment[operator]]
        self.changing = sorted(changing, key=lambda operator: places[operator.node])
        self._rebuilt = [
            port.tensor for operator in self.changing for port in operator.ports if port.is_output
        ]
        self._gone = {operator.node for operator in self.changing}
        # The values of each tensor by order; the order in which it is made comes first.
        self._made: dict[TensorClass, dict[Permutation, Value]] = {}
        # The new roots of tensors that are not permuted, such as sizes.
        self._renamed: dict[TensorClass, Value] = {}
        self._constants: dict[tuple[Value, Permutation], Value] = {}

    def write(self) -> None:
        """Write the operators; all other consumers read the same data as before."""
        named = [(operator.node, self._write(operator)) for operator in self.changing]
        for tensor in self._tensors():
            self._redirect_consumers(tensor)
        nodes = [operator.node for operator in reversed(self.changing)]
        views = [view.producer for tensor in self._tensors() for view in list(tensor.views)[1:]]
        names = {node: node.name for node, _ in named}
        for node in (*nodes, *filter(None, views)):
            if node.is_live:
                node.owner.prune([node])
        self._note_views()
        for old, new in named:
            if old.graph is not None or new is None or new.op_type != old.op_type:
                continue
            if names[old] and not has_node_named(new.owner, names[old]):
                new.owner.rename_node(new, names[old])

    def _note_views(self) -> None:
        """Update the views of the tensors that were written, for the regions that follow."""
        for tensor in self._rebuilt:
            tensor.views = {value: order for order, value in self._made[tensor].items()}
            tensor.root = next(iter(tensor.views))
        for tensor, root in self._renamed.items():
            orders = list(tensor.views.items())[1:]
            tensor.views = {root: tensor.identity, **dict(orders)}
            tensor.root = root

    def _tensors(self) -> list[TensorClass]:
        return list(dict.fromkeys(port.tensor for each in self.changing for port in each.ports))

    def _write(self, operator: LayoutOperator) -> Node | None:
        labels, orders = operator.choices[self.assignment[operator]]
        ported = list(zip(operator.ports, orders, strict=True))
        inputs = {port.slot: (port.tensor, order) for port, order in ported if not port.is_output}

        def fetch(op: Permuted, slot: int) -> Value:
            if slot in inputs:
                return self.fetch(*inputs[slot])
            value = operator.node.given(slot)
            return self._moved(operator.node.owner, value, op.perm(operator.propagation.own(slot)))

        propagation = operator.propagation
        op = Permuted(operator.node, propagation, labels, fetch)
        made = propagation.write(op)
        for port, order in ported:
            if port.is_output:
                self._made[port.tensor] = {order: made[port.slot]}
                _set_type(port, made[port.slot], order)
        for value, own, new in zip(operator.node.outputs, propagation.outputs, made, strict=True):
            if value is not None and own is None:
                # Sizes do not depend on the order.
                value.owner.replace_uses(value, new)
                self._rename(value, new)
        return made[0].producer

    def _rename(self, old: Value, new: Value) -> None:
        """Replace the root of a tensor by another value in the same order."""
        tensor = self.region.reach.tensors.get(old)
        if tensor is not None:
            self._renamed[tensor] = new
            self._made[tensor] = {tensor.identity: new}
            for view, order in tensor.views.items():
                if view.graph is new.graph:
                    self._made[tensor].setdefault(order, view)

    def _moved(self, graph: Graph, value: Value, perm: Permutation) -> Value:
        """Return a value of no tensor class in another order; permute constants now."""
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

    # --- orders of tensors ------------------------------------------------------------------------

    def fetch(self, tensor: TensorClass, order: Permutation) -> Value:
        """Return a tensor in an order; add a Transpose if no value has it."""
        made = self._made.get(tensor)
        if made is None:
            made = self._made[tensor] = {}
            for view, perm in tensor.views.items():
                # A view in a body is not visible outside of it.
                if view.graph is tensor.root.graph:
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

    def _redirect_consumers(self, tensor: TensorClass) -> None:
        """Let the unchanged consumers of a tensor read it in the same order as before."""
        gone = self._gone
        for view, perm in list(tensor.views.items()):
            if not is_live(view):
                continue
            others = any(
                node not in gone and tensor.views.keys().isdisjoint(node.outputs)
                for node, _ in view.users
            )
            if others or view.output_of or view.pins:
                value = self.fetch(tensor, perm)
                if value is not view:
                    view.owner.replace_uses(view, value)


def _set_type(port: OperatorPort, value: Value, order: Permutation) -> None:
    """Set the type of an output that shape inference does not know."""
    node, dtype = value.producer, port.tensor.root.dtype
    if node is not None and node.domain and dtype is not None:
        node.owner.set_type(value, TensorType(dtype, permuted(port.tensor.shape, order)))
