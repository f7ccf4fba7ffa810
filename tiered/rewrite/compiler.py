"""Patterns as programs: closures that are linked once and then run at every candidate.

A step looks at one operand, writes what it finds into registers, and calls the step after it; if
that says no, it takes its writes back and tries its next choice. The last step says whether a match
is wanted; if not, the search goes on. Only the shape of the graph is looked at on the way;
attributes and conditions, which cost more, come last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tiered.graph.form_table import CHANGES
from tiered.graph.forms import operands_of
from tiered.rewrite.attributes import attributes_fit
from tiered.rewrite.conditions import Condition
from tiered.rewrite.pattern import (
    Alternatives,
    Anything,
    Chain,
    Const,
    Op,
    Opt,
    Pattern,
    PatternError,
    Rest,
    Together,
    Var,
    variables,
)

if TYPE_CHECKING:
    from tiered.graph.node import Node

Registers = list[Any]
Step = Callable[[Registers], bool]
Enter = Callable[["Node", Registers], bool]

UNBOUND: Final[Any] = object()
TAKEN: Final = 0
"""The register that holds which node stands for which pattern."""
ACCEPT: Final = 1
"""The register that holds what is asked whether the search may end."""


class Program:
    """A compiled pattern that is anchored at one operator.

    Attributes:
        key: (domain, op type) of the nodes that it may be anchored at.
        roots: the registers of the nodes that the match is about.
        outputs: which output of each root it is about.
        ops: (register, pattern) of each operator and chain.
        names: (name, register) of all that is bound.
    """

    def __init__(self, pattern: Op | Together) -> None:
        whole = pattern.roots if isinstance(pattern, Together) else (pattern,)
        self.pattern = pattern
        self.roots: list[int] = []
        self.outputs = tuple(root.output for root in whole if isinstance(root, Op))
        self.ops: list[tuple[int, Op | Chain]] = []
        self.names: list[tuple[str, int]] = []
        self._all_names = tuple(variables(pattern))
        # Register, the output of the node there that a type is asked of, condition.
        self._conditions: list[tuple[int, int | None, Condition]] = []
        self._size = 2
        self._register_of: dict[Any, int] = {}
        self._kinds: dict[Pattern, int] = {}
        # Kept alive, so that no other pattern gets their ids.
        self._seen: dict[int, Pattern] = {}
        first = whole[0]
        assert isinstance(first, Op)
        self.domain, self.op_type = self.key = first.key
        for root in whole:
            assert isinstance(root, Op)
            self.roots.append(self._node_register(root))
        then: Step = self._finish
        for at in range(len(whole) - 1, 0, -1):
            then = self._other_root(whole[:at], whole[at], then)
        self._enter = self._op(first, then)
        self._needs = _needs_of(first)

    def run(self, node: Node, accept: Callable[[Registers], bool]) -> bool:
        """Search from an anchor; tell whether a match was accepted."""
        inputs = node._inputs
        for index, keys in self._needs:
            value = inputs[index] if index < len(inputs) else None
            producer = None if value is None else value.producer
            if producer is None or (producer.domain, producer.op_type) not in keys:
                return False
        registers = [UNBOUND] * self._size
        registers[TAKEN] = {}
        registers[ACCEPT] = accept
        return self._enter(node, registers)

    def bindings(self, registers: Registers) -> dict[str, Any] | None:
        """Return what each name of the pattern stands for, None where a choice does not bind it.

        None in its place where an attribute or a condition is not as asked for.
        """
        found: dict[str, Any] = {}
        for name, register in self.names:
            value = registers[register]
            if value is not UNBOUND:
                found[name] = value
        for register, pattern in self.ops:
            node = registers[register]
            if node is UNBOUND or isinstance(pattern, Chain):
                continue
            if not attributes_fit(pattern, node, found):
                return None
        if self._conditions and not self._conditions_hold(registers):
            return None
        for name in self._all_names:
            found.setdefault(name)
        return found

    # --- registers --------------------------------------------------------------------------------

    def _new(self, count: int = 1) -> int:
        first = self._size
        self._size += count
        return first

    def _name_register(self, name: str) -> int:
        if name not in self._register_of:
            self._register_of[name] = self._new()
            self.names.append((name, self._register_of[name]))
        return self._register_of[name]

    def _node_register(self, pattern: Op | Chain) -> int:
        """Return the register of what stands for a pattern object, wherever it occurs."""
        same = pattern.identity if isinstance(pattern, Op) else pattern
        if id(same) not in self._register_of:
            register = self._register_of[id(same)] = self._new()
            self.ops.append((register, same))
            if same.node_name:
                self.names.append((same.node_name, register))
        register = self._register_of[id(same)]
        if id(pattern) not in self._seen:
            self._seen[id(pattern)] = pattern
            output = pattern.output if isinstance(pattern, Op) else 0
            self._conditions += [(register, output, found) for found in pattern.conditions]
        return register

    def _kind(self, pattern: Op) -> int:
        """Return a number that patterns which are written alike have in common."""
        same = replace(pattern.identity, conditions=())
        return self._kinds.setdefault(same, len(self._kinds))

    # --- steps ------------------------------------------------------------------------------------

    def _value(self, pattern: Pattern, at: int, then: Step) -> Step:
        """Return the step that matches the value in register `at`."""
        match pattern:
            case Anything():
                return then
            case Var() | Opt():
                return self._bind(pattern, at, then)
            case Const():
                return self._const(pattern, at, then)
            case Alternatives():
                return self._alternatives(pattern, at, then)
            case Op():
                return self._produced(pattern, at, then)
            case Chain():
                return self._chain(pattern, at, then)
            case _:
                raise PatternError(f"{pattern} cannot be an operand")

    def _bind(self, pattern: Var | Opt, at: int, then: Step) -> Step:
        register = self._name_register(pattern.name)
        return self._keep_value(pattern, register, at, then)

    def _keep_value(self, pattern: Pattern, register: int, at: int, then: Step) -> Step:
        """Return the step that notes a value, or compares it with what was noted before."""
        self._conditions += [(register, None, condition) for condition in pattern.conditions]
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
            then = self._keep_value(pattern, self._name_register(pattern.name), at, then)
        elif pattern.conditions:
            then = self._keep_value(pattern, self._new(), at, then)

        def const(registers: Registers) -> bool:
            value = registers[at]
            if value is None or value.tensor is None:
                return False
            array = value.const
            return array is not None and pattern.accepts(array) and then(registers)

        return const

    def _alternatives(self, pattern: Alternatives, at: int, then: Step) -> Step:
        steps = [(choice, self._value(choice, at, then)) for choice in pattern.choices]
        by_key: dict[tuple[str, str], list[Step]] = {
            choice.key: [] for choice in pattern.choices if isinstance(choice, Op)
        }
        others: list[Step] = []
        for choice, step in steps:
            if isinstance(choice, Op):
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

    def _produced(self, pattern: Op, at: int, then: Step) -> Step:
        enter = self._op(pattern, then)
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

    def _op(self, pattern: Op, then: Step) -> Enter:
        """Return what matches a node of the right operator."""
        patterns = pattern.operands
        register, kind = self._node_register(pattern), self._kind(pattern)
        load, first = self._operands(pattern)
        inner = then
        for index in range(len(patterns) - 1, -1, -1):
            inner = self._operand(patterns[index], first + index, inner)
        is_commutative = pattern.is_commutative and not isinstance(patterns[-1], Rest)

        def enter(node: Node, registers: Registers) -> bool:
            known = registers[register]
            if known is not UNBOUND:
                return known is node and then(registers)
            taken = registers[TAKEN]
            earlier = taken.get(node)
            if earlier is not None and earlier != kind:
                return False
            operands = load(node)
            if operands is None:
                return False
            registers[register] = node
            taken[node] = kind
            registers[first : first + len(operands)] = operands
            if inner(registers):
                return True
            if is_commutative and len(node._inputs) == 2:
                registers[first], registers[first + 1] = operands[1], operands[0]
                if inner(registers):
                    return True
            registers[register] = UNBOUND
            if earlier is None:
                del taken[node]
            return False

        return enter

    def _operands(self, pattern: Op) -> tuple[Callable[[Node], Sequence[Any] | None], int]:
        """Return what reads the operands of a node, and the register of the first of them."""
        patterns, count = pattern.operands, len(pattern.operands)
        last = patterns[-1] if patterns else None
        first = self._new(max(count, 2))
        has_forms = not pattern.domain and pattern.op_type in CHANGES
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
            # What is not there matches None; anything more than the pattern names does not.
            if found < count:
                return (*operands, *(None,) * (count - found))
            return None if any(more is not None for more in operands[count:]) else operands[:count]

        return load, first

    def _operand(self, pattern: Pattern, at: int, then: Step) -> Step:
        if isinstance(pattern, Rest):
            return self._rest(pattern, at, then)
        return self._value(pattern, at, then)

    def _rest(self, pattern: Rest, at: int, then: Step) -> Step:
        register = self._name_register(pattern.name)

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
        register, below = self._node_register(pattern), self._new()
        end = self._value(pattern.end, below, then)
        kinds = frozenset(pattern.kinds)
        # Down to an operator that no link can be, there is one length only.
        is_definite = isinstance(pattern.end, Op) and pattern.end.key not in kinds

        def chain(registers: Registers) -> bool:
            value, taken = registers[at], registers[TAKEN]
            known = registers[register]
            if known is not UNBOUND:
                registers[below] = known[-1]._inputs[0]
                return bool(value is known[0]._outputs[0]) and end(registers)
            links: list[Node] = []
            while value is not None and (node := value.producer) is not None:
                is_link = (node.domain, node.op_type) in kinds and value.index == 0
                if not is_link or node in taken or not node._inputs:
                    break
                links.append(node)
                taken[node] = -1
                value = node._inputs[0]
            while links:
                registers[below] = links[-1]._inputs[0]
                registers[register] = tuple(links)
                if end(registers):
                    return True
                del taken[links.pop()]
                if is_definite:
                    break
            for node in links:
                del taken[node]
            registers[register] = UNBOUND
            return False

        return chain

    # --- several roots ----------------------------------------------------------------------------

    def _other_root(self, earlier: Sequence[Pattern], root: Pattern, then: Step) -> Step:
        """Return the step that finds another root through something that the earlier ones bind."""
        assert isinstance(root, Op)
        ops = (part for one in earlier for part in one.walk() if isinstance(part, Op))
        known = {id(part.identity) for part in ops}
        names = {part.name for one in earlier for part in one.walk() if isinstance(part, Var)}
        path = _way_up(root, known, names)
        if path is None:
            raise PatternError(f"{root} has nothing in common with what stands before it")
        leaf, keys = path
        assert isinstance(leaf, Op | Var)
        is_node = isinstance(leaf, Op)
        if isinstance(leaf, Op):
            start = self._node_register(leaf)
        else:
            start = self._name_register(leaf.name)
        enter, anchor = self._op(root, then), self.roots[0]

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

        return other_root

    # --- the end ----------------------------------------------------------------------------------

    def _finish(self, registers: Registers) -> bool:
        accept: Callable[[Registers], bool] = registers[ACCEPT]
        return accept(registers)

    def _conditions_hold(self, registers: Registers) -> bool:
        for register, output, condition in self._conditions:
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
                return False
        return True


def _needs_of(pattern: Op) -> tuple[tuple[int, frozenset[tuple[str, str]]], ...]:
    """Return what shows at a glance that most nodes do not match: operands and who makes them."""
    if pattern.is_commutative:
        return ()
    found = []
    for index, operand in enumerate(pattern.operands):
        if index and not pattern.domain and pattern.op_type in CHANGES:
            break  # in the model's form it may stand elsewhere
        choices = operand.choices if isinstance(operand, Alternatives) else (operand,)
        keys = [choice.key for choice in choices if isinstance(choice, Op)]
        if len(keys) == len(choices):
            found.append((index, frozenset(keys)))
    return tuple(found)


def _way_up(
    pattern: Pattern, known: set[int], names: set[str]
) -> tuple[Op | Var, list[tuple[str, str]]] | None:
    """Return something known that a pattern contains, and the operators from there up to its root.

    Only operands that are there in every match count: no alternatives, no chains.
    """
    if isinstance(pattern, Var):
        return (pattern, []) if pattern.name in names else None
    if not isinstance(pattern, Op):
        return None
    if id(pattern.identity) in known:
        return pattern, []
    for operand in pattern.operands:
        found = _way_up(operand, known, names)
        if found is not None:
            return found[0], [*found[1], pattern.key]
    return None
