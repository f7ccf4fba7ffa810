"""The matcher: anchored at a node, with the guards that every rewrite needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tiered.graph.core.value import Value
from tiered.rewriter.compile import Program
from tiered.rewriter.pattern import Chain, OpPattern, Pattern, roots
from tiered.rewriter.registers import UNBOUND, Registers
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node

IS_OUTPUT = Skip("an inner value is a graph output")
IS_NAMED = Skip("training info or an annotation names an inner value")
IS_CAPTURED = Skip("an inner value is captured by a body")
HAS_OTHER_USER = Skip("an inner value has another user")
DEPENDS = Skip("one of the nodes depends on another")


class Match(NamedTuple):
    """A match.

    Attributes:
        node: the anchor, which is the first root.
        bindings: the value, node or attribute of each name of the pattern.
        nodes: each matched node with its pattern.
        roots: the nodes that a rewrite replaces: one, or as many as `a & b` has.
        outputs: the index of the matched output of each root.
    """

    node: Node
    bindings: Mapping[str, Any]
    nodes: Mapping[Node, OpPattern | Chain]
    roots: tuple[Node, ...]
    outputs: tuple[int, ...]

    @property
    def values(self) -> tuple[Value | None, ...]:
        """The matched output of each root."""
        pairs = zip(self.roots, self.outputs, strict=True)
        return tuple(root.outputs[output] for root, output in pairs)


def compile_pattern(pattern: Pattern) -> tuple[Program, ...]:
    """Return the programs of a pattern, one for each choice of its root.

    Raises:
        PatternError: it cannot be searched for.
    """
    programs = programs_of(pattern)
    for program in programs:
        program.link()
    return programs


def programs_of(pattern: Pattern) -> tuple[Program, ...]:
    """Return the programs of a pattern; each is linked when it first runs."""
    names = pattern.bound
    return tuple(Program(anchor, names) for anchor in roots(pattern))


def match_node(programs: Sequence[Program], node: Node) -> Match | Skip | None:
    """Match a node against programs: return the match, None, or the guard that forbids one."""
    blocked: Skip | None = None
    for program in programs:
        if not program.starts_at(node):
            continue
        found = _searched(program, node)
        if isinstance(found, Match):
            return found
        blocked = blocked or found
    return blocked


def _searched(program: Program, node: Node) -> Match | Skip | None:
    """Return the first match of one program that no guard forbids, or the first guard that did."""
    found: Match | None = None
    blocked: Skip | None = None

    def accept(registers: Registers) -> bool:
        nonlocal found, blocked
        match = _match(program, registers)
        if match is None:
            return False
        reason = match if isinstance(match, Skip) else why_blocked(match)
        if reason is None:
            assert isinstance(match, Match)
            found = match
        else:
            blocked = blocked or reason
        return reason is None

    program.run(node, accept)
    return found or blocked


def all_matches(programs: Sequence[Program], node: Node) -> list[Match]:
    """Return every match at a node, without guards; equal ones (as of `Add(x, x)`) once."""
    matches: list[Match] = []
    seen: set[Any] = set()

    def accept(registers: Registers) -> bool:
        match = _match(program, registers)
        if isinstance(match, Match):
            key = (
                tuple((at, id(registers[at])) for at, _ in program.registers.ops),
                tuple((name, id(value)) for name, value in match.bindings.items()),
            )
            if key not in seen:
                seen.add(key)
                matches.append(match)
        return False

    for program in programs:
        if program.starts_at(node):
            program.run(node, accept)
    return matches


def find_matches(graph: Graph, pattern: Pattern, *, guarded: bool = True) -> Iterator[Match]:
    """Yield the matches of a pattern in one graph, in topological order of their anchors.

    Args:
        graph: the graph to search; bodies and functions are graphs of their own.
        pattern: the pattern to search for.
        guarded: yield at most one match at each anchor, and only if a rewrite could take it.

    Raises:
        PatternError: the pattern cannot be searched for.
    """
    programs = compile_pattern(pattern)
    keys = {program.key for program in programs}
    if not any(graph.nodes_of(op_type, domain) for domain, op_type in keys):
        return
    for node in graph.topological_order():
        if not guarded:
            yield from all_matches(programs, node)
            continue
        match = match_node(programs, node)
        if isinstance(match, Match):
            yield match


def _match(program: Program, registers: Registers) -> Match | Skip | None:
    """Return the match in the registers, None if an attribute or a condition does not hold.

    A Skip reports that only an attribute is unknown, because it is a function parameter.
    """
    bindings = program.bindings(registers)
    if bindings is None or isinstance(bindings, Skip):
        return bindings
    nodes: dict[Node, OpPattern | Chain] = {}
    for register, pattern in program.registers.ops:
        node = registers[register]
        if node is UNBOUND:
            continue
        if isinstance(pattern, Chain):
            nodes.update(dict.fromkeys(node, pattern))
        else:
            nodes.setdefault(node, pattern)
    found = tuple([registers[root] for root in program.roots])
    return Match(found[0], bindings, nodes, found, program.outputs)


# --- guards ---------------------------------------------------------------------------------------


def why_blocked(match: Match) -> Skip | None:
    """Return why a match may not be rewritten: something else uses one of its inner values."""
    nodes = match.nodes
    for node, pattern in nodes.items():
        if node in match.roots or pattern.is_shared:
            continue
        for value in node._outputs:
            if value is None:
                continue
            if value.output_of:
                return IS_OUTPUT
            if value.pins:
                return IS_NAMED
            if value._captures:
                return IS_CAPTURED
            for user in value._users.values():
                if user not in nodes:
                    return HAS_OTHER_USER
    return None if len(match.roots) == 1 else _dependence(match)


def _dependence(match: Match) -> Skip | None:
    """Return why several roots cannot be replaced at once: a cycle would be the result."""
    graph = match.node.graph
    seen = set(match.nodes)
    pending = [
        value.producer
        for node in match.nodes
        for value in (*node._inputs, *node.captured)
        if value is not None and value.producer is not None
    ]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        for value in (*node._inputs, *node.captured):
            if value is None or value.producer is None or value.graph is not graph:
                continue
            if value.producer in match.roots:
                return DEPENDS
            pending.append(value.producer)
    bound = (value for value in match.bindings.values() if isinstance(value, Value))
    return DEPENDS if any(value.producer in match.roots for value in bound) else None
