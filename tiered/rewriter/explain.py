"""Why a rule does not fire at a node: the furthest partial match, and what failed first.

This walks the pattern as it is written, slowly and in words; whether a rule fires is decided by the
matcher and the driver alone, which are asked first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tiered.graph.opset.newest_form import NoEquivalentForm
from tiered.rewriter.attributes import attributes_fit
from tiered.rewriter.driver import Approve, Filter, apply_rule
from tiered.rewriter.match import Match, match_node
from tiered.rewriter.pattern import (
    Alternatives,
    Anything,
    Chain,
    Const,
    Op,
    Opt,
    Pattern,
    Rest,
    Together,
    Var,
    roots,
)
from tiered.rewriter.rule import Rule
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph.api import Model
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

Verdict = Literal["fires", "declined", "no match"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The outcome of a rule at one node that its pattern may be anchored at.

    Attributes:
        node: its name, and `op_type` its operator.
        verdict: whether the rule fires there; `declined`: the pattern matches, and a guard fails.
        reason: the first condition that failed, "" if it fires.
        matched: the parts that matched before it, as `pattern: node`.
    """

    node: str
    op_type: str
    verdict: Verdict
    reason: str
    matched: tuple[str, ...] = ()


def explain_rule(
    rule: Rule,
    model: Model,
    options: Mapping[str, Any],
    accept: Filter | None = None,
    approve: Approve | None = None,
) -> list[Explanation]:
    """Return the outcome of a rule at each node that it may be anchored at; the model is unchanged.

    Args:
        rule: the law.
        model: the model.
        options: the keyword arguments of the rule's function.
        accept: called with each match, as by the driver; a Skip declines it.
        approve: called with the edits of each rewrite, as by the driver; a Skip declines it.
    """
    keys = {program.key for program in rule.programs}
    return [
        _explain(rule, model, options, accept, approve, node)
        for graph in model.graphs()
        for node in graph.topological_order()
        if (node.domain, node.op_type) in keys
    ]


def _explain(
    rule: Rule,
    model: Model,
    options: Mapping[str, Any],
    accept: Filter | None,
    approve: Approve | None,
    node: Node,
) -> Explanation:
    found = match_node(rule.programs, node)
    if found is None:
        reason, matched = _furthest(rule.pattern, node)
        return Explanation(node.label, node.op_type, "no match", reason, matched)
    if isinstance(found, Skip):
        _, matched = _furthest(rule.pattern, node)
        return Explanation(node.label, node.op_type, "declined", _blame(found, node), matched)
    matched = tuple(f"{pattern}: {_shown(each)}" for each, pattern in found.nodes.items())
    declined = _tried(rule, model, options, accept, approve, node)
    if declined is None:
        return Explanation(node.label, node.op_type, "fires", "", matched)
    return Explanation(node.label, node.op_type, "declined", declined, matched)


def _blame(reason: Skip, node: Node) -> str:
    """Return the guard, with the inputs of the anchor that it may be about."""
    shared = [
        repr(value.name)
        for value in node.inputs
        if value is not None and value.producer is not None and not value.has_one_user
    ]
    return f"{reason} ({', '.join(shared)})" if shared else str(reason)


def _tried(
    rule: Rule,
    model: Model,
    options: Mapping[str, Any],
    accept: Filter | None,
    approve: Approve | None,
    node: Node,
) -> str | None:
    """Run the driver at one node and undo it; return why it declined, None if it fired."""
    reasons: list[Skip] = []
    elsewhere = Skip("another node")

    def only_here(match: Match) -> Skip | None:
        if match.node is not node:
            return elsewhere
        return None if accept is None else accept(match)

    def declined(other: Node, reason: Skip) -> None:
        if other is node:
            reasons.append(reason)

    mark, count, limit = model.mark(), model.gate.count, model.gate.limit
    # One rewrite and no more: new nodes are not visited.
    model.gate.limit = count + 1
    try:
        apply_rule(
            rule,
            model,
            options,
            graphs=[node.owner],
            on_skip=declined,
            accept=only_here,
            approve=approve,
        )
        return None if model.gate.count > count else str(reasons[-1])
    finally:
        model.undo_to(mark)
        model.gate.count, model.gate.limit = count, limit


# --- the furthest partial match -------------------------------------------------------------------


def _furthest(pattern: Pattern, node: Node) -> tuple[str, tuple[str, ...]]:
    """Return the first failed condition of the furthest attempt, and the parts that matched."""
    search = _Search()
    for anchor in roots(pattern):
        parts = anchor.roots if isinstance(anchor, Together) else (anchor,)
        first = parts[0]
        assert isinstance(first, Op)
        if (node.domain, node.op_type) != first.key:
            continue
        for _ in search.op(first, node):
            if len(parts) > 1:
                search.fail(f"nothing beside it matches {parts[1]}")
            else:
                return "", tuple(search.matched)
    return search.reason, search.best


class _Search:
    """Matches a pattern and describes the attempt that came furthest."""

    def __init__(self) -> None:
        self.reason = "different operator"
        self.best: tuple[str, ...] = ()
        self.matched: list[str] = []
        self._progress = -1
        self._steps = 0
        self._bindings: dict[str, Any] = {}
        self._nodes: dict[Node, Pattern] = {}

    def fail(self, reason: str) -> None:
        """Record why the current attempt fails here."""
        if self._steps > self._progress:
            self._progress, self.reason = self._steps, reason
            self.best = tuple(self.matched)

    def _step(self, said: str | None = None) -> Iterator[None]:
        """Advance by one step until the caller resumes."""
        self._steps += 1
        if said is not None:
            self.matched.append(said)
        yield
        if said is not None:
            self.matched.pop()
        self._steps -= 1

    def value(self, pattern: Pattern, value: Value | None, where: str) -> Iterator[None]:
        """Yield once for each match of a value."""
        match pattern:
            case Anything():
                yield
            case Var() | Opt():
                yield from self._bind(pattern, value, where)
            case Const():
                yield from self._const(pattern, value, where)
            case Alternatives(choices=choices):
                for choice in choices:
                    yield from self.value(choice, value, where)
            case Op():
                yield from self._produced(pattern, value, where)
            case Chain():
                yield from self._chain(pattern, value, where)
            case _:
                raise AssertionError(pattern)

    def _bind(self, pattern: Var | Opt, value: Value | None, where: str) -> Iterator[None]:
        name = pattern.name
        if value is None and isinstance(pattern, Var):
            self.fail(f"{where} is absent; {pattern} needs a value")
        elif name in self._bindings:
            if self._bindings[name] is value:
                yield from self._step()
            else:
                known = _value(self._bindings[name])
                self.fail(f"{where} is {_value(value)}, but {pattern} is {known} already")
        elif self._conditions_hold(pattern, value, where):
            self._bindings[name] = value
            yield from self._step()
            del self._bindings[name]

    def _const(self, pattern: Const, value: Value | None, where: str) -> Iterator[None]:
        array = None if value is None or value.tensor is None else value.const
        if array is None:
            self.fail(f"{where}, {_value(value)}, is not constant; expected {pattern}")
        elif not pattern.accepts(array):
            text = str(array.tolist()) if array.size <= 8 else f"{array.size} numbers"
            self.fail(f"{where}, {_value(value)}, is {text}; expected {pattern}")
        elif pattern.name:
            bound: Any = Var(pattern.name, conditions=pattern.conditions)
            yield from self._bind(bound, value, where)
        elif self._conditions_hold(pattern, value, where):
            yield from self._step()

    def _produced(self, pattern: Op, value: Value | None, where: str) -> Iterator[None]:
        producer = None if value is None else value.producer
        if value is None or producer is None:
            self.fail(f"{where}, {_value(value)}, is computed by no node; expected {pattern}")
        elif (producer.domain, producer.op_type) != pattern.key:
            self.fail(f"{where} comes from {_shown(producer)}; expected {pattern}")
        elif value.index != pattern.output:
            self.fail(
                f"{where} is output {value.index} of {_shown(producer)}; "
                f"expected output {pattern.output}"
            )
        else:
            yield from self.op(pattern, producer)

    def op(self, pattern: Op, node: Node) -> Iterator[None]:
        """Yield once for each match of a node of the right operator."""
        if node in self._nodes:
            if self._nodes[node] == pattern:
                yield
            else:
                self.fail(f"{_shown(node)} matches {self._nodes[node]} already")
            return
        if (operands := self._operands(pattern, node)) is None:
            return
        if (reason := self._attribute_reason(pattern, node)) is not None:
            self.fail(reason)
            return
        output = node.outputs[pattern.output] if pattern.output < len(node.outputs) else None
        if not self._conditions_hold(pattern, output, _shown(node), node):
            return
        self._nodes[node] = pattern
        for _ in self._step(f"{pattern}: {_shown(node)}"):
            yield from self._all(pattern, node, operands)
            if pattern.is_commutative and len(operands) == 2:
                yield from self._all(pattern, node, operands[::-1])
        del self._nodes[node]

    def _operands(self, pattern: Op, node: Node) -> Sequence[Value | None] | None:
        try:
            operands = node.operands
        except NoEquivalentForm as error:
            self.fail(f"{_shown(node)}: {error}")
            return None
        wanted = pattern.operands
        if wanted and isinstance(wanted[-1], Anything | Rest):
            if len(operands) >= len(wanted) - 1:
                return operands
            fits = f"at least {len(wanted) - 1}"
        elif all(operand is None for operand in operands[len(wanted) :]):
            return operands
        else:
            fits = str(len(wanted))
        self.fail(f"{_shown(node)} has {len(operands)} operands; {pattern} takes {fits}")
        return None

    def _all(
        self, pattern: Op, node: Node, operands: Sequence[Value | None], at: int = 0
    ) -> Iterator[None]:
        if at == len(pattern.operands):
            yield
            return
        wanted, where = pattern.operands[at], f"operand {at} of {_shown(node)}"
        if isinstance(wanted, Rest):
            self._bindings[wanted.name] = tuple(operands[at:])
            yield from self._step()
            del self._bindings[wanted.name]
            return
        operand = operands[at] if at < len(operands) else None
        for _ in self.value(wanted, operand, where):
            yield from self._all(pattern, node, operands, at + 1)

    def _chain(self, pattern: Chain, value: Value | None, where: str) -> Iterator[None]:
        links: list[Node] = []
        node = None if value is None else value.producer
        while node is not None and (node.domain, node.op_type) in pattern.kinds and node.inputs:
            links.append(node)
            first = node.inputs[0]
            node = None if first is None else first.producer
        if not links:
            self.fail(f"{where}, {_value(value)}, ends no chain; expected {pattern}")
        while links:
            last = links.pop()
            for _ in self._step(f"{pattern}: {len(links) + 1} nodes down to {_shown(last)}"):
                yield from self.value(pattern.end, last.inputs[0], f"operand 0 of {_shown(last)}")

    # --- attributes and conditions ----------------------------------------------------------------

    def _attribute_reason(self, pattern: Op, node: Node) -> str | None:
        """Return which attribute does not match."""

        def fits(attributes: tuple[tuple[str, Any], ...], rest: bool) -> bool:
            asked = dataclasses.replace(pattern, attributes=attributes, any_attributes=rest)
            return attributes_fit(asked, node, dict(self._bindings)) is True

        for name, wanted in pattern.attributes:
            if not fits(((name, wanted),), True):
                return f"{_shown(node)} has {name}={node.attr(name)!r}; expected {_wanted(wanted)}"
        if fits(pattern.attributes, pattern.any_attributes):
            return None
        for name in node.attributes:
            if fits((*pattern.attributes, (name, ...)), False):
                return (
                    f"{_shown(node)} has {name}={node.attr(name)!r}, which {pattern} does not name"
                )
        return f"{_shown(node)} has attributes that {pattern} does not name"

    def _conditions_hold(
        self, pattern: Pattern, value: Value | None, where: str, node: Node | None = None
    ) -> bool:
        for condition in pattern.conditions:
            if condition.predicate is not None:
                subject: Any = value if node is None else node
                holds = subject is None or bool(condition.predicate(subject))
            else:
                holds = value is None or condition.holds(value)
            if not holds:
                self.fail(f"{where} is {_value(value)}; expected {condition}")
                return False
        return True


def _wanted(wanted: Any) -> str:
    if callable(wanted):
        return getattr(wanted, "__name__", "a value that a predicate accepts")
    return str(wanted) if isinstance(wanted, Pattern) else repr(wanted)


def _shown(node: Node) -> str:
    operator = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    return f"{operator} {node.label!r}"


def _value(value: Any) -> str:
    if value is None:
        return "absent"
    kind = f" ({value.type})" if getattr(value, "type", None) is not None else ""
    return f"{getattr(value, 'name', value)!r}{kind}"
