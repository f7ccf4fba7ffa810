"""Graphs of up to a few operators, bottom-up: what is built on is one graph of each class.

A class is what computes the same. Its representative is its cheapest graph; only representatives
are extended, as any other member has the same extensions. All is in a fixed order.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from tiered.certify.evaluation.values import Unproved
from tiered.extensions.discovery.expressions import ExpressionTable, GrammarExpr
from tiered.extensions.discovery.grammar import Base, Grammar, GrammarStep
from tiered.extensions.discovery.meaning import DomainName, Meaning

MOST_ELEMENTS = 512


@dataclass
class Class:
    """Graphs that compute the same.

    Attributes:
        members: in the order in which they were found, without the representative of 0 operators.
        best: the cheapest one, the first among equals.
    """

    best: GrammarExpr
    members: list[GrammarExpr] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many graphs are known to compute it; a border or constant is one."""
        return len(self.members) + (not self.best.is_operator)


@dataclass
class Enumeration:
    """All classes from a base.

    Attributes:
        meaning: the domain, with its table.
        classes: by key.
        levels: the representatives that were new, by their number of operators.
    """

    meaning: Meaning
    classes: dict[Hashable, Class] = field(default_factory=dict)
    levels: list[list[GrammarExpr]] = field(default_factory=list)

    def members(self) -> Iterator[tuple[Class, GrammarExpr]]:
        """Yield the members of classes of several graphs."""
        for each in self.classes.values():
            if each.size > 1:
                for member in each.members:
                    yield each, member


def enumerated(
    base: Base, domain: DomainName, operators: int, *, most: int, seed: int = 0
) -> Enumeration:
    """Return the graphs of up to a number of operators.

    Args:
        base: what they read.
        domain: what equal means.
        operators: the largest number of operators.
        most: the largest number of graphs of each number of operators; above it a part of the
            representatives is extended, drawn by the seed.
    """
    table = ExpressionTable()
    meaning = Meaning(table, domain)
    made = Enumeration(meaning)
    leaves = base.leaves(table)
    for leaf in leaves:
        made.classes[meaning.key(leaf)] = Class(leaf)
    made.levels.append(leaves[:1])
    for count in range(1, operators + 1):
        grammar = Grammar(table, is_small=count > 2)
        fresh: list[GrammarExpr] = []
        level = _Level(made, grammar, leaves, fresh)
        sources = [*made.levels[-1]]
        if count > 1:
            random.Random(f"{seed} {base.name} {count}").shuffle(sources)
        for source in sources:
            if level.count >= most:
                break
            level.extend(source)
        made.levels.append(fresh)
    return made


class _Level:
    """The graphs of one operator more."""

    def __init__(
        self,
        made: Enumeration,
        grammar: Grammar,
        leaves: Sequence[GrammarExpr],
        fresh: list[GrammarExpr],
    ) -> None:
        self._made = made
        self._grammar = grammar
        self._leaves = leaves
        self._fresh = fresh
        self.count = 0

    def extend(self, source: GrammarExpr) -> None:
        """Add all graphs that apply one operator to a representative."""
        for step in self._steps(source):
            for made in _results(self._made.meaning, step):
                self._add(made)

    def _steps(self, source: GrammarExpr) -> Iterator[GrammarStep]:
        yield from self._grammar.steps(source)
        for other in (*self._leaves, *_inside(source)):
            yield from self._grammar.pairs(source, other)
            if other is not source:
                yield from self._grammar.pairs(other, source)
        for condition in self._leaves:
            for other in self._leaves[:2]:
                yield from self._grammar.triples(condition, source, other)

    def _add(self, expr: GrammarExpr) -> None:
        meaning, classes = self._made.meaning, self._made.classes
        try:
            key = meaning.key(expr)
            known = meaning.is_constant(expr)
        except Unproved:
            return
        if known:
            meaning.forget(expr)
            return
        found = classes.get(key)
        if found is None:
            classes[key] = Class(expr, [expr])
            self._fresh.append(expr)
            self.count += 1
            return
        if expr is found.best or any(expr is each for each in found.members[-32:]):
            return
        self.count += 1
        found.members.append(expr)
        if expr.cost < found.best.cost:
            found.best = expr
        meaning.forget(expr)


def _inside(source: GrammarExpr) -> list[GrammarExpr]:
    """Return the operators inside an expression, and itself."""
    return [each for each in source.walk() if each.is_operator]


def _results(meaning: Meaning, step: GrammarStep) -> list[GrammarExpr]:
    attributes = tuple(step.attributes.items())
    try:
        found = meaning.applied(step.op, step.operands, attributes, step.outputs)
    except Unproved:
        return []
    return [each for each in found if _size(each) <= MOST_ELEMENTS]


def _size(expr: GrammarExpr) -> int:
    count = 1
    for size in expr.shape:
        count *= size
    return count
