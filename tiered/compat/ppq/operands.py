"""The lists of PPQ: operands and results of an operation, and the readers of a variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence, Sequence
from typing import Any, NoReturn

from tiered.compat.ppq import variable_sources
from tiered.compat.ppq.handles import NodeHandle, ValueHandle, value_of
from tiered.graph import Node, Value
from tiered.support.amounts import counted
from tiered.support.errors import ModelError, UsageError


class Ports(MutableSequence[Any]):
    """The operands or the results of an operation, as they are now; edits take effect.

    Args:
        node: the operation.
        is_input: whether they are its operands.
        made: returns the variable of a value.
    """

    __slots__ = ("_is_input", "_made", "_node")

    def __init__(self, node: Node, *, is_input: bool, made: Callable[[Value | None], Any]) -> None:
        self._node, self._is_input, self._made = node, is_input, made

    @property
    def _values(self) -> Sequence[Value | None]:
        return self._node.inputs if self._is_input else self._node.outputs

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        found = self._values[index]
        return tuple(map(self._made, found)) if isinstance(found, tuple) else self._made(found)

    def __setitem__(self, index: Any, variable: Any) -> None:
        if isinstance(index, slice):
            if not self._is_input:
                raise UsageError("outputs are exchanged one by one: outputs[0] = variable")
            values = list(self._values)
            values[index] = map(_value, variable)
            self._read(values)
            return
        at = self._at(index)
        if self._is_input:
            self._node.owner.set_input(self._node, at, _value(variable))
        else:
            variable_sources.exchange(self._node, at, _given(variable))

    def __delitem__(self, index: Any) -> None:
        values = list(self._values)
        if self._is_input:
            del values[index]
            self._read(values)
            return
        at = self._at(index)
        value = values.pop(at)
        if value is not None and value.is_used:
            raise ModelError(f"variable {value.name!r} is used, so its operation still computes it")
        self._node.owner.set_outputs(self._node, values)

    def insert(self, index: int, value: Any) -> None:
        """Add an operand, or a variable without a source as the last result."""
        if self._is_input:
            values = list(self._values)
            values.insert(index, _value(value))
            self._read(values)
        elif index < len(self):
            raise UsageError("an output is added as the last one: outputs.append(variable)")
        else:
            variable_sources.give(_given(value), self._node)

    def _read(self, values: Sequence[Value | None]) -> None:
        """Let the operation read some values; fewer than it needs while it is edited."""
        schema = self._node.schema
        if schema is not None and len(values) > schema.max_input:
            raise ModelError(
                f"operation {self._node.label!r} is {self._node.op_type}, which takes no more than "
                f"{counted(schema.max_input, 'input')}, not {len(values)}"
            )
        self._node.owner.set_inputs(self._node, values)

    def _at(self, index: int) -> int:
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            kind = "input" if self._is_input else "output"
            raise ModelError(
                f"operation {self._node.label!r} has {counted(len(self), kind)}, "
                f"so no {kind} {index}"
            )
        return at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ports | tuple | list) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __repr__(self) -> str:
        return repr(tuple(self))


def _value(variable: Any) -> Value | None:
    """Return the value of a variable.

    Raises:
        UsageError: it is no variable.
    """
    if variable is not None and not isinstance(variable, ValueHandle):
        raise UsageError(f"an operand is a Variable, not {variable!r}: {ValueHandle.found_in}")
    return value_of(variable)


def _given(variable: Any) -> Value:
    value = _value(variable)
    if value is None:
        raise UsageError("an operation computes a Variable, not None")
    return value


class Readers(tuple[Any, ...]):
    """The operations that read a variable, once for each operand.

    They follow from the operands. What PPQ's passes do to both sides is done already: an operation
    that reads the variable may be appended, and one that does not may be removed.
    """

    __slots__ = ()

    def append(self, operation: NodeHandle) -> None:
        """Accept an operation that reads the variable.

        Raises:
            UsageError: it does not.
        """
        if operation not in self:
            self._refuse(operation, "does not read the variable")

    def remove(self, operation: NodeHandle) -> None:
        """Accept an operation that does not read the variable.

        Raises:
            UsageError: it does.
        """
        if operation in self:
            self._refuse(operation, "reads the variable")

    def extend(self, operations: Iterable[NodeHandle]) -> None:
        """Accept operations that read the variable."""
        for operation in operations:
            self.append(operation)

    def pop(self, index: int = -1) -> NoReturn:
        """Refuse: the operation reads the variable."""
        self._refuse(self[index], "reads the variable")

    def clear(self) -> None:
        """Accept it if nothing reads the variable."""
        for operation in self:
            self.remove(operation)

    def _refuse(self, operation: Any, what: str) -> NoReturn:
        raise UsageError(
            f"{operation!r} {what}: dest_ops follows from the operands, which are edited by "
            "operation.inputs[index] = variable"
        )
