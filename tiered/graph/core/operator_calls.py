"""The type of `graph.op`: calls that make nodes. `edits/builder.py` implements them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, overload

import numpy as np

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

Operand: TypeAlias = "Value | np.ndarray[Any, Any] | np.generic | float | None"
"""What a caller may give; int and bool count as float here."""


class Build(Protocol):
    """Makes a node of one operator; returns its first output, or all of them."""

    @overload
    def __call__(
        self,
        *inputs: Operand,
        outputs: Literal[1] = 1,
        name: str | None = None,
        **attributes: Any,
    ) -> Value: ...

    @overload
    def __call__(
        self,
        *inputs: Operand,
        outputs: int,
        name: str | None = None,
        **attributes: Any,
    ) -> tuple[Value, ...]: ...


class OperatorCalls(ABC):
    """Makes nodes: `graph.op.Conv(x, w, kernel_shape=[1, 1])`, `graph.op("com.microsoft").Gelu(x)`.

    Inputs are values, None, or arrays and Python numbers, which become constants: `op.Mul(x, 1.5)`
    has 1.5 in the dtype of x. A call returns the first output, or with `outputs=N` the tuple of
    them. A domain that is not imported yet is imported. `op.like(node, x)` makes a node with the
    operator and attributes of another node and the operand x. `op.named("Conv")` is `op.Conv`.

    Raises:
        OperatorError: onnx does not define the operator in a domain of its own, or the operator
            does not take this attribute or these operands.
        NoEquivalentForm: the graph's opset has no such operator, attribute, operand or dtype.
    """

    __slots__ = ("_domain", "_graph")

    def __init__(self, graph: Graph, domain: str) -> None:
        self._graph = graph
        self._domain = domain

    def __call__(self, domain: str) -> Self:
        return type(self)(self._graph, domain)

    @overload
    def like(
        self,
        node: Node,
        *inputs: Operand,
        outputs: Literal[1] = 1,
        name: str | None = None,
        **attributes: Any,
    ) -> Value: ...

    @overload
    def like(
        self,
        node: Node,
        *inputs: Operand,
        outputs: int,
        name: str | None = None,
        **attributes: Any,
    ) -> tuple[Value, ...]: ...

    def like(
        self,
        node: Node,
        *inputs: Operand,
        outputs: int = 1,
        name: str | None = None,
        **attributes: Any,
    ) -> Any:
        """Make a node with the operator and the explicit attributes of another one.

        Args:
            node: the other node; its bodies are not copied.
            inputs: the operands of the new node.
            outputs, name: as in every call of the builder.
            attributes: changed attributes; None leaves an attribute out.
        """
        merged = {**self._attributes_of(node), **attributes}
        written = {key: value for key, value in merged.items() if value is not None}
        build: Any = self(node.domain).named(node.op_type)
        return build(*inputs, outputs=outputs, name=name, **written)

    def __getattr__(self, op_type: str) -> Build:
        if op_type.startswith("_"):
            raise AttributeError(op_type)
        return self.named(op_type)

    @abstractmethod
    def _attributes_of(self, node: Node) -> dict[str, Any]:
        """Return the explicit attributes of a node as its newest form has them."""

    @abstractmethod
    def named(self, op_type: str) -> Build:
        """Return `graph.op.<op_type>`, for an operator that is known only at run time."""
