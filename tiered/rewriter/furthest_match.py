"""Why a rule does not fire at a node: the furthest partial match and its first failed condition.

The matcher and the driver decide whether a rule fires. Where its pattern does not match, the
matcher runs once more, with steps that record how far they came.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tiered.graph.core.value import Value
from tiered.graph.opset.newest_form import NoEquivalentForm, newest_form, operands_of
from tiered.rewriter.attribute_conditions import attributes_fit
from tiered.rewriter.compile import Program
from tiered.rewriter.driver import Approve, Filter, apply_rule
from tiered.rewriter.match import Match, match_node
from tiered.rewriter.pattern import (
    Alternatives,
    Anything,
    Chain,
    Const,
    OpPattern,
    Opt,
    Pattern,
    Rest,
    VariablePattern,
    roots,
)
from tiered.rewriter.registers import UNBOUND, Registers
from tiered.rewriter.rule import Rule
from tiered.rewriter.skip import Skip
from tiered.rewriter.steps import Linker, Step
from tiered.support.amounts import counted

if TYPE_CHECKING:
    from tiered.graph.api import Model
    from tiered.graph.core.node import Node

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
    question = _Question(rule, model, options, accept, approve)
    keys = {program.key for program in rule.programs}
    return [
        question.answer(node)
        for graph in model.graphs()
        for node in graph.topological_order()
        if (node.domain, node.op_type) in keys
    ]


@dataclass(frozen=True)
class _Question:
    """The arguments of `explain_rule`."""

    rule: Rule
    model: Model
    options: Mapping[str, Any]
    accept: Filter | None
    approve: Approve | None

    def answer(self, node: Node) -> Explanation:
        """Return the outcome at one node."""
        found = match_node(self.rule.programs, node)
        if isinstance(found, Match):
            matched = tuple(f"{pattern}: {_shown(each)}" for each, pattern in found.nodes.items())
            declined = self._tried(node)
            verdict: Verdict = "fires" if declined is None else "declined"
            return Explanation(node.label, node.op_type, verdict, declined or "", matched)
        reason, matched = _furthest(self.rule.pattern, node)
        if isinstance(found, Skip):
            return Explanation(node.label, node.op_type, "declined", _blame(found, node), matched)
        return Explanation(node.label, node.op_type, "no match", reason, matched)

    def _tried(self, node: Node) -> str | None:
        """Run the driver at one node and undo it; return why it declined, None if it fired."""
        reasons: list[Skip] = []
        elsewhere = Skip("another node")

        def only_here(match: Match) -> Skip | None:
            if match.node is not node:
                return elsewhere
            return None if self.accept is None else self.accept(match)

        def declined(other: Node, reason: Skip) -> None:
            if other is node:
                reasons.append(reason)

        model = self.model
        mark, count, limit = model.mark(), model.gate.count, model.gate.limit
        # One rewrite and no more: new nodes are not visited.
        model.gate.limit = count + 1
        try:
            apply_rule(
                self.rule,
                model,
                self.options,
                graphs=[node.owner],
                on_skip=declined,
                accept=only_here,
                approve=self.approve,
            )
            return None if model.gate.count > count else str(reasons[-1])
        finally:
            model.undo_to(mark)
            model.gate.count, model.gate.limit = count, limit


def _blame(reason: Skip, node: Node) -> str:
    """Return the guard, with the inputs of the anchor that it may be about."""
    shared = [
        repr(value.name)
        for value in node.inputs
        if value is not None and value.producer is not None and not value.has_one_user
    ]
    return f"{reason} ({', '.join(shared)})" if shared else str(reason)


# --- the furthest partial match -------------------------------------------------------------------


def _furthest(pattern: Pattern, node: Node) -> tuple[str, tuple[str, ...]]:
    """Return the first failed condition of the furthest attempt, and the parts that matched."""
    record = _Record()
    for anchor in roots(pattern):
        trace = _Trace(record)
        program = Program(anchor, linker=trace)
        if (node.domain, node.op_type) == program.key and trace.matches(program, node):
            break
    return record.reason, record.matched


@dataclass
class _Record:
    """The attempt that came furthest.

    Attributes:
        reason: the first condition that failed in it, "" if nothing failed.
        matched: the operators and chains that matched before, as `pattern: node`.
        progress: how many parts of the pattern matched before.
    """

    reason: str = "different operator"
    matched: tuple[str, ...] = ()
    progress: int = -1


class _MatchedPart(NamedTuple):
    """A matched part of a pattern, and the name of its match in messages."""

    pattern: Pattern
    subject: Value | Node | tuple[Node, ...] | None
    where: str


class _Trace(Linker):
    """Links the steps of the matcher such that they record the attempt that came furthest."""

    def __init__(self, record: _Record) -> None:
        super().__init__()
        self._record = record
        self._parts: list[_MatchedPart] = []
        self._operand_of: dict[int, tuple[int, int]] = {}  # register: that of the node, index

    def matches(self, program: Program, node: Node) -> bool:
        """Return whether the program matches at a node, guards aside."""

        def accept(registers: Registers) -> bool:
            if program.bindings(registers) is None:
                self._fail(lambda: self._unmet(program, registers))
                return False
            self._record.reason, self._record.matched = "", self._nodes()
            return True

        anchor = next(part for part in program.pattern.walk() if isinstance(part, OpPattern))
        if program.run(node, accept):
            return True
        self._fail(lambda: self._node_reason(anchor, node))
        return False

    def _fail(self, reason: Callable[[], str]) -> None:
        """Record why the search fails here, if no attempt came as far before."""
        if len(self._parts) > self._record.progress:
            self._record.progress = len(self._parts)
            self._record.reason, self._record.matched = reason(), self._nodes()

    def _nodes(self) -> tuple[str, ...]:
        parts = (part for part in self._parts if not isinstance(part.subject, Value | None))
        return tuple(f"{part.pattern}: {part.where}" for part in parts)

    # --- where the linker calls -------------------------------------------------------------------

    def _operands(self, pattern: OpPattern) -> tuple[Callable[[Node], Sequence[Any] | None], int]:
        load, first = super()._operands(pattern)
        owner = self.registers.of_node(pattern)
        for index in range(len(pattern.operands)):
            self._operand_of[first + index] = owner, index
        return load, first

    def attempted(self, pattern: Pattern, at: int | None, step: Step) -> Step:
        """Return the step that also records why it fails."""

        def attempt(registers: Registers) -> bool:
            if step(registers):
                return True
            self._fail(lambda: self._step_reason(pattern, at, registers))
            return False

        return attempt

    def matched(self, pattern: Pattern, at: int, then: Step) -> Step:
        """Return the step that also keeps the matched part while it runs."""
        if isinstance(pattern, Anything):
            return then

        def follow(registers: Registers) -> bool:
            self._parts.append(_MatchedPart(pattern, registers[at], self._where(at, registers)))
            try:
                return then(registers)
            finally:
                self._parts.pop()

        return follow

    def _where(self, at: int, registers: Registers) -> str:
        """Return the name of a register's content in messages."""
        subject = registers[at]
        if at in self._operand_of:
            owner, index = self._operand_of[at]
            return f"operand {index} of {_shown(registers[owner])}"
        if isinstance(subject, tuple):
            return f"{counted(len(subject), 'node')} down to {_shown(subject[-1])}"
        if not isinstance(subject, Value | None):
            return _shown(subject)
        chains = (part.subject for part in self._parts if isinstance(part.subject, tuple))
        last = next(chain[-1] for chain in chains if chain[-1].inputs[0] is subject)
        return f"operand 0 of {_shown(last)}"

    # --- reasons ----------------------------------------------------------------------------------

    def _step_reason(self, pattern: Pattern, at: int | None, registers: Registers) -> str:
        """Return why a step fails: why the value in its register does not match."""
        if at is None:
            return f"nothing beside it matches {pattern}"
        value, where = registers[at], self._where(at, registers)
        while isinstance(pattern, Alternatives):
            pattern = pattern.choices[0]
        producer: Any = getattr(value, "producer", None)
        match pattern:
            case Const() if not _is_constant(value):
                return f"{where}, {_value(value)}, is not constant; expected {pattern}"
            case Const() if not pattern.accepts(value.const):
                size, numbers = value.const.size, value.const.tolist()
                text = str(numbers) if size <= 8 else f"{size} numbers"
                return f"{where}, {_value(value)}, is {text}; expected {pattern}"
            case VariablePattern() if value is None:
                return f"{where} is absent; {pattern} needs a value"
            case VariablePattern() | Opt() | Const():
                known = registers[self.registers.of_name(pattern.name)]
                return f"{where} is {_value(value)}, but {pattern} is {_value(known)} already"
            case Rest():
                return f"{where} and those after it differ from those that {pattern} is already"
            case Chain():
                return f"{where}, {_value(value)}, ends no chain; expected {pattern}"
            case OpPattern() if producer is None:
                return f"{where}, {_value(value)}, is computed by no node; expected {pattern}"
            case OpPattern() if (producer.domain, producer.op_type) != pattern.key:
                return f"{where} comes from {_shown(producer)}; expected {pattern}"
            case OpPattern() if value.index != pattern.output:
                output = f"output {value.index} of {_shown(producer)}"
                return f"{where} is {output}; expected output {pattern.output}"
            case OpPattern():
                return self._node_reason(pattern, producer)
        raise AssertionError(pattern)

    def _node_reason(self, pattern: OpPattern, node: Node) -> str:
        """Return why a node of the right operator does not match."""
        for part in self._parts:
            if part.subject is node:
                return f"{_shown(node)} matches {part.pattern} already"
            if isinstance(part.pattern, OpPattern) and part.pattern.identity is pattern.identity:
                return f"{_shown(node)} is not {part.where}, which matches {pattern} already"
        count, fits = len(operands_of(node)), str(len(pattern.operands))
        if pattern.operands and isinstance(pattern.operands[-1], Anything | Rest):
            fits = f"at least {len(pattern.operands) - 1}"
        return f"{_shown(node)} has {counted(count, 'operand')}; {pattern} takes {fits}"

    def _unmet(self, program: Program, registers: Registers) -> str:
        """Return which attribute or condition does not hold in a match of all operators."""
        names = program.registers.names
        found = {name: registers[at] for name, at in names if registers[at] is not UNBOUND}
        for register, pattern in program.registers.ops:
            node = registers[register]
            if isinstance(pattern, OpPattern) and node is not UNBOUND:
                reason = _attribute_reason(pattern, node, found)
                if reason is not None:
                    return reason
        condition = program.unmet_condition(registers)
        for part in reversed(self._parts):
            if any(condition in each.conditions for each in part.pattern.walk()):
                node = part.subject[0] if isinstance(part.subject, tuple) else part.subject
                shown = node if isinstance(node, Value | None) else node.outputs[0]
                return f"{part.where} is {_value(shown)}; expected {condition}"
        raise AssertionError(condition)


def _attribute_reason(pattern: OpPattern, node: Node, bindings: dict[str, Any]) -> str | None:
    """Return which attribute of a node does not match; bind those that the pattern binds."""
    if attributes_fit(pattern, node, bindings) is not False:
        return None
    try:
        newest_form(node)
    except NoEquivalentForm as error:
        return f"{_shown(node)}: {error}"

    def fits(attributes: tuple[tuple[str, Any], ...], rest: bool) -> bool:
        asked = dataclasses.replace(pattern, attributes=attributes, any_attributes=rest)
        return attributes_fit(asked, node, dict(bindings)) is True

    for name, wanted in pattern.attributes:
        if not fits(((name, wanted),), True):
            return f"{_shown(node)} has {name}={node.attr(name)!r}; expected {_wanted(wanted)}"
    for name in node.attributes:
        if fits((*pattern.attributes, (name, ...)), False):
            return f"{_shown(node)} has {name}={node.attr(name)!r}, which {pattern} does not name"
    return f"{_shown(node)} has attributes that {pattern} does not name"


def _wanted(wanted: Any) -> str:
    if callable(wanted):
        return getattr(wanted, "__name__", "a value that a predicate accepts")
    return str(wanted) if isinstance(wanted, Pattern) else repr(wanted)


def _shown(node: Node) -> str:
    operator = node.operator
    return f"{operator} {node.label!r}"


def _value(value: Any) -> str:
    if value is None:
        return "absent"
    kind = f" ({value.type})" if getattr(value, "type", None) is not None else ""
    return f"{getattr(value, 'name', value)!r}{kind}"


def _is_constant(value: Value | None) -> bool:
    return value is not None and value.const is not None
