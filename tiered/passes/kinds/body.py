"""The body of a pass: its rule or function, its conditions, and the operators it looks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from tiered.graph import Model
from tiered.graph.core.analysis import analysis
from tiered.graph.core.edit import KEEPS_OPERATORS
from tiered.passes.base import Pass
from tiered.passes.conditions import NO_CONDITIONS, Conditions
from tiered.passes.interface.pass_info import PassInfo
from tiered.rewriter import Rule

Operators = tuple[frozenset[tuple[str, str]], ...]
"""Sets of operators as (domain, op type)."""

FUNCTION: Final = "function"
"""The word of `matches` for a local function, which takes the place of an operator."""

BODY: Final = "body"
"""The word for a body: of If, Loop and Scan, or of an operator that only a runtime knows."""


class Body:
    """The implementation of a pass: its rule or function, and its conditions.

    Args:
        work: the rule or the function.
        conditions: its preconditions and postconditions.
        matches: operators, as "Conv" and "com.microsoft::BiasGelu", "function" or "body": a
            model without any of them has no work for the function. Empty if that is not known.
    """

    def __init__(
        self,
        work: Any,
        conditions: Conditions = NO_CONDITIONS,
        matches: Iterable[str] = (),
    ) -> None:
        self._work = work
        self.conditions = conditions
        self._matches = tuple(matches)

    @property
    def work(self) -> Any:
        """The rule or the function."""
        return self._work

    @cached_property
    def operators(self) -> Operators | None:
        """Alternatives of required operators: a model has work only if it contains all of one set.

        None if every model may have work, as with conditions, which are always checked.
        """
        if self.conditions:
            return None
        if isinstance(self.work, Rule):
            return self.work.operators
        return tuple(frozenset({key_of(name)}) for name in self._matches) or None

    def may_act(self, model: Model) -> bool:
        """Return whether a model, its bodies and local functions may have work for the pass."""
        if self.operators is None:
            return True
        present = model.analysis(operators_in)
        return any(needed <= present for needed in self.operators)


@analysis(survives=KEEPS_OPERATORS)
def operators_in(model: Model) -> frozenset[tuple[str, str]]:
    """Return the operators of a model, its bodies and functions, and the words for those two."""
    graphs = [*model.graphs()]
    found = {key for graph in graphs for key, nodes in graph._by_op.items() if nodes}
    if model.functions:
        found.add(key_of(FUNCTION))
    if any(graph.parent_node is not None for graph in graphs):
        found.add(key_of(BODY))
    return frozenset(found)


def key_of(name: str) -> tuple[str, str]:
    """Return (domain, op type) of an operator as it is written: "com.microsoft::BiasGelu"."""
    domain, _, op_type = name.rpartition("::")
    return domain, op_type


class BodyPass(Pass):
    """A pass with a body, which may be loaded at its first run."""

    body: Body

    def __init__(self, *, info: PassInfo, options: Mapping[str, Any], body: Body) -> None:
        super().__init__(info=info, options=options)
        vars(self).update(body=body)

    @property
    def conditions(self) -> Conditions:
        """The conditions of the pass."""
        return self.body.conditions

    def may_act(self, model: Model) -> bool:
        """Return whether the model has the operators that the pass looks for."""
        return self.body.may_act(model)
