"""The body of a pass: what it runs, and what a model must hold for it to have anything to do."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tiered.passes.conditions import NO_CONDITIONS, Conditions
from tiered.rewriter import Rule

if TYPE_CHECKING:
    from tiered.graph import Model

Operators = tuple[frozenset[tuple[str, str]], ...]
"""Sets of operators as (domain, op type)."""


class Body:
    """What a pass runs: its rule, or its function, between its conditions.

    Args:
        work: the rule or the function.
        conditions: what it requires and ensures.
        looks_for: of a function the operators without any of which it has nothing to do, as
            "Conv" and "com.microsoft::BiasGelu"; none where that cannot be said.
    """

    def __init__(
        self,
        work: Any,
        conditions: Conditions = NO_CONDITIONS,
        looks_for: Iterable[str] = (),
    ) -> None:
        self._work = work
        self.conditions = conditions
        self._looks_for = tuple(looks_for)

    @property
    def work(self) -> Any:
        """The rule or the function."""
        return self._work

    @cached_property
    def operators(self) -> Operators | None:
        """The sets of operators of which a model must hold one whole; None where any model will do.

        Conditions are asked of every model, whatever it holds.
        """
        if self.conditions:
            return None
        if isinstance(self.work, Rule):
            return self.work.operators
        return tuple(frozenset({key_of(name)}) for name in self._looks_for) or None

    def may_act(self, model: Model) -> bool:
        """Tell whether there may be anything to do in a model, its bodies and local functions."""
        if self.operators is None:
            return True
        present = model.analysis(operators_in)
        return any(needed <= present for needed in self.operators)


def operators_in(model: Model) -> frozenset[tuple[str, str]]:
    """Return the operators of a model, of its bodies and of its local functions."""
    graphs = model.graphs()
    return frozenset(key for graph in graphs for key, nodes in graph._by_op.items() if nodes)


def key_of(name: str) -> tuple[str, str]:
    """Return (domain, op type) of an operator as it is written: "com.microsoft::BiasGelu"."""
    domain, _, op_type = name.rpartition("::")
    return domain, op_type
