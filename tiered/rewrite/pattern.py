"""The pattern language: laws written as operator calls, checked against `onnx.defs` at import.

    op.Reshape(op.Reshape(var.x, ...), var.shape)

Patterns speak the newest form of each operator and are strict: an attribute that is not named must
have its schema default, operands must agree in number, and values inside the match must have no
other user. Loosening is spelled out: `...`, `opt.bias`, `attrs=...`, `.shared()`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiered.graph.schema import input_names, schema_of

COMMUTATIVE = frozenset(
    {"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Max", "Mean", "Min", "Mul",
     "Or", "Sum", "Xor"}
)  # fmt: skip
"""Operators of the default domain whose two operands are matched in either order."""


class PatternError(TypeError):
    """A pattern that the operator schemas contradict; raised where the pattern is written."""


class Pattern:
    """Something that matches a value."""

    def __or__(self, other: Pattern) -> Alternatives:
        mine = self.choices if isinstance(self, Alternatives) else (self,)
        others = other.choices if isinstance(other, Alternatives) else (other,)
        return Alternatives((*mine, *others))

    def children(self) -> Iterator[Pattern]:
        """Yield the patterns right inside this one."""
        return iter(())

    def walk(self) -> Iterator[Pattern]:
        """Yield this pattern and all that it contains."""
        yield self
        for child in self.children():
            yield from child.walk()


@dataclass(frozen=True)
class Var(Pattern):
    """`var.x`: any value; the same variable twice must be the same value."""

    name: str

    def __str__(self) -> str:
        return f"var.{self.name}"


@dataclass(frozen=True)
class Opt(Pattern):
    """`opt.bias`: an optional operand, None where it is absent."""

    name: str

    def __str__(self) -> str:
        return f"opt.{self.name}"


@dataclass(frozen=True)
class Rest(Pattern):
    """`rest.inputs`: all remaining operands as a tuple; only at the end."""

    name: str

    def __str__(self) -> str:
        return f"rest.{self.name}"


@dataclass(frozen=True)
class Anything(Pattern):
    """`...`: one operand or, at the end, all that remain."""

    def __str__(self) -> str:
        return "..."


@dataclass(frozen=True)
class Const(Pattern):
    """`const(0.5)`: a constant; see `const`."""

    expected: Any = None
    predicate: Callable[[np.ndarray[Any, Any]], bool] | None = None
    rtol: float = 0.0
    name: str = ""

    def accepts(self, array: np.ndarray[Any, Any]) -> bool:
        """Tell whether the numbers of a constant are what is asked for."""
        if self.predicate is not None:
            return bool(self.predicate(array))
        if self.expected is None:
            return True
        wanted = np.asarray(self.expected)
        if array.size != wanted.size or array.dtype.kind in "OSU":
            return False
        got = array.reshape(wanted.shape)
        if self.rtol:
            return bool(np.allclose(got.astype(np.float64), wanted, rtol=self.rtol, atol=0.0))
        return bool(np.array_equal(got, wanted.astype(array.dtype)))

    def __str__(self) -> str:
        parts = []
        if self.predicate is not None:
            parts.append(getattr(self.predicate, "__name__", "predicate"))
        elif self.expected is not None:
            parts.append(repr(self.expected))
        if self.rtol:
            parts.append(f"rtol={self.rtol!r}")
        if self.name:
            parts.append(f"name={self.name!r}")
        return f"const({', '.join(parts)})"


@dataclass(frozen=True)
class Alternatives(Pattern):
    """`a | b`: the first of the choices that matches."""

    choices: tuple[Pattern, ...]

    def children(self) -> Iterator[Pattern]:
        return iter(self.choices)

    def __str__(self) -> str:
        return " | ".join(str(choice) for choice in self.choices)


@dataclass(frozen=True)
class Op(Pattern):
    """`op.Conv(var.x, var.weight, opt.bias, group=1)`: one operator with its operands."""

    op_type: str
    domain: str
    operands: tuple[Pattern, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    any_attributes: bool = False
    is_shared: bool = False
    node_name: str = ""
    output: int = 0
    # Both orders of two operands are tried; None while the schema decides.
    key: tuple[str, str] = field(init=False, compare=False, repr=False, default=("", ""))

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.domain, self.op_type))

    def shared(self) -> Op:
        """Return the pattern of a node whose output may have other users: the rewrite keeps it."""
        return dataclasses.replace(self, is_shared=True)

    def bind(self, name: str) -> Op:
        """Return the pattern that gives the matched node to the rewrite under a name."""
        return dataclasses.replace(self, node_name=name)

    def out(self, index: int) -> Op:
        """Return the pattern of another output than the first."""
        return dataclasses.replace(self, output=index)

    @property
    def is_commutative(self) -> bool:
        return not self.domain and self.op_type in COMMUTATIVE and len(self.operands) == 2

    def children(self) -> Iterator[Pattern]:
        return iter(self.operands)

    def __str__(self) -> str:
        parts = [str(operand) for operand in self.operands]
        parts += [f"{name}={_show(value)}" for name, value in self.attributes]
        if self.any_attributes:
            parts.append("attrs=...")
        prefix = f"op({self.domain!r})" if self.domain else "op"
        suffix = f".out({self.output})" if self.output else ""
        suffix += ".shared()" if self.is_shared else ""
        suffix += f".bind({self.node_name!r})" if self.node_name else ""
        return f"{prefix}.{self.op_type}({', '.join(parts)}){suffix}"


def _show(value: Any) -> str:
    return str(value) if isinstance(value, Pattern) else repr(value)


class _Names:
    """`var.x`: makes patterns by attribute access."""

    def __init__(self, kind: Callable[[str], Pattern]) -> None:
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._kind(name)


class _Ops:
    """`op.Conv(...)`; `op("com.microsoft").Gelu(...)` for another domain."""

    def __init__(self, domain: str = "") -> None:
        self._domain = domain

    def __call__(self, domain: str) -> _Ops:
        return _Ops(domain)

    def __getattr__(self, op_type: str) -> Callable[..., Op]:
        if op_type.startswith("__"):
            raise AttributeError(op_type)
        domain = self._domain

        def build(*operands: Any, attrs: Any = None, **attributes: Any) -> Op:
            if attrs is not None and attrs is not ...:
                raise PatternError(f"op.{op_type}: attrs takes only ..., for any attributes")
            pattern = Op(
                op_type,
                domain,
                tuple(_operand(operand) for operand in operands),
                tuple(sorted(attributes.items())),
                any_attributes=attrs is ...,
            )
            _check(pattern)
            return pattern

        return build


def _operand(operand: Any) -> Pattern:
    if operand is ...:
        return Anything()
    if isinstance(operand, Pattern):
        return operand
    if isinstance(operand, bool | int | float):
        return Const(operand)
    raise PatternError(f"{operand!r} is no operand; expected a pattern, a number or ...")


def _check(pattern: Op) -> None:
    """Hold a pattern against the newest schema of its operator."""
    schema = schema_of(pattern.op_type, pattern.domain)
    if schema is None:
        if pattern.domain == "":
            raise PatternError(f"onnx has no operator {pattern.op_type!r}")
        return
    what = f"op.{pattern.op_type}"
    known = sorted(schema.attributes)
    for name, _ in pattern.attributes:
        if name not in schema.attributes:
            raise PatternError(f"{what} has no attribute {name!r}; it has {', '.join(known)}")
    operands = pattern.operands
    for operand in operands[:-1]:
        if isinstance(operand, Rest):
            raise PatternError(f"{what}: {operand} may only be the last operand")
    is_open = bool(operands) and isinstance(operands[-1], Anything | Rest)
    if len(operands) > schema.max_input or (len(operands) < schema.min_input and not is_open):
        names = ", ".join(input_names(schema))
        raise PatternError(f"{what} takes {names}; the pattern gives {len(operands)} operands")


def const(
    expected: Any = None,
    *,
    rtol: float = 0.0,
    name: str = "",
) -> Const:
    """Return the pattern of a constant.

    Args:
        expected: a number or nested list that the constant must equal, in its own dtype and with as
            many elements (so a scalar matches shapes [] and [1]); or a predicate of the array; or
            None for any constant.
        rtol: relative tolerance on `expected`, without an absolute one.
        name: binds the value, as a variable would.
    """
    if callable(expected):
        return Const(predicate=expected, name=name)
    return Const(expected, rtol=rtol, name=name)


op = _Ops()
var = _Names(Var)
opt = _Names(Opt)
rest = _Names(Rest)


def variables(pattern: Pattern) -> Mapping[str, str]:
    """Return what a pattern binds: name to kind ("value", "values", "attribute", "node")."""
    found: dict[str, str] = {}
    for part in pattern.walk():
        match part:
            case Var(name) | Opt(name):
                found[name] = "value"
            case Rest(name):
                found[name] = "values"
            case Const(name=name) if name:
                found[name] = "value"
            case Op():
                if part.node_name:
                    found[part.node_name] = "node"
                for _, value in part.attributes:
                    if isinstance(value, Var):
                        found[value.name] = "attribute"
            case _:
                pass
    return found


def depth(pattern: Pattern) -> int:
    """Return how many operators lie on the longest path through the pattern."""
    below = max((depth(child) for child in pattern.children()), default=0)
    return below + isinstance(pattern, Op)


def roots(pattern: Pattern) -> tuple[Op, ...]:
    """Return the operators that a match may be anchored at."""
    choices = pattern.choices if isinstance(pattern, Alternatives) else (pattern,)
    anchors = tuple(choice for choice in choices if isinstance(choice, Op))
    if len(anchors) != len(choices):
        raise PatternError(f"{pattern} cannot be searched for: its root must be an operator")
    return anchors
