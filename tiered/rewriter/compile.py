"""The pattern compiler: a pattern becomes a program, which searches from one node, its anchor.

The matcher is three files. `registers` allocates: each name, each node and each operand of the
pattern gets a register, an index into the list `Registers` that one search fills. `steps` links:
each part of the pattern becomes a step, a closure `(registers) -> bool` that checks one operand,
writes what it binds into registers and calls the next step; if that returns False, it takes its
writes back and tries its next choice. So the search is depth-first with backtracking, and one call
returns True as soon as a match was accepted. This file assembles both to a `Program`:

    op.Mul(op.Sigmoid(var.x), var.x)   anchored at a Mul

    enter Mul      operands to registers 4 and 5; again with the two swapped, as Mul is commutative
    produced [4]   its producer must be a Sigmoid; the operand of that to register 7
    keep x [7]     x is unbound: bind it
    keep x [5]     x is bound: it must be the same value
    finish         compare attributes and conditions, then ask `accept`

Steps look only at the shape of the graph; attributes and conditions cost more and come last. A
program is linked when it first runs, as most programs never do: `starts_at` rejects most nodes by
the operators of their producers alone. A pattern of alternatives at its root has one program for
each, one of several roots (`a & b`) finds the other roots through the values that it binds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tiered.graph.opset.adapters import READ_ANEW
from tiered.rewriter.attribute_conditions import attributes_fit
from tiered.rewriter.pattern import (
    Alternatives,
    Chain,
    Const,
    OpPattern,
    Pattern,
    PatternError,
    Together,
    VariablePattern,
)
from tiered.rewriter.registers import ACCEPT, TAKEN, UNBOUND, Registers
from tiered.rewriter.skip import Skip
from tiered.rewriter.steps import Enter, Linker, Step
from tiered.rewriter.var_conditions import Condition

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value


class Program:
    """A compiled pattern that is anchored at one operator.

    Args:
        pattern: one choice of the root of a pattern.
        names: the names that the whole pattern binds; those of other choices are bound to None.
        linker: links its steps.

    Attributes:
        key: (domain, op type) of the nodes that it may be anchored at.
        roots: the registers of the nodes that the match is about.
        outputs: which output of each root it is about.
        registers: the registers of its names and nodes.
    """

    def __init__(
        self, pattern: OpPattern | Together, names: Iterable[str] = (), linker: Linker | None = None
    ) -> None:
        whole = pattern.roots if isinstance(pattern, Together) else (pattern,)
        self.pattern = pattern
        self.roots: list[int] = []
        self.outputs = tuple(root.output for root in whole if isinstance(root, OpPattern))
        self._all_names = tuple({**dict.fromkeys(names), **pattern.bound})
        self._linker = linker or Linker()
        self.registers = self._linker.registers
        first = whole[0]
        assert isinstance(first, OpPattern)
        self.domain, self.op_type = self.key = first.key
        for root in whole:
            assert isinstance(root, OpPattern)
            self.roots.append(self.registers.of_node(root))
        self._whole = whole
        self._needs, self._is_commutative = _needs_of(first), first.is_commutative

    def link(self) -> None:
        """Make the steps now.

        Raises:
            PatternError: the pattern cannot be searched for.
        """
        _ = self._enter

    @cached_property
    def _enter(self) -> Enter:
        """The steps, linked when the program first runs: most never do."""
        whole = self._whole
        then: Step = self._finish
        for at in range(len(whole) - 1, 0, -1):
            then = self._other_root(whole[:at], whole[at], then)
        first = whole[0]
        assert isinstance(first, OpPattern)
        return self._linker.op(first, then)

    def starts_at(self, node: Node) -> bool:
        """Return whether the node and the producers of its inputs admit a match here."""
        if node.op_type != self.op_type or node.domain != self.domain:
            return False
        inputs = node._inputs
        for swap in (0, 1) if self._is_commutative and len(inputs) == 2 else (0,):
            for index, need in self._needs:
                at = index ^ swap
                if not _has_producer(inputs[at] if at < len(inputs) else None, need):
                    break
            else:
                return True
        return False

    def run(self, node: Node, accept: Callable[[Registers], bool]) -> bool:
        """Search from an anchor; return whether a match was accepted."""
        enter = self._enter
        registers = [UNBOUND] * self.registers.size
        registers[TAKEN] = {}
        registers[ACCEPT] = accept
        return enter(node, registers)

    def bindings(self, registers: Registers) -> dict[str, Any] | Skip | None:
        """Return the value of each name of the pattern, None where a choice does not bind it.

        Returns:
            None if an attribute or a condition does not hold; a Skip if all attributes match but
            for one that the call of a local function decides.
        """
        found: dict[str, Any] = {}
        unknown: Skip | None = None
        for name, register in self.registers.names:
            value = registers[register]
            if value is not UNBOUND:
                found[name] = value
        for register, pattern in self.registers.ops:
            node = registers[register]
            if node is UNBOUND or isinstance(pattern, Chain):
                continue
            fits = attributes_fit(pattern, node, found)
            if fits is not True:
                if fits is False:
                    return None
                unknown = unknown or fits
        if unknown is not None:
            return unknown
        if self.registers.conditions and self.unmet_condition(registers) is not None:
            return None
        if len(found) < len(self._all_names):
            for name in self._all_names:
                found.setdefault(name)
        return found

    # --- several roots ----------------------------------------------------------------------------

    def _other_root(self, earlier: Sequence[Pattern], root: Pattern, then: Step) -> Step:
        """Return the step that finds another root from a node or variable of the earlier ones."""
        assert isinstance(root, OpPattern)
        ops = (part for one in earlier for part in one.walk() if isinstance(part, OpPattern))
        known = {id(part.identity) for part in ops}
        names = {
            part.name for one in earlier for part in one.walk() if isinstance(part, VariablePattern)
        }
        path = _path_up(root, known, names)
        if path is None:
            raise PatternError(f"{root} shares no variable and no node with the roots before it")
        leaf, keys = path
        assert isinstance(leaf, OpPattern | VariablePattern)
        is_node = isinstance(leaf, OpPattern)
        if isinstance(leaf, OpPattern):
            start = self.registers.of_node(leaf)
        else:
            start = self.registers.of_name(leaf.name)
        enter, anchor = self._linker.op(root, then), self.roots[0]

        def other_root(registers: Registers) -> bool:
            begin, graph = registers[start], registers[anchor].graph
            if begin is UNBOUND:
                return False
            if not keys:
                return enter(begin, registers)
            values = list(begin._outputs) if is_node else [begin]
            found: dict[int, Node] = {}
            for key in keys:
                readers = (user for v in values if v is not None for user in v._users.values())
                found = {
                    user.id: user
                    for user in readers
                    if (user.domain, user.op_type) == key and user.graph is graph
                }
                values = [output for _, user in sorted(found.items()) for output in user._outputs]
            return any(enter(node, registers) for _, node in sorted(found.items()))

        return self._linker.attempted(root, None, other_root)

    # --- the end ----------------------------------------------------------------------------------

    def _finish(self, registers: Registers) -> bool:
        accept: Callable[[Registers], bool] = registers[ACCEPT]
        return accept(registers)

    def unmet_condition(self, registers: Registers) -> Condition | None:
        """Return the first condition that a match does not meet."""
        for register, output, condition in self.registers.conditions:
            subject = registers[register]
            if subject is UNBOUND or subject is None:
                continue
            if condition.predicate is not None:
                holds = condition.predicate(subject)
            else:
                if output is not None:
                    node = subject[0] if isinstance(subject, tuple) else subject
                    subject = node._outputs[output]
                holds = condition.holds(subject)
            if not holds:
                return condition
        return None


_Need = frozenset[tuple[str, str]]

_CONSTANT: _Need = frozenset()
"""The value must be a constant."""


def _needs_of(pattern: OpPattern) -> tuple[tuple[int, _Need], ...]:
    """Return the quick checks of a pattern: operand indices with the producers they may have."""
    found = []
    for index, operand in enumerate(pattern.operands):
        if index and not pattern.domain and pattern.op_type in READ_ANEW:
            break  # in the model's opset it may be another operand
        choices = operand.choices if isinstance(operand, Alternatives) else (operand,)
        keys = [choice.key for choice in choices if isinstance(choice, OpPattern)]
        if len(keys) == len(choices):
            found.append((index, frozenset(keys)))
        elif all(isinstance(choice, Const) for choice in choices):
            found.append((index, _CONSTANT))
    return tuple(found)


def _has_producer(value: Value | None, need: _Need) -> bool:
    """Return whether a value has one of some producers, or is the constant that is needed."""
    if value is None:
        return False
    if need is _CONSTANT:
        return value.tensor is not None
    producer = value.producer
    return producer is not None and (producer.domain, producer.op_type) in need


def _path_up(
    pattern: Pattern, known: set[int], names: set[str]
) -> tuple[OpPattern | VariablePattern, list[tuple[str, str]]] | None:
    """Return a known part of a pattern, and the operators from it up to the root of the pattern.

    Only operands that are there in every match count: no alternatives, no chains.
    """
    if isinstance(pattern, VariablePattern):
        return (pattern, []) if pattern.name in names else None
    if not isinstance(pattern, OpPattern):
        return None
    if id(pattern.identity) in known:
        return pattern, []
    for operand in pattern.operands:
        found = _path_up(operand, known, names)
        if found is not None:
            return found[0], [*found[1], pattern.key]
    return None
