"""What could still go in a model: its small subgraphs, and cheaper graphs that compute the same.

A subgraph is a node with some of the nodes before it, whose results no other node reads. Equal
ones, up to the numbers of large constants, are searched once. Candidates are its parts, and one
operator of the grammar on one or two of its parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import ABSTRACT
from tiered.extensions.discovery.expressions import Array, ExpressionTable, GrammarExpr
from tiered.extensions.discovery.grammar import Grammar, GrammarStep
from tiered.extensions.discovery.judging import settings_of
from tiered.extensions.discovery.laws import law_of
from tiered.extensions.discovery.meaning import DomainName, Meaning
from tiered.graph import Model, Node, Value

MOST_ELEMENTS: Final = 1 << 12
"""Subgraphs with larger tensors are not tried."""
LARGE: Final = 8
"""Larger dims, and names of dims, are tried as other sizes: what is applied is proved again."""
_SIZES: Final = (5, 7, 6, 4, 9, 10, 11, 13)
Sizes = Mapping[int | str, int]
"""The sizes that stand for large dims and for names of dims."""
_MOST_CUTS: Final = 32
_MOST_STEPS: Final = 3
"""The most nodes of a subgraph for which operators of the grammar are tried."""


@dataclass(frozen=True)
class MinedSubgraph:
    """A subgraph of a model.

    Attributes:
        root: the node whose result it computes.
        nodes: all of its nodes.
        borders: the values that it reads, in the order of the borders of its expression.
    """

    root: Node
    nodes: frozenset[Node]
    borders: tuple[Value, ...]


@dataclass
class Finding:
    """A cheaper graph for a subgraph that occurs in a model.

    Attributes:
        source, target: both as expressions over the same borders.
        domain: "bits", or "reals" if they are equal over the reals only.
        places: where it occurs; no two of them share a node.
    """

    source: GrammarExpr
    target: GrammarExpr
    domain: DomainName
    places: list[MinedSubgraph] = field(default_factory=list)

    @property
    def law(self) -> str:
        return law_of(self.source, self.target)

    @property
    def nodes(self) -> int:
        """How many nodes fewer one place has."""
        return self.source.cost[0] - self.target.cost[0]

    @property
    def moved(self) -> int:
        """How many bytes fewer one place moves."""
        return self.source.cost[1] - self.target.cost[1]

    @property
    def gain(self) -> tuple[int, int]:
        """What all places save: nodes and bytes."""
        return self.nodes * len(self.places), self.moved * len(self.places)


@dataclass
class Mined:
    """What was found in a model.

    Attributes:
        findings: those that save most first.
        subgraphs: how many subgraphs there are.
        kinds: how many of them differ.
        skipped: how many kinds have no terms, or tensors that are too large.
        left: how many kinds were not searched, as there are more than were asked for.
    """

    findings: list[Finding]
    subgraphs: int
    kinds: int
    skipped: int
    left: int = 0


def mine(
    model: Model,
    *,
    most_nodes: int = 5,
    most_kinds: int | None = None,
    reached: Callable[[int, int], None] | None = None,
) -> Mined:
    """Return what could still go in the main graph of a model; local functions are not entered.

    Args:
        model: it is not edited.
        most_nodes: the most nodes of a subgraph.
        most_kinds: the most kinds that are searched, the most frequent ones first; None for all.
        reached: called before each kind, with its number and how many there are.
    """
    table = ExpressionTable()
    kinds: dict[int, list[MinedSubgraph]] = {}
    sources: dict[int, GrammarExpr] = {}
    reader = _SubgraphReader(table, model)
    total = 0
    for node in model.main.nodes:
        for cut in cuts(node, most_nodes):
            total += 1
            expr = reader.expression(cut)
            if expr is not None:
                sources[expr.number] = expr
                kinds.setdefault(expr.number, []).append(cut)
    search = _GraphSearch(table)
    findings: list[Finding] = []
    taken: set[Node] = set()
    skipped = 0
    # What is in another subgraph is at least as frequent, and comes first.
    order = sorted(kinds, key=lambda each: (-len(kinds[each]), len(kinds[each][0].nodes), each))
    chosen = order[:most_kinds]
    for at, number in enumerate(chosen):
        if reached is not None:
            reached(at, len(chosen))
        places = [cut for cut in kinds[number] if taken.isdisjoint(cut.nodes)]
        if not places:
            continue
        found = search.cheaper(sources[number])
        if found is None:
            skipped += search.was_skipped
            continue
        made = Finding(sources[number], *found)
        if has_new_constants(made):
            # Their numbers may follow from the sizes that stand for others.
            places = [cut for cut in places if _has_own_sizes(cut)]
        for cut in places:
            if taken.isdisjoint(cut.nodes):
                taken |= cut.nodes
                made.places.append(cut)
        if made.places:
            findings.append(made)
    findings.sort(key=lambda each: ([-one for one in each.gain], each.law))
    return Mined(findings, total, len(kinds), skipped, len(order) - len(chosen))


def cuts(root: Node, most_nodes: int) -> Iterator[MinedSubgraph]:
    """Yield the subgraphs that end in a node, of two nodes and more."""
    if len(root.outputs) != 1 or root.bodies or root.has_references:
        return
    pending = [frozenset([root])]
    seen = {pending[0]}
    while pending:
        nodes = pending.pop()
        yield MinedSubgraph(root, nodes, tuple(_borders(nodes)))
        if len(nodes) == most_nodes or len(seen) > _MOST_CUTS:
            continue
        for value in _borders(nodes):
            producer = value.producer
            if producer is None or not _belongs(producer, nodes):
                continue
            larger = nodes | {producer}
            if larger not in seen:
                seen.add(larger)
                pending.append(larger)


def _borders(nodes: frozenset[Node]) -> list[Value]:
    """Return the values that nodes read from others, in a fixed order."""
    found: dict[Value, None] = {}
    for node in sorted(nodes):
        for value in node.inputs:
            if value is not None and value.producer not in nodes:
                found[value] = None
    return list(found)


def _belongs(node: Node, nodes: frozenset[Node]) -> bool:
    """Return whether no other nodes read the results of a node."""
    if node.bodies or node.has_references or node.is_pinned or len(node.outputs) != 1:
        return False
    value = node.output
    return not value.is_graph_output and all(user in nodes for user in value.user_nodes)


class _SubgraphReader:
    """Subgraphs as expressions; border 2 of a subgraph is "x2". Large dims have other sizes.

    The sizes follow from the subgraph alone, so that equal ones of other sizes are one kind.
    """

    def __init__(self, table: ExpressionTable, model: Model) -> None:
        self._table = table
        self._order = {node: at for at, node in enumerate(model.main.topological_order())}

    def expression(self, cut: MinedSubgraph) -> GrammarExpr | None:
        """Return a subgraph as an expression; None if a type is not known."""
        nodes = sorted(cut.nodes, key=self._order.__getitem__)
        sizes = _sizes_of([*cut.borders, *(node.output for node in nodes)])
        if sizes is None:
            return None
        known: dict[Value, GrammarExpr] = {}
        for at, value in enumerate(cut.borders):
            made = self._border(value, f"x{at}", sizes)
            if made is None:
                return None
            known[value] = made
        for node in nodes:
            if node.output.dtype is None:
                return None
            known[node.output] = self._table.apply(
                node.op_type,
                [None if value is None else known[value] for value in node.inputs],
                settings_of(node),
                kind=(int(node.output.dtype), _shape_of(node.output, sizes)),
                domain=node.domain,
            )
        return known[cut.root.output]

    def _border(self, value: Value, name: str, sizes: Sizes) -> GrammarExpr | None:
        tensor = value.tensor
        is_small = tensor is not None and tensor.size <= ABSTRACT
        if is_small and value.const is not None and max(value.const.shape, default=0) <= LARGE:
            return self._table.constant(_resized(value.const, sizes))
        if value.dtype is None:
            return None
        return self._table.border(name, int(value.dtype), _shape_of(value, sizes))


def _sizes_of(values: Sequence[Value]) -> Sizes | None:
    """Return the sizes that stand for large dims and names; None if a shape is not known."""
    dims: dict[int | str, None] = {}
    for value in values:
        if value.shape is None or None in value.shape:
            return None
        dims.update(dict.fromkeys(dim for dim in value.shape if dim is not None))
    own = {dim for dim in dims if isinstance(dim, int) and dim <= LARGE}
    others = (size for size in itertools.chain(_SIZES, itertools.count(14)) if size not in own)
    return {dim: next(others) for dim in dims if dim not in own}


def _shape_of(value: Value, sizes: Sizes) -> tuple[int, ...]:
    """Return the sizes of a value; all of its dims are known."""
    found = [sizes.get(dim, dim) for dim in value.shape or () if dim is not None]
    return tuple(size for size in found if isinstance(size, int))


def _resized(array: Array, sizes: Sizes) -> Array:
    """Return a constant, with other sizes where it has sizes."""
    if array.dtype.kind != "i":
        return array
    numbers = [sizes.get(number, number) for number in array.ravel().tolist()]
    return np.asarray(numbers, array.dtype).reshape(array.shape)


class _GraphSearch:
    """Cheaper graphs for expressions."""

    def __init__(self, table: ExpressionTable) -> None:
        names: tuple[DomainName, ...] = ("bits", "reals")
        self._meanings = [Meaning(table, name) for name in names]
        self._grammar = Grammar(table, is_small=True)
        # What one operator makes of one expression or of two.
        self._steps: dict[tuple[object, ...], list[GrammarExpr]] = {}
        self.was_skipped = False

    def cheaper(self, source: GrammarExpr) -> tuple[GrammarExpr, DomainName] | None:
        """Return the cheapest graph that was found to be equal; None if none is cheaper."""
        self.was_skipped = False
        if any(_size(each.shape) > MOST_ELEMENTS for each in source.walk()):
            self.was_skipped = True
            return None
        for meaning in self._meanings:
            try:
                wanted = meaning.key(source)
                # Shapes that a name of a dim decides may not be those that were computed.
                if meaning.value(source).shape != source.shape:
                    raise Unproved("the shape depends on the dims")
            except Unproved:
                self.was_skipped = True
                return None
            best = source
            for candidate in self._candidates(source, meaning):
                if candidate.cost < best.cost and _has_key(meaning, candidate, wanted):
                    best = candidate
            if best is not source:
                return best, meaning.name
        return None

    def _candidates(self, source: GrammarExpr, meaning: Meaning) -> Iterator[GrammarExpr]:
        """Yield graphs of the dtype and shape of an expression."""
        parts = [each for each in source.walk() if each is not source]
        kind = (source.dtype, source.shape)
        yield from (each for each in parts if (each.dtype, each.shape) == kind)
        yield from self._without_a_node(source, meaning)
        if len(source.nodes()) > _MOST_STEPS:
            return
        inner = [each for each in parts if each.array is None]
        for part in inner:
            for other in (None, *inner):
                for made in self._applied(meaning, part, other):
                    if (made.dtype, made.shape) == kind:
                        yield made

    def _applied(
        self, meaning: Meaning, part: GrammarExpr, other: GrammarExpr | None
    ) -> list[GrammarExpr]:
        """Return what one operator makes of an expression, or of two."""
        key = (meaning.name, part.number, None if other is None else other.number)
        found = self._steps.get(key)
        if found is None:
            steps = self._grammar.steps(part) if other is None else self._grammar.pairs(part, other)
            found = self._steps[key] = list(_made(steps, meaning))
        return found

    def _without_a_node(self, source: GrammarExpr, meaning: Meaning) -> Iterator[GrammarExpr]:
        """Yield an expression with one of its nodes replaced by an operand of it."""
        for gone in source.nodes().values():
            for operand in gone.operands:
                if operand is None or operand.array is not None or gone is source:
                    continue
                try:
                    made = _rebuilt(source, {gone.number: operand}, meaning)
                except Unproved:
                    continue
                if made.shape == source.shape and made.dtype == source.dtype:
                    yield made


def _made(steps: Iterable[GrammarStep], meaning: Meaning) -> Iterator[GrammarExpr]:
    for step in steps:
        attributes = tuple(step.attributes.items())
        try:
            yield from meaning.applied(step.op, step.operands, attributes, step.outputs)
        except Unproved:
            continue


def _rebuilt(
    source: GrammarExpr, places: Mapping[int, GrammarExpr], meaning: Meaning
) -> GrammarExpr:
    """Return an expression with others in some places.

    Raises:
        Unproved: it computes nothing then.
    """
    made: dict[int, GrammarExpr] = dict(places)
    for each in source.walk():
        if each.number in made:
            continue
        if not each.is_operator:
            made[each.number] = each
            continue
        operands = [None if x is None else made[x.number] for x in each.operands]
        (made[each.number],) = meaning.applied(
            each.op, operands, each.attributes, domain=each.domain
        )
    return made[source.number]


def _has_key(meaning: Meaning, candidate: GrammarExpr, wanted: object) -> bool:
    try:
        return meaning.key(candidate) == wanted
    except Unproved:
        return False


def _size(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def has_new_constants(finding: Finding) -> bool:
    """Return whether the cheaper graph has constants that the subgraph lacks."""
    held = {each.number for each in finding.source.walk() if each.array is not None}
    return any(each.array is not None and each.number not in held for each in finding.target.walk())


def border_values(expr: GrammarExpr, cut: MinedSubgraph) -> dict[int, Value]:
    """Return what an expression reads in one place, borders and constants, by their numbers."""
    found: dict[int, Value] = {}
    inputs = {node: node.inputs for node in cut.nodes}

    def add(each: GrammarExpr, value: Value | None) -> None:
        if value is None or each.number in found:
            return
        found[each.number] = value
        if value.producer in inputs:
            for operand, read in zip(each.operands, inputs[value.producer], strict=False):
                if operand is not None:
                    add(operand, read)

    add(expr, cut.root.output)
    return found


def _has_own_sizes(cut: MinedSubgraph) -> bool:
    """Return whether all values of a subgraph are tried with the sizes that they have."""
    values = (*cut.borders, *(node.output for node in cut.nodes))
    shapes = [value.static_shape for value in values]
    return all(shape is not None and max(shape, default=0) <= LARGE for shape in shapes)
