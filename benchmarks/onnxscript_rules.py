"""Our patterns as rules of onnxscript's rewriter, for measuring the two side by side.

A rule is never stricter than the pattern, unless onnxscript knows no looser form: what it cannot
say (conditions on types, predicates, ranks of constants) matches anything there. It only looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
from onnxscript.rewriter import pattern as peer

from tiered.graph.queries.op_traits import COMMUTATIVE
from tiered.rewriter import Pattern
from tiered.rewriter.pattern import (
    Alternatives,
    Anything,
    Const,
    OpPattern,
    Opt,
    Rest,
    VariablePattern,
    roots,
)

MOST_SWAPPED = 3
"""Beyond this many commutative operators a pattern is one rule, with the operands as written."""


class Inexpressible(ValueError):
    """A pattern that onnxscript has no counterpart of."""


def rules_of(pattern: Pattern, opset: int) -> list[Any]:
    """Return the rules that match what a pattern matches in models of an opset.

    Operands of commutative operators are tried in either order, as ours are, where these are few.

    Raises:
        Inexpressible: there are none.
    """
    made = [_rule(root, opset) for root in roots(pattern)]
    swapped = {
        id(part): part.is_commutative and not isinstance(part.operands[-1], Anything | Rest)
        for part in pattern.walk()
        if isinstance(part, OpPattern) and not part.domain and part.op_type in COMMUTATIVE
    }
    # onnxscript makes a rule of each combination, and cannot swap more than two operands, or one.
    commutes = all(swapped.values()) and len(swapped) <= MOST_SWAPPED
    return list(peer.RewriteRuleSet(made, commute=commutes))


def matches(rules: list[Any], model: Any) -> int:
    """Return how many nodes of an `onnx_ir.Model` some rule matches at."""
    return sum(_match(rules, model, graph) for graph in _graphs(model.graph))


def _match(rules: list[Any], model: Any, graph: Any) -> int:
    found = 0
    for node in graph:
        for rule in rules:
            if rule.match(model, graph, node):
                found += 1
                break
    return found


def _graphs(graph: Any) -> Iterator[Any]:
    yield graph
    for node in graph:
        for attribute in node.attributes.values():
            for body in (attribute.value,) if attribute.type.name == "GRAPH" else ():
                yield from _graphs(body)


def _rule(root: Pattern, opset: int) -> Any:
    if not isinstance(root, OpPattern):
        raise Inexpressible(f"{root} has several roots, and every pair of nodes would be tried")

    def target(op: Any) -> Any:
        return _Translation(op, opset).of(root)

    return peer.RewriteRule(target, lambda op, **_: None)


class _Translation:
    """Builds the pattern of one rule; what is one object or one name here is one object there."""

    def __init__(self, op: Any, opset: int) -> None:
        self.op = op
        self.opset = opset
        self.made: dict[Any, Any] = {}

    def of(self, pattern: Pattern) -> Any:
        key = pattern.name if isinstance(pattern, VariablePattern | Opt) else id(pattern)
        if key not in self.made:
            self.made[key] = self._translated(pattern)
        return self.made[key]

    def _translated(self, pattern: Pattern) -> Any:
        match pattern:
            case VariablePattern(name=name):
                return peer.Var(name)
            case Opt(name=name):
                return peer.Var(name, can_match_none=True)
            case Anything():
                return peer.ANY_VALUE
            case Const():
                return _constant(pattern)
            case Alternatives(choices=choices):
                # Without a tag it cannot be copied, and so not be swapped.
                return peer.OrValue(list(map(self.of, choices)), tag_var=f"tag{len(self.made)}")
            case OpPattern():
                return self._operator(pattern)
            case _:
                raise Inexpressible(f"onnxscript has nothing like {pattern}")

    def _operator(self, pattern: OpPattern) -> Any:
        operands = list(pattern.operands)
        is_open = bool(operands) and isinstance(operands[-1], Anything | Rest)
        known = set(pattern.names)
        if not pattern.domain and onnx.defs.has(pattern.op_type, self.opset):
            schema = onnx.defs.get_schema(pattern.op_type, self.opset)
            # Patterns are in the newest form: what is no operand yet is an attribute.
            if len(operands) > schema.max_input:
                operands, known = operands[: schema.max_input], known | {"..."}
            known &= set(schema.attributes) | {"..."}
        outputs = 1 + max(pattern.output, pattern.identity.output)
        made = getattr(self.op, pattern.op_type)(
            *map(self.of, operands[:-1] if is_open else operands),
            _domain=pattern.domain,
            _outputs=outputs,
            _allow_other_inputs=is_open,
            _allow_other_attributes=pattern.any_attributes or "..." in known,
            **{name: _attribute(value) for name, value in pattern.attributes if name in known},
        )
        return made if outputs == 1 else made[pattern.output]


def _constant(pattern: Const) -> Any:
    expected = pattern.expected
    several = expected if isinstance(expected, tuple) else (expected,)
    if pattern.predicate is not None or not all(isinstance(one, int | float) for one in several):
        return peer.Var(pattern.name or None)
    value = list(expected) if isinstance(expected, tuple) else expected
    return peer.Constant(value, rel_tol=pattern.rtol or 1e-12, abs_tol=0.0)


def _attribute(value: Any) -> Any:
    if isinstance(value, VariablePattern):
        return peer.AttrVar(value.name, can_match_none=True)
    if value is ... or value is None or callable(value):
        return peer.AttrVar(None, can_match_none=True)
    return list(value) if isinstance(value, tuple) else value
