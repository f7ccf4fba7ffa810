"""The builder behind `graph.op`: nodes in their newest form, written in the form of the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np

from tiered.graph.forms import detached, to_model_form
from tiered.graph.schema import schema_of

if TYPE_CHECKING:
    from tiered.graph.graph import Graph
    from tiered.graph.value import Value

class Build(Protocol):
    """Makes a node of one operator, and returns its first output, or all of them."""

    @overload
    def __call__(
        self,
        *inputs: Value | np.ndarray[Any, Any] | None,
        outputs: Literal[1] = 1,
        name: str | None = None,
        **attributes: Any,
    ) -> Value: ...

    @overload
    def __call__(
        self,
        *inputs: Value | np.ndarray[Any, Any] | None,
        outputs: int,
        name: str | None = None,
        **attributes: Any,
    ) -> tuple[Value, ...]: ...


class OpBuilder:
    """Makes nodes: `graph.op.Conv(x, w, kernel_shape=[1, 1])`, `graph.op("com.microsoft").Gelu(x)`.

    Inputs are values, arrays (which become constants) or None. A call returns the first output, or
    the tuple of them with `outputs=N`.
    """

    __slots__ = ("_domain", "_graph")

    def __init__(self, graph: Graph, domain: str) -> None:
        self._graph = graph
        self._domain = domain

    def __call__(self, domain: str) -> OpBuilder:
        return OpBuilder(self._graph, domain)

    def __getattr__(self, op_type: str) -> Build:
        if op_type.startswith("_"):
            raise AttributeError(op_type)

        def build(
            *inputs: Value | np.ndarray[Any, Any] | None,
            outputs: int = 1,
            name: str | None = None,
            **attributes: Any,
        ) -> Any:
            graph = self._graph
            _import(graph, self._domain, op_type)
            operands = [
                detached(value) if isinstance(value, np.ndarray) else value
                for value in inputs
            ]
            slots, written = to_model_form(
                graph, op_type, self._domain, operands, attributes, outputs
            )
            node = graph.add_node(
                op_type, slots, outputs, written, domain=self._domain, name=name or graph.model.hint
            )
            return node.output if outputs == 1 else node.outputs

        return build


def _import(graph: Graph, domain: str, op_type: str) -> None:
    """Import a domain that is newly used; where a function uses it, into the model as well.

    onnxruntime resolves the bodies of functions with what the model imports.
    """
    for root in (graph.root, graph.model.main):
        if not root.opset(domain):
            schema = schema_of(op_type, domain)
            graph.model.set_opset(domain, schema.since_version if schema else 1, root)
