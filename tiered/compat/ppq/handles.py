"""What Variable and Operation have in common: they stand for a value and a node of the view."""

from __future__ import annotations

from typing import Any, ClassVar

from tiered.graph import Node, Value
from tiered.support.errors import ModelError, did_you_mean


class UnquantizedError(ModelError, AttributeError):
    """A variable or operation without configs has no attributes of quantised ones."""


class Handle:
    """Names that are missing, or that only a quantised variable or operation has, are named.

    Attributes:
        when_quantized: the names of the class for quantised ones.
        found_in: where such objects are, for errors.
    """

    __slots__ = ()

    when_quantized: ClassVar[frozenset[str]] = frozenset()
    found_in: ClassVar[str] = ""

    @property
    def name(self) -> str:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        raise self._missing(name)

    def __setattr__(self, name: str, value: object) -> None:
        if not hasattr(type(self), name):
            raise self._missing(name)
        object.__setattr__(self, name, value)

    def _missing(self, name: str) -> AttributeError:
        """Return the error about a name that is missing."""
        kind = type(self).__name__
        if name in type(self).when_quantized:
            return UnquantizedError(
                f"{kind} {self.name!r} has no {name}: it is not quantised, and "
                "QuantableGraph.quantize_operation gives an operation its configs"
            )
        hint = did_you_mean(name, [each for each in dir(type(self)) if each[0] != "_"])
        return AttributeError(f"{kind!r} object has no attribute {name!r}{hint}")


class ValueHandle(Handle):
    """Stands for a value. Two are equal when their values are the same one."""

    __slots__ = ("_value",)

    found_in = "graph.variables has them by name"
    _value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueHandle) and other._value is self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class NodeHandle(Handle):
    """Stands for a node. Two are equal when their nodes are the same one."""

    __slots__ = ("_node",)

    found_in = "graph.operations has them by name"
    _node: Node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeHandle) and other._node is self._node

    def __hash__(self) -> int:
        return hash(self._node)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self._node.op_type!r})"


def value_of(variable: ValueHandle | None) -> Value | None:
    """Return the value of a variable."""
    return None if variable is None else variable._value


def node_of(operation: NodeHandle | None) -> Node | None:
    """Return the node of an operation."""
    return None if operation is None else operation._node
