"""The structural hash: equal for graphs that are the same up to names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import TensorType

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

_SMALL: Final = 1024
"""An exact hash includes the contents of initializers of up to this many bytes."""


def structural_hash(graph: Graph) -> str:
    """Return the hash of the computation of a graph; see `Graph.structural_hash`."""
    return _digest(_Digests(graph.model).graph(graph), size=32)


def value_digests(graph: Graph, given: Mapping[Value, str] | None = None) -> Mapping[Value, str]:
    """Return a digest for each value of a graph: equal ones compute the same from the inputs.

    Args:
        graph: the graph.
        given: digests of its inputs, constants and captured values, by which they are values of
            another graph; the contents of these constants are not read.
    """
    digests = _Digests(graph.model, given=given)
    digests.graph(graph)
    return digests.values


def fingerprint(model: ModelState) -> bytes:
    """Return a digest of the whole model; names and the order of nodes do not count.

    Nodes that reach no output count too, as do attributes that are written with their default, and
    how many constants there are.
    Large constants count by their names, dtypes and shapes, so that none is read.
    """
    digests = _Digests(model, exact=True)
    functions = sorted(model.functions, key=lambda function: function.id)
    digest = _digest(
        sorted(model.opset_imports.items()),
        digests.graph(model.main),
        [(function.id, digests.graph(function)) for function in functions],
    )
    return bytes.fromhex(digest)


class _Digests:
    """A digest for each value, computed from its producer, inputs and constants.

    Args:
        model: the model of the graphs.
        exact: include everything that a pass may edit, at little cost: see `fingerprint`.
        given: the digests of some inputs, constants and captured values.
    """

    def __init__(
        self, model: ModelState, *, exact: bool = False, given: Mapping[Value, str] | None = None
    ) -> None:
        self.exact = exact
        self.given = given or {}
        self.functions = {function.id: function for function in model.functions}
        self.callees: dict[tuple[str, str, str], str] = {}
        self.values: dict[Value, str] = dict(self.given)
        # Dims by the order in which the inputs name them: their names do not count.
        self.dims: dict[str, str] = {}
        self.depth = 0

    def graph(self, graph: Graph) -> str:
        depth, self.depth = self.depth, self.depth + 1
        for index, value in enumerate(graph.inputs):
            if value in self.given:
                continue
            default = value.default
            kind = None if self.exact else self._type(value)
            key = None if self.exact or default is None else default.key()
            self.values[value] = _digest("input", depth, index, kind, key)
        nodes = [self._node(node) for node in graph.topological_order()]
        self.depth = depth
        outputs = [self._value(value) for value in graph.outputs]
        # Two equal constants are one more than one that both readers share.
        parts = (len(graph.initializers), sorted(nodes)) if self.exact else ()
        return _digest("graph", len(graph.inputs), outputs, parts)

    def _type(self, value: Value) -> str:
        kind = value.type
        if not isinstance(kind, TensorType) or kind.shape is None:
            return repr(kind)
        dims = [
            self.dims.setdefault(dim, f"dim {len(self.dims)}") if isinstance(dim, str) else dim
            for dim in kind.shape
        ]
        return repr((int(kind.dtype), dims))

    def _callee(self, node: Node) -> str:
        """Return the digest of an operator: its name, or the computation of a local function."""
        if self.exact:
            return f"{node.domain}:{node.op_type}:{node.proto.overload}"
        function = self.functions.get(node.callee)
        if function is None:
            schema = node.schema
            return _digest(node.callee, 0 if schema is None else schema.since_version)
        if function.id not in self.callees:
            # Else a function that calls itself would have no end.
            self.callees[function.id] = _digest("call", function.id)
            self.callees[function.id] = self.graph(function)
        return self.callees[function.id]

    def _value(self, value: Value | None) -> str:
        if value is None:
            return ""
        found = self.values.get(value)
        if found is None:
            found = self.values[value] = self._outer(value)
        return found

    def _outer(self, value: Value) -> str:
        """Return the digest of an initializer, or of a value above the given graph."""
        tensor = value.default
        if tensor is not None:
            if self.exact and (tensor.nbytes > _SMALL or tensor.is_sparse):
                return _digest("constant", tensor.dtype, tensor.shape, value.name)
            return _digest("constant", tensor.key())
        return _digest("captured", value.name)

    def _node(self, node: Node) -> str:
        is_constant = node.is_op("Constant") and not self.exact
        constant = node.constant_tensor() if is_constant else None
        if constant is not None:
            digest = self.given.get(node.output) or _digest("constant", constant.key())
        else:
            digest = _digest(
                self._callee(node),
                [self._value(value) for value in node._inputs],
                self._attributes(node),
                [(body.attribute, self.graph(body)) for body in node.bodies],
                len(node._outputs),
            )
        for index, value in enumerate(node._outputs):
            if value is not None:
                self.values[value] = digest if constant is not None else f"{digest}.{index}"
        return digest

    def _attributes(self, node: Node) -> Any:
        if not self.exact:
            return sorted((name, content_key(raw)) for name, raw in node.settings.items())
        protos = node.attribute_protos()
        if not protos:
            return ()
        bodies = {body.attribute for body in node.bodies}
        return sorted(
            [
                proto.SerializeToString(deterministic=True)
                for name, proto in protos.items()
                if name not in bodies
            ]
        )


def _digest(*parts: Any, size: int = 16) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=size).hexdigest()


def content_key(raw: Any) -> str:
    """Return a string that is equal for attributes of equal content."""
    if isinstance(raw, Tensor):
        return repr(raw.key())
    if isinstance(raw, tuple):
        return repr([content_key(element) for element in raw])
    if hasattr(raw, "SerializeToString"):
        return repr(raw.SerializeToString(deterministic=True))
    return repr(raw)
