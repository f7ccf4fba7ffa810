"""A pattern as text: what it was written as, which evaluates to an equal pattern."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tiered.rewriter.pattern import (
    Alternatives,
    Anything,
    Chain,
    Const,
    OpPattern,
    Opt,
    Pattern,
    Rest,
    Together,
    VariablePattern,
    operator_text,
)

_NAMES = {VariablePattern: "var", Opt: "opt", Rest: "rest"}


def printed(pattern: Pattern) -> str:
    """Return a pattern as it was written; what occurs several times gets a name there."""
    return _Printer(pattern).text(pattern)


class _Printer:
    def __init__(self, pattern: Pattern) -> None:
        self.repeated = _repeated(pattern)
        self.taken = {
            part.name for part in pattern.walk() if isinstance(part, VariablePattern | Opt | Rest)
        }
        self.names: dict[int, str] = {}

    def text(self, pattern: Pattern) -> str:
        if not isinstance(pattern, OpPattern | Chain) or id(_same(pattern)) not in self.repeated:
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
        output = f".out({pattern.output})" if isinstance(pattern, OpPattern) else ""
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
            case VariablePattern() | Opt() | Rest():
                return f"{_NAMES[type(pattern)]}.{pattern.name}{conditions}"
            case Anything():
                return "..."
            case Const():
                return f"{_const(pattern)}{conditions}"
            case OpPattern():
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

    def op(self, pattern: OpPattern) -> str:
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
        if isinstance(part, OpPattern | Chain):
            key = id(_same(part))
            if key in seen:
                repeated.add(key)
                continue
            seen.add(key)
        pending += part.children()
    return repeated


def _same(part: OpPattern | Chain) -> OpPattern | Chain:
    return part.identity if isinstance(part, OpPattern) else part


def _suffix(pattern: OpPattern | Chain) -> str:
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
