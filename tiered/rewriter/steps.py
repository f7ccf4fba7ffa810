"""The steps of a compiled pattern: closures that are linked once and run at every candidate.

See `compile` for how they work together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tiered.graph.opset.adapters import READ_ANEW
from tiered.graph.opset.newest_form import operands_of
from tiered.rewriter.pattern import (
    Alternatives,
    Anything,
    Chain,
    Const,
    OpPattern,
    Opt,
    Pattern,
    PatternError,
    Rest,
    VariablePattern,
)
from tiered.rewriter.registers import TAKEN, UNBOUND, RegisterMap, Registers

if TYPE_CHECKING:
    from tiered.graph.core.node import Node

Step = Callable[[Registers], bool]
Enter = Callable[["Node", Registers], bool]


class Linker:
    """Links the steps of one pattern, from the last one to the first.

    `attempted` and `matched` do nothing here: a linker that records a search overrides them.
    """

    def __init__(self) -> None:
        self.registers = RegisterMap()

    def attempted(self, pattern: Pattern, at: int | None, step: Step) -> Step:
        """Return the step that matches a pattern at register `at`; at any node if that is None."""
        return step

    def matched(self, pattern: Pattern, at: int, then: Step) -> Step:
        """Return the step that follows once register `at` matches a pattern, or its operator."""
        return then

    def value(self, pattern: Pattern, at: int, then: Step) -> Step:
        """Return the step that matches the value in register `at`."""
        match pattern:
            case Anything():
                return then
            case VariablePattern() | Opt():
                return self._bind(pattern, at, then)
            case Const():
                return self._const(pattern, at, then)
            case Alternatives():
                return self._alternatives(pattern, at, then)
            case OpPattern():
                return self._produced(pattern, at, then)
            case Chain():
                return self._chain(pattern, at, then)
            case _:
                raise PatternError(f"{pattern} cannot be an operand")

    def _bind(self, pattern: VariablePattern | Opt, at: int, then: Step) -> Step:
        register = self.registers.of_name(pattern.name)
        return self._keep_value(pattern, register, at, then)

    def _keep_value(self, pattern: Pattern, register: int, at: int, then: Step) -> Step:
        """Return the step that binds a value, or compares it with the bound one."""
        conditions = [(register, None, condition) for condition in pattern.conditions]
        self.registers.conditions += conditions
        is_optional = isinstance(pattern, Opt)

        def keep(registers: Registers) -> bool:
            value = registers[at]
            known = registers[register]
            if known is not UNBOUND:
                return known is value and then(registers)
            if value is None and not is_optional:
                return False
            registers[register] = value
            if then(registers):
                return True
            registers[register] = UNBOUND
            return False

        return keep

    def _const(self, pattern: Const, at: int, then: Step) -> Step:
        if pattern.name:
            then = self._keep_value(pattern, self.registers.of_name(pattern.name), at, then)
        elif pattern.conditions:
            then = self._keep_value(pattern, self.registers.new(), at, then)

        size = pattern.size

        def const(registers: Registers) -> bool:
            value = registers[at]
            tensor = None if value is None else value.tensor
            if tensor is None or tensor.is_sparse or (size is not None and tensor.size != size):
                return False
            return pattern.accepts(tensor.numpy()) and then(registers)

        return const

    def _alternatives(self, pattern: Alternatives, at: int, then: Step) -> Step:
        steps = [(choice, self.value(choice, at, then)) for choice in pattern.choices]
        by_key: dict[tuple[str, str], list[Step]] = {
            choice.key: [] for choice in pattern.choices if isinstance(choice, OpPattern)
        }
        others: list[Step] = []
        for choice, step in steps:
            if isinstance(choice, OpPattern):
                by_key[choice.key].append(step)
                continue
            others.append(step)
            for found in by_key.values():
                found.append(step)

        def alternatives(registers: Registers) -> bool:
            value = registers[at]
            producer = None if value is None else value.producer
            found = others
            if producer is not None:
                found = by_key.get((producer.domain, producer.op_type), others)
            for step in found:  # noqa: SIM110 - a generator costs more than the steps
                if step(registers):
                    return True
            return False

        return alternatives

    def _produced(self, pattern: OpPattern, at: int, then: Step) -> Step:
        enter = self.op(pattern, then)
        op_type, domain, output = pattern.op_type, pattern.domain, pattern.output

        def produced(registers: Registers) -> bool:
            value = registers[at]
            if value is None:
                return False
            node = value.producer
            return (
                node is not None
                and node.op_type == op_type
                and node.domain == domain
                and value.index == output
                and enter(node, registers)
            )

        return produced

    def op(self, pattern: OpPattern, then: Step) -> Enter:
        """Return the function that matches a node of the right operator."""
        patterns = pattern.operands
        register, kind = self.registers.of_node(pattern), self.registers.kind(pattern)
        load, first = self._operands(pattern)
        inner = then
        for index in range(len(patterns) - 1, -1, -1):
            inner = self._operand(patterns[index], first + index, inner)
        inner = self.matched(pattern, register, inner)
        is_commutative = pattern.is_commutative and not isinstance(patterns[-1], Rest)

        def enter(node: Node, registers: Registers) -> bool:
            known = registers[register]
            if known is not UNBOUND:
                return known is node and then(registers)
            taken = registers[TAKEN]
            earlier = taken.get(node.id)
            if earlier is not None and earlier != kind:
                return False
            operands = load(node)
            if operands is None:
                return False
            registers[register] = node
            taken[node.id] = kind
            registers[first : first + len(operands)] = operands
            if inner(registers):
                return True
            if is_commutative and len(node._inputs) == 2:
                registers[first], registers[first + 1] = operands[1], operands[0]
                if inner(registers):
                    return True
            registers[register] = UNBOUND
            if earlier is None:
                del taken[node.id]
            return False

        return enter

    def _operands(self, pattern: OpPattern) -> tuple[Callable[[Node], Sequence[Any] | None], int]:
        """Return the function that reads the operands of a node, and their first register."""
        patterns, count = pattern.operands, len(pattern.operands)
        last = patterns[-1] if patterns else None
        first = self.registers.new(max(count, 2))
        has_forms = not pattern.domain and pattern.op_type in READ_ANEW
        required = count - isinstance(last, Anything | Rest)
        is_rest = isinstance(last, Rest)
        is_open = isinstance(last, Anything | Rest)

        def load(node: Node) -> Sequence[Any] | None:
            operands = operands_of(node) if has_forms else node._inputs
            found = len(operands)
            if found == count and not is_rest:
                return operands
            if is_open:
                if found < required:
                    return None
                tail = (tuple(operands[required:]),) if is_rest else (None,)
                return (*operands[:required], *tail)
            # An absent operand is None; operands that the pattern does not name do not match.
            if found < count:
                return (*operands, *(None,) * (count - found))
            return None if any(more is not None for more in operands[count:]) else operands[:count]

        return load, first

    def _operand(self, pattern: Pattern, at: int, then: Step) -> Step:
        if isinstance(pattern, Rest):
            return self.attempted(pattern, at, self._rest(pattern, at, then))
        return self.attempted(pattern, at, self.value(pattern, at, self.matched(pattern, at, then)))

    def _rest(self, pattern: Rest, at: int, then: Step) -> Step:
        register = self.registers.of_name(pattern.name)

        def rest(registers: Registers) -> bool:
            values, known = registers[at], registers[register]
            if known is not UNBOUND:
                return bool(known == values) and then(registers)
            registers[register] = values
            if then(registers):
                return True
            registers[register] = UNBOUND
            return False

        return rest

    def _chain(self, pattern: Chain, at: int, then: Step) -> Step:
        register, below = self.registers.of_node(pattern), self.registers.new()
        end = self.matched(pattern, register, self._operand(pattern.end, below, then))
        kinds = frozenset(pattern.kinds)
        # If the end is no possible link, the chain can have only one length.
        is_definite = isinstance(pattern.end, OpPattern) and pattern.end.key not in kinds

        def chain(registers: Registers) -> bool:
            value, taken = registers[at], registers[TAKEN]
            known = registers[register]
            if known is not UNBOUND:
                registers[below] = known[-1]._inputs[0]
                return bool(value is known[0]._outputs[0]) and end(registers)
            links: list[Node] = []
            while value is not None and (node := value.producer) is not None:
                is_link = (node.domain, node.op_type) in kinds and value.index == 0
                if not is_link or node.id in taken or not node._inputs:
                    break
                links.append(node)
                taken[node.id] = -1
                value = node._inputs[0]
            while links:
                registers[below] = links[-1]._inputs[0]
                registers[register] = tuple(links)
                if end(registers):
                    return True
                del taken[links.pop().id]
                if is_definite:
                    break
            for node in links:
                del taken[node.id]
            registers[register] = UNBOUND
            return False

        return chain
