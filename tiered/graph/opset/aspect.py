"""What is known of operators: a registry for each aspect, all of one kind.

An aspect is one question that a part of the project asks of operators: the types of their outputs,
their gradient, how a cut passes through. `tiered/analysis/aspects.py` lists them, and
`tiered operators` prints which operators have which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from tiered.support.errors import UsageError
from tiered.support.operator_name import operator_name

if TYPE_CHECKING:
    from tiered.graph.core.node import Node

Key = tuple[str, str]
"""The domain and the name of an operator."""

REGISTERED_IN: Final[set[str]] = set()
"""The modules that have registered rules."""

T = TypeVar("T")
AnyRule = TypeVar("AnyRule")


class Aspect(Generic[T]):
    """The rules of one aspect by operator; `find((domain, op_type))` is the fastest look-up.

    Attributes:
        name: what messages call a rule: "range" of "range rule".
        decorator: the name under which its `rule` is public.
        rules: the rules by domain and operator.
        entry: makes the entry of a function, where more than the function is known of a rule.
        find: the rule of a domain and an operator; None if there is none.
    """

    __slots__ = ("decorator", "entry", "find", "name", "rules")

    def __init__(
        self, name: str, decorator: str | None = None, *, entry: Callable[..., T] | None = None
    ) -> None:
        self.name = name
        self.decorator = decorator or f"{name}_rule"
        self.entry = entry
        self.rules: dict[Key, T] = {}
        self.find = self.rules.get

    def of(self, node: Node) -> T | None:
        """Return the rule of the operator of a node; None if there is none."""
        return self.find((node.domain, node.op_type))

    def rule(
        self, *op_types: str, domain: str | Sequence[str] = "", **known: Any
    ) -> Callable[[AnyRule], AnyRule]:
        """Register the decorated function as the rule of operators.

            @RANGES.rule("Scale", domain="my.domain")
            def scale(call): ...

        Args:
            op_types: the operators.
            domain: their domain, or several; "" is onnx's own.
            known: what `entry` takes beside the function.

        Raises:
            UsageError: no operator is named, or one has a rule already.
        """
        if not op_types or not all(isinstance(op_type, str) for op_type in op_types):
            raise UsageError(f"{self.decorator} takes names of operators, not {op_types!r}")

        def register(rule: AnyRule) -> AnyRule:
            made = cast("T", rule) if self.entry is None else self.entry(rule, **known)
            self.put(op_types, domain, made)
            return rule

        return register

    def put(self, op_types: Iterable[str], domain: str | Sequence[str], entry: T) -> None:
        """Register one entry for operators: for all of them, or for none.

        Raises:
            UsageError: one has an entry already.
        """
        domains = (domain,) if isinstance(domain, str) else domain
        keys = [(each, op_type) for each in domains for op_type in op_types]
        for key in keys:
            if key in self.rules:
                name = operator_name(*key)
                raise UsageError(f"there is a {self.name} rule for {name} already")
        self.rules.update(dict.fromkeys(keys, entry))
        REGISTERED_IN.update(function.__module__ for function in functions_of(entry))

    def remove(self, op_type: str, domain: str = "") -> None:
        """Remove the rule of an operator, if there is one, as tests do."""
        self.rules.pop((domain, op_type), None)


def functions_of(entry: object) -> Iterator[FunctionType]:
    """Yield the functions of an entry, in the order of its parts."""
    if isinstance(entry, FunctionType):
        yield entry
    elif isinstance(entry, partial):
        yield from functions_of(entry.func)
    elif isinstance(entry, tuple):
        for part in entry:
            yield from functions_of(part)
