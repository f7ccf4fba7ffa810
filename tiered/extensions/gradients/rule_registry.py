"""The registry of gradient rules, and what a rule is called with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from tiered.extensions.gradients.expression import Expr
from tiered.graph import Graph, Node, Value
from tiered.graph.opset.aspect import Aspect
from tiered.support.errors import ModelError


class NoGradient(ModelError):
    """A node on the path from the output to an input has no gradient rule that applies."""


class Differentiate(Protocol):
    """Reverse mode over nodes of one graph; see `tiered.extensions.gradients.reverse`."""

    def __call__(
        self,
        graph: Graph,
        nodes: Sequence[Node],
        seeds: Mapping[Value, Value],
        targets: Collection[Value],
    ) -> dict[Value, Value]: ...

    def note_copies(self, copies: Mapping[Value, Value | None]) -> None:
        """Treat copies of values that count as constants as constants too."""


class Step:
    """One node of the backward pass: its operands, its outputs, and their gradients.

    Attributes:
        node: the node of the forward pass.
        graph: the graph that gets the new nodes.
        operands: the operands in the operator's newest form; None for absent ones.
        outputs: the outputs; None for absent ones.
        grads: the gradient of each output; None for one that the result does not depend on.
        wanted: the values whose gradients are needed.
        differentiate: reverse mode, for rules of nodes with bodies.
    """

    def __init__(
        self,
        node: Node,
        graph: Graph,
        grads: Sequence[Value | None],
        wanted: Collection[Value],
        differentiate: Differentiate,
    ) -> None:
        self.node = node
        self.graph = graph
        self.name = f"grad/{node.label}"
        self.values = node.operands
        self.operands = [None if value is None else self.of(value) for value in self.values]
        self.outputs = [None if value is None else self.of(value) for value in node.outputs]
        self.grads = [None if value is None else self.of(value) for value in grads]
        self.wanted = wanted
        self.differentiate = differentiate

    def of(self, value: Value) -> Expr:
        """Return a value as an expression."""
        return Expr(self.graph, value, self.name)

    def wants(self, place: int) -> bool:
        """Return whether the gradient of an operand is needed."""
        return place < len(self.values) and self.values[place] in self.wanted

    def has(self, place: int) -> bool:
        """Return whether there is an operand."""
        return place < len(self.operands) and self.operands[place] is not None

    def operand(self, place: int) -> Expr:
        """Return an operand that is there."""
        found = self.operands[place]
        assert found is not None, f"{self.node!r} has no operand {place}"
        return found

    @property
    def x(self) -> Expr:
        """The first operand."""
        return self.operand(0)

    @property
    def y(self) -> Expr:
        """The first output."""
        found = self.outputs[0]
        assert found is not None, f"{self.node!r} has no first output"
        return found

    @property
    def g(self) -> Expr:
        """The gradient of the first output.

        Raises:
            NoGradient: the result depends on another output only.
        """
        found = self.grads[0]
        return self.y.zeros() if found is None else found

    def axes(self, place: int) -> list[int] | None:
        """Return an operand that is a list of axes, from 0; None if it is absent.

        Raises:
            NoGradient: they are no constant.
        """
        if not self.has(place):
            return None
        found = self.operand(place).value.const
        if found is None:
            raise self.error("its axes are not constant")
        return [int(axis) % max(self.x.rank, 1) for axis in found.ravel()]

    def error(self, reason: str) -> NoGradient:
        """Return an error that names the node, and why it has no gradient."""
        node = self.node
        name = node.operator
        return NoGradient(
            f"gradient: node {node.label!r} ({name}) has no gradient: {reason}; "
            "name it in stop_at to treat its outputs as constants"
        )


GradientRule = Callable[[Step], Sequence[Expr | None]]
"""Returns the gradient of each operand; None for one that is constant or is not wanted."""


class RegisteredGradient(NamedTuple):
    """How an operator is differentiated.

    Attributes:
        rule: the function.
        is_expansion: it returns the outputs in terms of operators that have rules.
        broadcasts: the gradients of operands are summed over the axes along which they repeat.
    """

    rule: GradientRule
    is_expansion: bool = False
    broadcasts: bool = False


GRADIENTS: Final = Aspect("gradient", entry=RegisteredGradient)

Rule = TypeVar("Rule", bound=GradientRule)


def gradient_rule(
    *op_types: str, domain: str | Sequence[str] = "", broadcasts: bool = False
) -> Callable[[Rule], Rule]:
    """Register a function as the gradient rule of operators.

    Args:
        op_types: the operators.
        domain: their domain, or several.
        broadcasts: the rule returns gradients in the shape of the output; they are summed over the
            axes along which each operand is repeated.

    Raises:
        UsageError: no operator is named, or one has a rule already.
    """
    return GRADIENTS.rule(*op_types, domain=domain, broadcasts=broadcasts)


def expansion(*op_types: str, domain: str | Sequence[str] = "") -> Callable[[Rule], Rule]:
    """Register a function that computes the outputs of operators by others that have rules."""
    return GRADIENTS.rule(*op_types, domain=domain, is_expansion=True)
