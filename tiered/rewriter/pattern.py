"""The parts of patterns, and patterns as strings; `language.py` has the syntax that builds them.

A pattern is immutable. Its string is as it was written and evaluates to an equal pattern. One
object matches one node wherever it occurs; two equal objects may match the same node, and two that
differ (name them with `.bind`) never do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from tiered.graph.core.schema import schema_of
from tiered.rewriter.var_conditions import Condition

if TYPE_CHECKING:
    from types import EllipsisType

COMMUTATIVE = frozenset(
    {"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Max", "Mean", "Min", "Mul",
     "Or", "Sum", "Xor"}
)  # fmt: skip
"""Operators of the default domain whose two operands are matched in either order."""


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

    def walk(self) -> Iterator[Pattern]:
        """Yield this pattern and all that it contains, as often as it occurs."""
        yield self
        for child in self.children():
            yield from child.walk()

    @cached_property
    def bound(self) -> Mapping[str, str]:
        """The names that a match binds, with their kinds: value(s), attribute, node or nodes.

        Raises:
            PatternError: one name has two kinds.
        """
        found: dict[str, str] = {}
        for bound in (_bound_by(self), *(child.bound.items() for child in self.children())):
            for name, kind in bound:
                if found.setdefault(name, kind) != kind:
                    both = f"{found[name]} and {kind}"
                    raise PatternError(f"{name!r} cannot be both {both} in {self}")
        return found

    def __str__(self) -> str:
        return _Printer(self).text(self)

    __repr__ = __str__


@dataclass(eq=False, repr=False)
class _Named(Pattern):
    """A part that is bound to a name."""

    name: str


class Var(_Named):
    """`var.x`: any value; the same variable twice must be the same value."""


class Opt(_Named):
    """`opt.bias`: an optional operand, None where it is absent."""


class Rest(_Named):
    """`rest.inputs`: all remaining operands as a tuple; only at the end."""


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

    @cached_property
    def size(self) -> int | None:
        """The number of elements, None if the pattern admits any."""
        is_open = self.expected is None or self.predicate is not None
        return None if is_open else self._wanted.size

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
        return number if abs(number) < _LARGEST else None

    def accepts(self, array: np.ndarray[Any, Any]) -> bool:
        """Return whether the numbers of a constant match."""
        if self.predicate is not None:
            return bool(self.predicate(array))
        if self.expected is None:
            return True
        wanted, number = self._wanted, self._number
        if number is not None and array.size == 1 and array.dtype.char in "efd":
            return _is_number(array, number, self.rtol)
        if array.size != wanted.size or array.dtype.kind in "OSU":
            return False
        if self.dtype and (array.dtype != wanted.dtype or array.shape != wanted.shape):
            return False
        got = array.reshape(wanted.shape)
        if self.rtol:
            with np.errstate(all="ignore"):
                # As near as its dtype has it: the root of 2 is 1.4140625 in 16 bits.
                nearest = wanted.astype(got.dtype).astype(np.float64)
            return bool(np.allclose(got.astype(np.float64), nearest, rtol=self.rtol, atol=0.0))
        return _is_same(got, wanted)


_LARGEST: Final = 60_000
"""Smaller numbers are finite in 16 bits."""


def _is_number(array: np.ndarray[Any, Any], number: float, rtol: float) -> bool:
    """Return whether an array of one float is a number, rounded to its dtype."""
    got, nearest = array.item(), float(array.dtype.type(number))
    if rtol:
        return bool(abs(got - nearest) <= rtol * abs(nearest))
    return bool(got == nearest and math.copysign(1.0, got) == math.copysign(1.0, nearest))


def _is_same(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> bool:
    """Return whether an array has exactly these numbers in its dtype: -0.0 is not 0.0."""
    with np.errstate(all="ignore"):
        cast = wanted.astype(got.dtype)
    if got.dtype.kind in "biu":
        # 0.5 is no integer, 300 no uint8, and 2 no bool.
        return bool((got == cast).all() and (cast == wanted).all())
    if wanted.dtype.kind == "c" and got.dtype.kind != "c":
        return False
    if got.dtype.kind == "c":
        return bool(np.array_equal(got, cast, equal_nan=True))
    first, second = got.astype(np.float64), cast.astype(np.float64)
    same = np.array_equal(first, second, equal_nan=True)
    return bool(same and (np.signbit(first) == np.signbit(second))[~np.isnan(first)].all())


@dataclass(eq=False, repr=False)
class Alternatives(Pattern):
    """`a | b`: the first choice that matches; names that only other choices bind are None."""

    choices: tuple[Pattern, ...]

    def children(self) -> Iterator[Pattern]:
        return iter(self.choices)

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
class Op(Pattern):
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
    first: Op | None = field(default=None, compare=False)

    def shared(self) -> Self:
        """Return the pattern of a node with other consumers: the rewrite keeps it."""
        return dataclasses.replace(self, is_shared=True, first=None)

    def bind(self, name: str) -> Self:
        """Return the pattern that binds the matched node to a name."""
        return dataclasses.replace(self, node_name=name, first=None)

    def out(self, index: int) -> Op:
        """Return the pattern of another output of the same node."""
        if index == self.output:
            return self
        if self.first is not None and index == self.first.output:
            return self.first
        schema = schema_of(self.op_type, self.domain)
        if schema is not None and index >= schema.max_output:
            raise PatternError(
                f"{operator_text(self.key)} has {schema.max_output} outputs, so no output {index}"
            )
        return dataclasses.replace(self, output=index, conditions=(), first=self.identity)

    @property
    def identity(self) -> Op:
        """The pattern of the first output of the node, the same object for all its outputs."""
        return self.first or self

    @property
    def key(self) -> tuple[str, str]:
        return self.domain, self.op_type

    @cached_property
    def names(self) -> frozenset[str]:
        """The attributes that the pattern names."""
        return frozenset(name for name, _ in self.attributes)

    @property
    def is_commutative(self) -> bool:
        return not self.domain and self.op_type in COMMUTATIVE and len(self.operands) == 2

    def children(self) -> Iterator[Pattern]:
        return iter(self.operands)


@dataclass(eq=False, repr=False)
class Chain(Pattern):
    """`chain(op.Cast | op.Identity, var.x)`: one or more of these in a row, from x on."""

    kinds: tuple[tuple[str, str], ...]
    end: Pattern
    is_shared: bool = False
    node_name: str = ""

    def shared(self) -> Self:
        """Return the chain with other consumers of its inner values: the rewrite keeps it."""
        return dataclasses.replace(self, is_shared=True)

    def bind(self, name: str) -> Self:
        """Return the chain that binds its nodes to a name, the last one first."""
        return dataclasses.replace(self, node_name=name)

    def children(self) -> Iterator[Pattern]:
        yield self.end


def _op_of(pattern: Pattern) -> Any:
    if not isinstance(pattern, Op | Chain | Alternatives):
        raise PatternError(f"{pattern} is no operator")
    return pattern


# --- properties of a whole pattern ----------------------------------------------------------------


def _bound_by(part: Pattern) -> Iterator[tuple[str, str]]:
    match part:
        case Var(name=name) | Opt(name=name):
            yield name, "value"
        case Rest(name=name):
            yield name, "values"
        case Const(name=name) if name:
            yield name, "value"
        case Chain(node_name=name) if name:
            yield name, "nodes"
        case Op():
            if part.node_name:
                yield part.node_name, "node"
            yield from ((v.name, "attribute") for _, v in part.attributes if isinstance(v, Var))
        case _:
            pass


def depth(pattern: Pattern) -> int:
    """Return how many operators lie on the longest path through a pattern; a chain counts once."""
    below = max((depth(child) for child in pattern.children()), default=0)
    return below + isinstance(pattern, Op | Chain)


def operators(pattern: Pattern) -> frozenset[tuple[str, str]]:
    """Return (domain, op type) of the operators that every match contains."""
    if isinstance(pattern, Alternatives):
        return frozenset.intersection(*map(operators, pattern.choices))
    found = frozenset().union(*map(operators, pattern.children()))
    return found | {pattern.key} if isinstance(pattern, Op) else found


def mentioned(pattern: Pattern) -> frozenset[tuple[str, str]]:
    """Return every operator that a match may contain, in any of the choices."""
    found = frozenset[tuple[str, str]]().union(*map(mentioned, pattern.children()))
    if isinstance(pattern, Chain):
        return found | {*pattern.kinds}
    return found | {pattern.key} if isinstance(pattern, Op) else found


def roots(pattern: Pattern) -> tuple[Op | Together, ...]:
    """Return the choices of the root of a pattern.

    Raises:
        PatternError: the root of one is no operator.
    """
    choices = pattern.choices if isinstance(pattern, Alternatives) else (pattern,)
    found: list[Op | Together] = []
    for choice in choices:
        inner = choice.roots if isinstance(choice, Together) else (choice,)
        if not all(isinstance(root, Op) for root in inner):
            raise PatternError(f"{pattern} cannot be searched for: its root must be an operator")
        assert isinstance(choice, Op | Together)
        found.append(choice)
    return tuple(found)


# --- a pattern as text ----------------------------------------------------------------------------

_NAMES = {Var: "var", Opt: "opt", Rest: "rest"}


class _Printer:
    def __init__(self, pattern: Pattern) -> None:
        self.repeated = _repeated(pattern)
        self.taken = {part.name for part in pattern.walk() if isinstance(part, Var | Opt | Rest)}
        self.names: dict[int, str] = {}

    def text(self, pattern: Pattern) -> str:
        if not isinstance(pattern, Op | Chain) or id(_same(pattern)) not in self.repeated:
            return self.written(pattern)
        same = _same(pattern)
        if id(same) in self.names:
            text = self.names[id(same)]
        else:
            inner = self.written(same)
            self.names[id(same)] = self.fresh(same.node_name or "h")
            text = f"({self.names[id(same)]} := {inner})"
        if pattern is same:
            return text
        output = f".out({pattern.output})" if isinstance(pattern, Op) else ""
        return f"{text}{output}{''.join(map(str, pattern.conditions))}"

    def fresh(self, base: str) -> str:
        name, number = base, 2
        while name in self.taken:
            name, number = f"{base}{number}", number + 1
        self.taken.add(name)
        return name

    def written(self, pattern: Pattern) -> str:
        conditions = "".join(map(str, pattern.conditions))
        match pattern:
            case Var() | Opt() | Rest():
                return f"{_NAMES[type(pattern)]}.{pattern.name}{conditions}"
            case Anything():
                return "..."
            case Const():
                return f"{_const(pattern)}{conditions}"
            case Op():
                return f"{self.op(pattern)}{conditions}"
            case Chain():
                kinds = " | ".join(map(operator_text, pattern.kinds))
                inner = f"chain({kinds}, {self.text(pattern.end)})"
                return f"{inner}{_suffix(pattern)}{conditions}"
            case Alternatives():
                return self.joined(" | ", pattern.choices, (Together,))
            case Together():
                return self.joined(" & ", pattern.roots, (Alternatives,))
            case _:
                raise AssertionError(pattern)

    def joined(
        self, sign: str, parts: Iterable[Pattern], bracketed: tuple[type[Pattern], ...]
    ) -> str:
        return sign.join(
            f"({self.text(part)})" if isinstance(part, bracketed) else self.text(part)
            for part in parts
        )

    def op(self, pattern: Op) -> str:
        parts = [self.text(operand) for operand in pattern.operands]
        parts += [f"{name}={_attribute(value)}" for name, value in pattern.attributes]
        if pattern.any_attributes:
            parts.append('attrs="ignored"' if pattern.ignores_attributes else "attrs=...")
        output = f".out({pattern.output})" if pattern.output else ""
        return f"{operator_text(pattern.key)}({', '.join(parts)}){_suffix(pattern)}{output}"


def _repeated(pattern: Pattern) -> set[int]:
    """Return the ids of the operators that occur several times in a pattern."""
    seen: set[int] = set()
    repeated: set[int] = set()
    pending = [pattern]
    while pending:
        part = pending.pop()
        if isinstance(part, Op | Chain):
            key = id(_same(part))
            if key in seen:
                repeated.add(key)
                continue
            seen.add(key)
        pending += part.children()
    return repeated


def _same(part: Op | Chain) -> Op | Chain:
    return part.identity if isinstance(part, Op) else part


def operator_text(key: tuple[str, str]) -> str:
    """Return an operator as patterns name it: `op.Add`, `op('com.microsoft').Gelu`."""
    domain, op_type = key
    return f"op({domain!r}).{op_type}" if domain else f"op.{op_type}"


def _suffix(pattern: Op | Chain) -> str:
    shared = ".shared()" if pattern.is_shared else ""
    return shared + (f".bind({pattern.node_name!r})" if pattern.node_name else "")


def _const(pattern: Const) -> str:
    if pattern.is_literal:
        return repr(pattern.expected)
    parts = []
    if pattern.predicate is not None:
        parts.append(getattr(pattern.predicate, "__name__", "predicate"))
    elif pattern.dtype:
        parts.append(f"np.array({_lists(pattern.expected)!r}, {pattern.dtype!r})")
    elif pattern.expected is not None:
        parts.append(repr(_lists(pattern.expected)))
    if pattern.rtol:
        parts.append(f"rtol={pattern.rtol!r}")
    if pattern.name:
        parts.append(f"name={pattern.name!r}")
    return f"const({', '.join(parts)})"


def _lists(expected: Any) -> Any:
    return [_lists(item) for item in expected] if isinstance(expected, tuple) else expected


def _attribute(value: Any) -> str:
    if value is ...:
        return "..."
    if isinstance(value, Pattern):
        return str(value)
    if isinstance(value, tuple):
        return repr(list(value))
    return getattr(value, "__name__", "predicate") if callable(value) else repr(value)
