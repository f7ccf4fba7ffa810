"""The parts of patterns; `language.py` has the syntax that builds them.

A pattern is immutable. Its string is as it was written and evaluates to an equal pattern. One
object matches one node wherever it occurs; two equal objects may match the same node, and two that
differ (name them with `.bind`) never do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tiered.graph.core.schema import schema_of
from tiered.graph.queries.op_traits import COMMUTATIVE
from tiered.rewriter.constant_match import LARGEST, is_near, is_number, is_same
from tiered.rewriter.var_conditions import Condition
from tiered.support.amounts import counted
from tiered.support.loading import LoadedLater

if TYPE_CHECKING:
    from types import EllipsisType


Key = tuple[str, str]
"""An operator: its domain and its type."""


class PatternError(TypeError):
    """A pattern that the operator schemas contradict; raised where the pattern is written."""


@dataclass(eq=False, repr=False)
class Pattern:
    """Something that matches a value."""

    conditions: tuple[Condition, ...] = field(default=(), kw_only=True)

    @cached_property
    def _parts(self) -> tuple[Any, ...]:
        """The fields that equality compares."""
        parts = self.__dataclass_fields__.items()
        return tuple([getattr(self, name) for name, part in parts if part.compare])

    @cached_property
    def _hash(self) -> int:
        return hash(self._parts)

    # Written once: `dataclass` would generate both for each class, at every start.
    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._parts == other._parts

    def __hash__(self) -> int:
        return self._hash

    def __or__(self, other: Any) -> Alternatives:
        if not isinstance(other, Pattern):
            return NotImplemented
        mine = self.choices if isinstance(self, Alternatives) else (self,)
        others = other.choices if isinstance(other, Alternatives) else (other,)
        return Alternatives((*mine, *others))

    def __and__(self, other: Any) -> Together:
        if not isinstance(other, Pattern):
            return NotImplemented
        mine = self.roots if isinstance(self, Together) else (self,)
        others = other.roots if isinstance(other, Together) else (other,)
        return Together((*mine, *others))

    def having(
        self,
        *,
        dtype: int | tuple[int, ...] | None = None,
        rank: int | tuple[int, ...] | None = None,
        shape: tuple[int | str | EllipsisType | None, ...] | None = None,
    ) -> Self:
        """Return the pattern of values of a type; an unknown type does not match.

        Args:
            dtype: a TensorProto.DataType, or several.
            rank: the number of dims, or several numbers.
            shape: each dim: a size, the name of a symbol, None for any, `...` for any number of
                dims.
        """
        return self._with(Condition.of(dtype=dtype, rank=rank, shape=shape))

    def where(self, predicate: Callable[[Any], bool]) -> Self:
        """Return the pattern with a predicate of the value, of an operator one of the node."""
        return self._with(Condition(predicate=predicate))

    def _with(self, condition: Condition) -> Self:
        return dataclasses.replace(self, conditions=(*self.conditions, condition))

    def children(self) -> Iterator[Pattern]:
        """Yield the patterns right inside this one."""
        return iter(())

    @property
    def own_keys(self) -> tuple[Key, ...]:
        """The operators that this part itself matches, one or any of several."""
        return ()

    def own_names(self) -> Iterable[tuple[str, str]]:
        """Return the names that this part itself binds, with their kinds."""
        return ()

    def walk(self) -> Iterator[Pattern]:
        """Yield this pattern and all that it contains, each object once, readers first."""
        seen: set[int] = set()
        pending: list[Pattern] = [self]
        while pending:
            part = pending.pop()
            if id(part) not in seen:
                seen.add(id(part))
                yield part
                pending += [*part.children()][::-1]

    @cached_property
    def depth(self) -> int:
        """How many operators lie on the longest path through the pattern; a chain counts once."""
        below = max([child.depth for child in self.children()], default=0)
        return below + bool(self.own_keys)

    @cached_property
    def operators(self) -> frozenset[Key]:
        """The operators that every match contains."""
        found = frozenset[Key]().union(*[child.operators for child in self.children()])
        return found | {self.key} if isinstance(self, OpPattern) else found

    @property
    def mentioned(self) -> frozenset[Key]:
        """Every operator that a match may contain, in any of the choices."""
        return frozenset([key for part in self.walk() for key in part.own_keys])

    @cached_property
    def bound(self) -> Mapping[str, str]:
        """The names that a match binds, with their kinds: value(s), attribute, node or nodes.

        Raises:
            PatternError: one name has two kinds.
        """
        found: dict[str, str] = {}
        for bound in (self.own_names(), *(child.bound.items() for child in self.children())):
            for name, kind in bound:
                if found.setdefault(name, kind) != kind:
                    both = f"{found[name]} and {kind}"
                    raise PatternError(f"{name!r} cannot be both {both} in {self}")
        return found

    __str__ = LoadedLater("tiered.rewriter.pattern_printer", "printed")
    __repr__ = __str__


@dataclass(eq=False, repr=False)
class _Named(Pattern):
    """A part that is bound to a name."""

    name: str

    def own_names(self) -> Iterable[tuple[str, str]]:
        return ((self.name, "value"),)


class VariablePattern(_Named):
    """`var.x`: any value; the same variable twice must be the same value."""


class Opt(_Named):
    """`opt.bias`: an optional operand, None where it is absent."""


class Rest(_Named):
    """`rest.inputs`: all remaining operands as a tuple; only at the end."""

    def own_names(self) -> Iterable[tuple[str, str]]:
        return ((self.name, "values"),)


class Anything(Pattern):
    """`...`: one operand or, at the end, all that remain."""


@dataclass(eq=False, repr=False)
class Const(Pattern):
    """`const(0.5)`: a constant; see `const`."""

    expected: Any = None
    predicate: Callable[[np.ndarray[Any, Any]], bool] | None = None
    rtol: float = 0.0
    name: str = ""
    # Set if an array was given; numbers match any dtype that holds them.
    dtype: str = ""
    # Written as a number: `op.Add(var.x, 1)`.
    is_literal: bool = field(default=False, compare=False)

    def own_names(self) -> Iterable[tuple[str, str]]:
        return ((self.name, "value"),) if self.name else ()

    @cached_property
    def size(self) -> int | None:
        """The number of elements, None if the pattern admits any."""
        return None if self.expected is None else self._wanted.size

    @cached_property
    def _wanted(self) -> np.ndarray[Any, Any]:
        return np.asarray(self.expected, self.dtype or None)

    @cached_property
    def _number(self) -> float | None:
        """One number of any dtype that every float dtype holds nearly; None for anything else."""
        wanted = self._wanted
        if self.dtype or wanted.size != 1 or wanted.dtype.kind not in "biuf":
            return None
        number = float(wanted.item())
        return number if abs(number) < LARGEST else None

    def accepts(self, array: np.ndarray[Any, Any]) -> bool:
        """Return whether the numbers of a constant match."""
        if self.predicate is not None:
            return bool(self.predicate(array))
        if self.expected is None:
            return True
        wanted, number = self._wanted, self._number
        if number is not None and array.size == 1 and array.dtype.char in "efd":
            return is_number(array, number, self.rtol)
        if array.size != wanted.size or array.dtype.kind in "OSU":
            return False
        if self.dtype and (array.dtype != wanted.dtype or array.shape != wanted.shape):
            return False
        got = array.reshape(wanted.shape)
        if self.rtol:
            return is_near(got, wanted, self.rtol)
        return is_same(got, wanted)


@dataclass(eq=False, repr=False)
class Alternatives(Pattern):
    """`a | b`: the first choice that matches; names that only other choices bind are None."""

    choices: tuple[Pattern, ...]

    def children(self) -> Iterator[Pattern]:
        return iter(self.choices)

    @cached_property
    def operators(self) -> frozenset[Key]:
        return frozenset.intersection(*[choice.operators for choice in self.choices])

    def _with(self, condition: Condition) -> Self:
        return self._each(lambda choice: choice._with(condition))

    def shared(self) -> Self:
        """Return the choices with `.shared()` each."""
        return self._each(lambda choice: _op_of(choice).shared())

    def bind(self, name: str) -> Self:
        """Return the choices with `.bind(name)` each."""
        return self._each(lambda choice: _op_of(choice).bind(name))

    def out(self, index: int) -> Self:
        """Return the choices with `.out(index)` each."""
        return self._each(lambda choice: _op_of(choice).out(index))

    def _each(self, change: Callable[[Pattern], Pattern]) -> Self:
        return dataclasses.replace(self, choices=tuple(map(change, self.choices)))


@dataclass(eq=False, repr=False)
class Together(Pattern):
    """`a & b`: several roots at once, which share a value or a node."""

    roots: tuple[Pattern, ...]

    def children(self) -> Iterator[Pattern]:
        return iter(self.roots)


@dataclass(eq=False, repr=False)
class OpPattern(Pattern):
    """`op.Conv(var.x, var.weight, opt.bias, group=1)`: one operator with its operands."""

    op_type: str
    domain: str
    operands: tuple[Pattern, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    # Attributes beyond those: `attrs=...` takes any that are known, `attrs="ignored"` any at all.
    any_attributes: bool = False
    ignores_attributes: bool = False
    is_shared: bool = False
    node_name: str = ""
    output: int = 0
    # The pattern of the first output of the same node.
    first: OpPattern | None = field(default=None, compare=False)

    def shared(self) -> Self:
        """Return the pattern of a node with other consumers: the rewrite keeps it."""
        return dataclasses.replace(self, is_shared=True, first=None)

    def bind(self, name: str) -> Self:
        """Return the pattern that binds the matched node to a name."""
        return dataclasses.replace(self, node_name=name, first=None)

    def out(self, index: int) -> OpPattern:
        """Return the pattern of another output of the same node."""
        if index == self.output:
            return self
        if self.first is not None and index == self.first.output:
            return self.first
        schema = schema_of(self.op_type, self.domain)
        if schema is not None and index >= schema.max_output:
            raise PatternError(
                f"{operator_text(self.key)} has {counted(schema.max_output, 'output')}, "
                f"so no output {index}"
            )
        return dataclasses.replace(self, output=index, conditions=(), first=self.identity)

    @property
    def identity(self) -> OpPattern:
        """The pattern of the first output of the node, the same object for all its outputs."""
        return self.first or self

    @property
    def key(self) -> Key:
        return self.domain, self.op_type

    @property
    def own_keys(self) -> tuple[Key, ...]:
        return (self.key,)

    @cached_property
    def names(self) -> frozenset[str]:
        """The attributes that the pattern names."""
        return frozenset(name for name, _ in self.attributes)

    @property
    def is_commutative(self) -> bool:
        return not self.domain and self.op_type in COMMUTATIVE and len(self.operands) == 2

    def children(self) -> Iterator[Pattern]:
        return iter(self.operands)

    def own_names(self) -> Iterable[tuple[str, str]]:
        named = (
            (v.name, "attribute") for _, v in self.attributes if isinstance(v, VariablePattern)
        )
        return (*([(self.node_name, "node")] if self.node_name else ()), *named)


@dataclass(eq=False, repr=False)
class Chain(Pattern):
    """`chain(op.Cast | op.Identity, var.x)`: one or more of these in a row, from x on."""

    kinds: tuple[Key, ...]
    end: Pattern
    is_shared: bool = False
    node_name: str = ""

    @property
    def own_keys(self) -> tuple[Key, ...]:
        return self.kinds

    def own_names(self) -> Iterable[tuple[str, str]]:
        return ((self.node_name, "nodes"),) if self.node_name else ()

    def shared(self) -> Self:
        """Return the chain with other consumers of its inner values: the rewrite keeps it."""
        return dataclasses.replace(self, is_shared=True)

    def bind(self, name: str) -> Self:
        """Return the chain that binds its nodes to a name, the last one first."""
        return dataclasses.replace(self, node_name=name)

    def children(self) -> Iterator[Pattern]:
        yield self.end


def _op_of(pattern: Pattern) -> Any:
    if not isinstance(pattern, OpPattern | Chain | Alternatives):
        raise PatternError(f"{pattern} is no operator")
    return pattern


def roots(pattern: Pattern) -> tuple[OpPattern | Together, ...]:
    """Return the choices of the root of a pattern.

    Raises:
        PatternError: the root of one is no operator.
    """
    choices = pattern.choices if isinstance(pattern, Alternatives) else (pattern,)
    found: list[OpPattern | Together] = []
    for choice in choices:
        inner = choice.roots if isinstance(choice, Together) else (choice,)
        if not all(isinstance(root, OpPattern) for root in inner):
            raise PatternError(f"{pattern} cannot be searched for: its root must be an operator")
        assert isinstance(choice, OpPattern | Together)
        found.append(choice)
    return tuple(found)


def operator_text(key: Key) -> str:
    """Return an operator as patterns name it: `op.Add`, `op('com.microsoft').Gelu`."""
    domain, op_type = key
    return f"op({domain!r}).{op_type}" if domain else f"op.{op_type}"
