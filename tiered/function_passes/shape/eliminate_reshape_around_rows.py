"""Reshape to rows after f(Reshape(rows))  =>  f(rows), if f computes each row alone"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Value, function_pass
from tiered.graph.queries.op_traits import ELEMENTWISE

_NORMS: Final = frozenset({"LayerNormalization", "RMSNormalization"})

_OLDEST: Final = 7
"""Before this opset, operands broadcast only if an attribute is set."""


@function_pass(opt_level=2, required=("infer_shapes",), matches=("Reshape",))
def eliminate_reshape_around_rows(graph: Graph, ctx: PassContext) -> None:
    """Compute rows [n, size] instead of [..., size], where that needs fewer Reshapes.

    f is all connected nodes that are elementwise or normalise rows, as the residual stream of a
    transformer between products of two dims. What enters and leaves it in another way is reshaped.
    """
    if graph.opset() < _OLDEST:
        return
    places = {node: at for at, node in enumerate(graph.topological_order())}
    seen = set[Value]()
    for lead in graph.nodes_of("Reshape"):
        if lead.graph is not graph or not _enters(lead) or lead.output in seen:
            continue
        region = _RowRegion(lead.output, places)
        seen |= region.values
        reason = region.why_not()
        if reason is not None:
            ctx.skip(lead, reason)
            continue
        with graph.rewrite("f(Reshape(rows)) => f(rows)", lead):
            region.rewrite(graph)


class _RowRegion:
    """Nodes that compute rows, connected by values of one shape [..., size].

    Attributes:
        values: all values of this shape that a node of the region reads or writes.
        nodes: the nodes.
    """

    def __init__(self, start: Value, places: dict[Node, int]) -> None:
        self._places, self._shape = places, start.shape or ()
        self.values: set[Value] = set()
        self.nodes: set[Node] = set()
        pending = [start]
        while pending:
            value = pending.pop()
            if value in self.values:
                continue
            self.values.add(value)
            around = [value.producer, *(use.node for use in value.users)]
            found = [node for node in around if node is not None and self._computes_rows(node)]
            self.nodes.update(found)
            for node in found:
                pending += [node.output, *(x for x in node.reads if self._has_rows(x))]
        self._order = sorted(self.nodes, key=places.__getitem__)
        made = {node.outputs[0] for node in self.nodes}
        entries = [value for value in self.values if value not in made]
        self._leads = {value for value in entries if value.producer and _enters(value.producer)}
        self._others = [value for value in entries if value not in self._leads]
        self._leaving = [
            node.output for node in self._order if self._is_read_elsewhere(node.output)
        ]

    @property
    def _size(self) -> int:
        size = self._shape[-1]
        assert isinstance(size, int)
        return size

    def _has_rows(self, value: Value) -> bool:
        return value.shape == self._shape and not value.is_constant

    def _computes_rows(self, node: Node) -> bool:
        """Return whether a node computes rows of the shape, each alone, in the graph."""
        is_norm = node.op_type in _NORMS
        if node.domain or node not in self._places or node.has_references:
            return False
        if not is_norm and node.op_type not in ELEMENTWISE:
            return False
        result, *others = node.outputs
        if result is None or result.shape != self._shape or any(others):
            return False
        if is_norm and node.attr("axis") not in (-1, len(self._shape) - 1):
            return False
        return all(self._has_rows(x) or self._is_one_row(x) for x in node.reads)

    def _is_one_row(self, value: Value) -> bool:
        """Return whether a value broadcasts to rows of two dims alike."""
        shape = value.static_shape
        return shape is not None and len(shape) <= 2 and all(size == 1 for size in shape[:-1])

    def _leaves(self, node: Node) -> bool:
        """Return whether a node of the graph reshapes its first operand to rows."""
        to = node.output.shape if node.is_op("Reshape") and node in self._places else None
        return to is not None and len(to) == 2 and to[1] == self._size

    def _is_read_elsewhere(self, value: Value) -> bool:
        inside = all(use.node in self.nodes or self._leaves(use.node) for use in value.users)
        return not inside or value.is_graph_output or bool(value.pins)

    def why_not(self) -> Skip | None:
        """Return why the region stays as it is; None if there will be fewer Reshapes."""
        if not self.nodes:
            return Skip("no operator that computes rows follows")
        fewer = sum(
            self.nodes.issuperset(value.user_nodes) and value.can_be_renamed
            for value in self._leads
        )
        ends = [use.node for node in self._order for use in node.output.users]
        fewer += sum(self._leaves(node) for node in ends)
        if fewer <= len(self._others) + len(self._leaving):
            return Skip("there would be as many Reshapes")
        if self._leaving and self._lead_before(self._leaving[0]) is None:
            return Skip("the shape to return to is known too late")
        return None

    def _lead_before(self, value: Value) -> Node | None:
        """Return the first Reshape to the shape, if it is computed before a value."""
        first = min(self._leads, key=self._place)
        return first.producer if self._place(first) < self._place(value) else None

    def _place(self, value: Value) -> tuple[int, int]:
        # What a body reads of the graphs around it is there before its own nodes.
        place = self._places.get(value.producer, -1) if value.producer is not None else -1
        return place, value.id

    def rewrite(self, graph: Graph) -> None:
        """Replace the nodes by nodes that read and write rows."""
        rows: dict[Value, Value] = {}
        for lead in self._leads:
            assert lead.producer is not None
            rows[lead] = lead.producer.given(0)
        for value in sorted(self._others, key=lambda other: other.id):
            rows[value] = graph.op.Reshape(value, np.array([-1, self._size], np.int64))
        first = self._lead_before(self._leaving[0]) if self._leaving else None
        back: dict[Value, Value] = {}
        for node in self._order:
            attributes = dict(node.attributes)
            if node.op_type in _NORMS and attributes.get("axis", -1) != -1:
                attributes["axis"] = 1
            inputs = [x and rows.get(x, x) for x in node.inputs]
            rows[node.output] = graph.add_node(node.op_type, inputs, attributes=attributes).output
        # Before the Reshapes go that keep the target in the graph.
        for value in self._leaving:
            assert first is not None
            back[value] = graph.op.like(first, rows[value], first.input(1))
        # The nodes keep the types of their operands until they go, all at once.
        names = [(node, node.output, node.output.name) for node in self._order]
        ends = [(end, rows[node.output]) for node in self._order for end in _ends(node, self)]
        for end, made in ends:
            graph.replace(end, [made])
        for value, shaped in back.items():
            graph.replace_uses(value, shaped)
        graph.prune([node for node in self._order if node.graph is not None])
        for node, value, name in names:
            heir = back.get(value, rows[value])
            if node.graph is None and heir.graph is not None and heir.can_be_renamed:
                graph.rename_value(heir, name)


def _ends(node: Node, region: _RowRegion) -> Iterator[Node]:
    for use in node.output.users:
        if use.node not in region.nodes and region._leaves(use.node):
            yield use.node


def _enters(node: Node) -> bool:
    """Return whether a Reshape makes [..., size] of rows [n, size]."""
    if not node.is_op("Reshape") or not node.output.shape:
        return False
    source = node.given(0)
    if source.is_constant or source.rank != 2:
        return False
    shape, size = node.output.shape, source.dim(1)
    return len(shape) > 2 and None not in shape and isinstance(size, int) and shape[-1] == size > 0
