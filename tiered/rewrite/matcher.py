"""The matcher: anchored at a node, with the guards that every rewrite needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tiered.graph.forms import moved_attributes
from tiered.graph.schema import AttributeReference, default_of, schema_of
from tiered.rewrite.pattern import Alternatives, Anything, Const, Op, Opt, Pattern, Rest, Var
from tiered.rewrite.skip import Skip

if TYPE_CHECKING:
    from tiered.graph.node import Node
    from tiered.graph.value import Value

Bindings = dict[str, Any]


class Match(NamedTuple):
    """A match: the anchor, what the names stand for, and each matched node with its pattern."""

    node: Node
    bindings: Mapping[str, Any]
    nodes: Mapping[Node, Op]


class _State:
    """What is bound so far; undone by cutting back, so that a failed choice leaves nothing."""

    __slots__ = ("bindings", "nodes")

    def __init__(self) -> None:
        self.bindings: Bindings = {}
        self.nodes: dict[Node, Op] = {}


def match_node(anchors: Sequence[Op], node: Node) -> Match | Skip | None:
    """Match a node against patterns: the match, None, or the guard that a match runs into."""
    blocked: Skip | None = None
    for anchor in anchors:
        if (node.domain, node.op_type) != anchor.key:
            continue
        state = _State()
        for _ in _match_op(anchor, node, state):
            reason = _outside_user(node, state.nodes)
            if reason is None:
                return Match(node, dict(state.bindings), dict(state.nodes))
            blocked = blocked or reason
    return blocked


def _outside_user(anchor: Node, nodes: Mapping[Node, Op]) -> Skip | None:
    """Return why a value inside the match must stay: somebody else sees it."""
    for node, pattern in nodes.items():
        if node is anchor or pattern.is_shared:
            continue
        for value in node.outputs:
            if value is None:
                continue
            if value.output_of or value.pins:
                return Skip("an inner value is a graph output")
            if value.is_captured:
                return Skip("an inner value is captured by a body")
            if any(use.node not in nodes for use in value.users):
                return Skip("an inner value has another user")
    return None


def _match_value(pattern: Pattern, value: Value | None, state: _State) -> Iterator[None]:
    """Yield once for each way in which the value matches, with the state showing how."""
    match pattern:
        case Anything():
            yield
        case Var(name):
            if value is not None:
                yield from _bind(name, value, state)
        case Opt(name):
            yield from _bind(name, value, state)
        case Const():
            yield from _match_const(pattern, value, state)
        case Alternatives(choices):
            for choice in choices:
                yield from _match_value(choice, value, state)
        case Op():
            producer = None if value is None else value.producer
            if (
                producer is not None
                and value is not None
                and (producer.domain, producer.op_type) == pattern.key
                and value.index == pattern.output
            ):
                yield from _match_op(pattern, producer, state)
        case _:
            raise AssertionError(pattern)


def _bind(name: str, value: Any, state: _State) -> Iterator[None]:
    bindings = state.bindings
    if name in bindings:
        known = bindings[name]
        if known is value:
            yield
        return
    bindings[name] = value
    yield
    del bindings[name]


def _match_const(pattern: Const, value: Value | None, state: _State) -> Iterator[None]:
    array = None if value is None else value.const
    if array is None or not pattern.accepts(array):
        return
    if pattern.name:
        yield from _bind(pattern.name, value, state)
    else:
        yield


def _match_op(pattern: Op, node: Node, state: _State) -> Iterator[None]:
    if node in state.nodes:
        # A shared subexpression: the same node again must mean the same pattern.
        if state.nodes[node] == pattern:
            yield
        return
    operands = node.operands
    if not _arity_fits(pattern, operands):
        return
    for _ in _match_attributes(pattern, node, state):
        if pattern.node_name:
            state.bindings[pattern.node_name] = node
        state.nodes[node] = pattern
        yield from _match_operands(pattern.operands, operands, 0, state)
        if pattern.is_commutative and len(operands) == 2:
            yield from _match_operands(pattern.operands, operands[::-1], 0, state)
        del state.nodes[node]
        if pattern.node_name:
            del state.bindings[pattern.node_name]


def _arity_fits(pattern: Op, operands: Sequence[Value | None]) -> bool:
    wanted = pattern.operands
    if wanted and isinstance(wanted[-1], Anything | Rest):
        return len(operands) >= len(wanted) - 1
    # Operands that are not there match None; anything more than the pattern names does not.
    return all(operand is None for operand in operands[len(wanted) :])


def _match_operands(
    patterns: Sequence[Pattern], operands: Sequence[Value | None], at: int, state: _State
) -> Iterator[None]:
    if at == len(patterns):
        yield
        return
    pattern = patterns[at]
    if isinstance(pattern, Rest):
        yield from _bind(pattern.name, tuple(operands[at:]), state)
        return
    operand = operands[at] if at < len(operands) else None
    for _ in _match_value(pattern, operand, state):
        yield from _match_operands(patterns, operands, at + 1, state)


def _match_attributes(pattern: Op, node: Node, state: _State) -> Iterator[None]:
    named = dict(pattern.attributes)
    if not pattern.any_attributes and not _others_are_default(node, named):
        return
    bound = []
    for name, wanted in pattern.attributes:
        actual = node.attr(name)
        if isinstance(actual, AttributeReference):
            break
        if isinstance(wanted, Var):
            if wanted.name in state.bindings:
                break
            state.bindings[wanted.name] = actual
            bound.append(wanted.name)
        elif not _equal_attribute(wanted, actual):
            break
    else:
        yield
    for name in bound:
        del state.bindings[name]


def _equal_attribute(wanted: Any, actual: Any) -> bool:
    if isinstance(wanted, list):
        wanted = tuple(wanted)
    if isinstance(wanted, float) and isinstance(actual, float):
        # Attributes are float32; a literal in a pattern is not.
        return abs(wanted - actual) <= 1e-6 * abs(wanted)
    return bool(wanted == actual)


def _others_are_default(node: Node, named: Mapping[str, Any]) -> bool:
    """Tell whether every attribute that the pattern does not name has its default."""
    protos = node.attribute_protos()
    if not protos:
        return True
    moved = moved_attributes(node)
    schema = schema_of(node.op_type, node.domain, node.owner.opset(node.domain))
    for name in protos:
        if name in named or name in moved:
            continue
        if schema is None or name not in schema.attributes:
            return False
        if node.attr(name) != default_of(schema, name):
            return False
    return True
