"""The view for users of networkx: plain copies, parts of it, and equality up to names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tiered.graph.core.schema import AttributeReference
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import TensorType

if TYPE_CHECKING:
    import networkx as nx

    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value


def to_networkx(graph: Graph) -> nx.DiGraph[str]:
    """Return a plain named copy, which networkx can write as GraphML, DOT and the like.

    Its nodes are the labels of the nodes, numbered where two have the same (`Relu#2`); attributes
    of nodes and edges are texts and numbers:

    - node: `op_type`, `domain`, `inputs`, `outputs` (names of values), `attributes`, `bodies`
    - edge: `slots` ("0:1" is output 0 read as input 1; "0:" is read by a body), `values` (their
      names), `types`
    """
    import networkx as nx

    plain: nx.DiGraph[str] = nx.DiGraph(name=graph.name)
    labels: dict[Node, str] = {}
    taken: dict[str, int] = {}
    for node in graph.topological_order():
        label = node.label or node.op_type
        taken[label] = taken.get(label, 0) + 1
        labels[node] = label if taken[label] == 1 else f"{label}#{taken[label]}"
        plain.add_node(
            labels[node],
            op_type=node.op_type,
            domain=node.domain,
            inputs=_joined(node.inputs),
            outputs=_joined(node.outputs),
            attributes=", ".join(f"{name}={_shown(raw)}" for name, raw in node.attributes.items()),
            bodies=len(node.bodies),
        )
    for tail, head, slots in graph.dag.edges(data="slots"):
        values = [tail._outputs[slot.output] for slot in slots]
        plain.add_edge(
            labels[tail],
            labels[head],
            slots=" ".join(
                f"{slot.output}:{'' if slot.input is None else slot.input}" for slot in slots
            ),
            values=_joined(values),
            types=" ".join(str(value.type or "?") for value in values if value is not None),
        )
    return plain


def subgraph(graph: Graph, nodes: Iterable[Node]) -> nx.DiGraph[Node]:
    """Return the live, read-only part of `graph.dag` between some of its nodes."""
    part: nx.DiGraph[Node] = graph.dag.subgraph(nodes)
    return part


def is_isomorphic(graph: Graph, other: Graph) -> bool:
    """Tell whether two graphs compute the same in the same way: they differ in names alone.

    Operators, attributes, contents of constants, bodies, and the order of operands, inputs and
    outputs count; names, the order of independent nodes, and nodes that reach no output do not.
    """
    return structural_hash(graph) == structural_hash(other)


def structural_hash(graph: Graph) -> str:
    """Return a text of 64 hex digits that is equal for graphs which differ in names alone.

    What counts is what the outputs are computed from: see `is_isomorphic`. Equal subexpressions
    count as one, computed once or twice. A captured value counts as what computes it, one from
    above the graph that is asked for by its name, a call of a local function as what that computes.
    """
    return _Digests(graph.model).graph(graph).hex()


class _Digests:
    """A digest for each value, from what computes it down to inputs and constants."""

    def __init__(self, model: ModelState) -> None:
        self.functions = {function.id: function for function in model.functions}
        self.callees: dict[tuple[str, str, str], bytes] = {}
        self.values: dict[Value, bytes] = {}
        # Dims by the order in which the inputs name them: their names do not count.
        self.dims: dict[str, str] = {}
        self.depth = 0

    def graph(self, graph: Graph) -> bytes:
        depth, self.depth = self.depth, self.depth + 1
        for index, value in enumerate(graph.inputs):
            default = value.default
            self.values[value] = _digest(
                "input", depth, index, self._type(value), None if default is None else default.key()
            )
        for node in graph.topological_order():
            self._node(node)
        self.depth = depth
        return _digest("graph", len(graph.inputs), [self._value(value) for value in graph.outputs])

    def _type(self, value: Value) -> str:
        kind = value.type
        if not isinstance(kind, TensorType) or kind.shape is None:
            return repr(kind)
        dims = [
            self.dims.setdefault(dim, f"dim {len(self.dims)}") if isinstance(dim, str) else dim
            for dim in kind.shape
        ]
        return repr((int(kind.dtype), dims))

    def _callee(self, node: Node) -> bytes:
        """Return the digest of an operator: its name, or for a local function what it computes."""
        function = self.functions.get(node.callee)
        if function is None:
            schema = node.schema
            return _digest(node.callee, 0 if schema is None else schema.since_version)
        if function.id not in self.callees:
            # Else a function that calls itself would have no end.
            self.callees[function.id] = _digest("call", function.id)
            self.callees[function.id] = self.graph(function)
        return self.callees[function.id]

    def _value(self, value: Value | None) -> bytes:
        if value is None:
            return b""
        found = self.values.get(value)
        if found is None:
            found = self.values[value] = self._outer(value)
        return found

    def _outer(self, value: Value) -> bytes:
        """Return the digest of a constant, or of a value above the graph that was asked for."""
        if value.default is not None:
            return _digest("constant", value.default.key())
        return _digest("captured", value.name)

    def _node(self, node: Node) -> None:
        constant = node.constant_tensor() if node.callee == ("", "Constant", "") else None
        if constant is not None:
            digest = _digest("constant", constant.key())
        else:
            digest = _digest(
                self._callee(node),
                [self._value(value) for value in node.inputs],
                sorted((name, _content(raw)) for name, raw in node.settings.items()),
                [(body.attribute, self.graph(body)) for body in node.bodies],
                len(node.outputs),
            )
        for index, value in enumerate(node.outputs):
            if value is not None:
                self.values[value] = digest if constant is not None else _digest(digest, index)


def _digest(*parts: Any) -> bytes:
    return hashlib.blake2b(repr(parts).encode(), digest_size=32).digest()


def _content(raw: Any) -> str:
    """Return an attribute as text that is equal where its content is."""
    if isinstance(raw, Tensor):
        return repr(raw.key())
    if isinstance(raw, tuple):
        return repr([_content(element) for element in raw])
    if hasattr(raw, "SerializeToString"):
        return repr(raw.SerializeToString(deterministic=True))
    return repr(raw)


def _shown(raw: Any) -> str:
    if isinstance(raw, Tensor):
        return f"tensor{list(raw.shape)}"
    if isinstance(raw, AttributeReference | int | float | str | bytes):
        return str(raw)
    if isinstance(raw, tuple):
        return f"[{' '.join(_shown(element) for element in raw)}]"
    return type(raw).__name__


def _joined(values: Iterable[Value | None]) -> str:
    return " ".join("-" if value is None else value.name for value in values)
