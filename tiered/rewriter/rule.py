"""Rules: a law, as a pattern and the function that returns its replacement."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tiered.rewriter.compile import Program
from tiered.rewriter.match import programs_of
from tiered.rewriter.pattern import (
    Chain,
    Key,
    OpPattern,
    Pattern,
    PatternError,
    Together,
    roots,
)
from tiered.support.loading import is_plain

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState


class Rule:
    """One law: a pattern, and the function that returns its replacement, or a Skip.

    Attributes:
        once: whether each node is visited once, instead of until the rule fires nowhere.

    Raises:
        PatternError: the function has a parameter that the pattern does not bind.
    """

    def __init__(
        self, name: str, pattern: Pattern, function: Callable[..., Any], law: str = ""
    ) -> None:
        self.name = name
        self.pattern = pattern
        self.function = function
        self.law = law
        self.once = False
        missing = set(self.parameters) - set(self.bound)
        if missing:
            raise PatternError(
                f"{self.name}: the pattern binds no {', '.join(sorted(missing))}; "
                f"it binds {', '.join(sorted(self.bound))}"
            )

    @cached_property
    def bound(self) -> frozenset[str]:
        """Return the names that may be parameters of the function."""
        return frozenset(self.pattern.bound) | {"node"}

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Return the parameter names of the function, after the graph."""
        if is_plain(self.function):
            code = self.function.__code__
            return code.co_varnames[1 : code.co_argcount]
        signature = inspect.signature(self.function)
        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = [p.name for p in signature.parameters.values() if p.kind is positional]
        return tuple(names[1:])

    @cached_property
    def keys(self) -> frozenset[Key]:
        """Return (domain, op type) of the nodes that a match may be anchored at."""
        choices = roots(self.pattern)
        anchors = (one.roots[0] if isinstance(one, Together) else one for one in choices)
        return frozenset(anchor.key for anchor in anchors if isinstance(anchor, OpPattern))

    @cached_property
    def operators(self) -> tuple[frozenset[Key], ...]:
        """Return the operators that each choice of the root needs in order to match."""
        return tuple([choice.operators for choice in roots(self.pattern)])

    def missing_operators(self, model: ModelState) -> list[frozenset[Key]]:
        """Return, for each choice of the root, its operators that a model does not have."""
        indices = [graph._by_op for graph in model.graphs()]
        wanted = frozenset[Key]().union(*self.operators)
        absent = {key for key in wanted if not any(index.get(key) for index in indices)}
        return [needed & absent for needed in self.operators]

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """Return the compiled pattern."""
        return programs_of(self.pattern)

    @cached_property
    def reach(self) -> int:
        """Return the largest distance from an edited node down to an anchor that it affects."""
        return self.pattern.depth

    @cached_property
    def links(self) -> frozenset[Key]:
        """Return the operators of the chains of the pattern."""
        chains = (part for part in self.pattern.walk() if isinstance(part, Chain))
        return frozenset(key for chain in chains for key in chain.kinds)

    @cached_property
    def has_several_roots(self) -> bool:
        return any(isinstance(part, Together) for part in self.pattern.walk())
