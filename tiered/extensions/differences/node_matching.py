"""The nodes of two graphs, paired: by what they compute, then by their neighbours and names.

1. Nodes with equal structural hashes compute the same from the inputs.
2. From these, pairs spread to consumers that read the same values, and to producers that the same
   consumers read; attributes may differ.
3. Nodes of one operator that read the same weights are the same layer.
4. Names join what is left, if the pairs so far show that both models use the same names: numbers
   that an exporter gave are other ones in the next export.

Every pair is compared at the end, so a wrong one is a change that is shown, never one that is
hidden.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tiered.extensions.differences.constant_pairing import (
    TELLING,
    ConstantPair,
    constants_of,
    identities,
    paired,
)
from tiered.graph.queries.op_traits import COMMUTATIVE
from tiered.graph.queries.structural_hash import value_digests

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value

_FEW: Final = 4
"""Names are trusted if so few nodes are paired that they prove nothing."""

Side = int
"""0 for the first model, 1 for the second."""
Key = Callable[[Side, "Node"], Hashable | None]


class Matching:
    """Two graphs and their pairs.

    Attributes:
        graphs: both.
        label: of the body or function; "" for the main graph.
        constants: the pairs of constants.
        partners: for each side the nodes of the other one.
    """

    def __init__(
        self, first: Graph, second: Graph, label: str = "", outer: Matching | None = None
    ) -> None:
        self.graphs = (first, second)
        self.label = label
        self.outer = outer
        self.constants: list[ConstantPair] = paired(constants_of(first), constants_of(second))
        self.partners: tuple[dict[Node, Node], dict[Node, Node]] = ({}, {})
        self._given: tuple[dict[Value, str], dict[Value, str]] = ({}, {})
        self._named: tuple[dict[Value, Value], dict[Value, Value]] = ({}, {})
        self._give()

    @cached_property
    def nodes(self) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """The nodes of each side in topological order, without those that hold a constant."""
        first, second = (
            tuple(node for node in graph.topological_order() if not _is_constant(node))
            for graph in self.graphs
        )
        return first, second

    def free(self, side: Side) -> Iterator[Node]:
        """Yield the nodes of a side without a partner."""
        return (node for node in self.nodes[side] if node not in self.partners[side])

    def id_of(self, side: Side, value: Value | None) -> str:
        """Return a string that is equal for the same value of both sides, and for no other."""
        if value is None:
            return ""
        given = self._given[side].get(value)
        if given is not None:
            return given
        producer = value.producer
        if producer in self.partners[side]:
            first = producer if side == 0 else self.partners[side][producer]
            return f"node {first.id} {value.index}"
        other = self._named[side].get(value)
        if other is not None and other.producer not in self.partners[1 - side]:
            return f"name {value.name}"
        if self.outer is not None and value.graph is not self.graphs[side]:
            return self.outer.id_of(side, value)
        return f"only {side} {value.id}"

    def ids_of(self, side: Side, node: Node) -> list[str]:
        """Return the ids of what a node reads; sorted where the order does not matter."""
        ids = [self.id_of(side, value) for value in node._inputs]
        is_sorted = not node.domain and node.op_type in COMMUTATIVE
        return sorted(ids) if is_sorted else ids

    def is_shared(self, side: Side, value: Value | None) -> bool:
        """Return whether the other side has the same value."""
        return not self.id_of(side, value).startswith("only ")

    # --- what both sides have before any node is paired -------------------------------------------

    def _give(self) -> None:
        known = identities(self.constants)
        common = set(known[0].values()) & set(known[1].values())
        for side, values in enumerate(known):
            for constant, identity in values.items():
                if identity in common:
                    self._given[side][constant] = f"{identity} {self.label}"
        for number, inputs in enumerate(self.input_pairs):
            for side, value in enumerate(inputs):
                if value is not None:
                    at = f"input {self.label} {number}"
                    own = at if None not in inputs else f"only {side} {value.id}"
                    self._given[side].setdefault(value, own)

    @cached_property
    def input_pairs(self) -> list[tuple[Value | None, Value | None]]:
        """The inputs of both graphs: by position in bodies and functions, else by name."""
        return _ports(*(graph.inputs for graph in self.graphs), by_name=self.graphs[0].is_main)

    @cached_property
    def output_pairs(self) -> list[tuple[Value | None, Value | None]]:
        """The outputs of both graphs."""
        return _ports(*(graph.outputs for graph in self.graphs), by_name=self.graphs[0].is_main)

    # --- pairs ------------------------------------------------------------------------------------

    def match(self) -> Matching:
        """Pair the nodes, and return this matching."""
        self._by_digest()
        trusted = self._agree(lambda node: node._outputs and node.output.name)
        self._name_values(everything=trusted)
        self._spread(self._forward, _consumers, is_strict=True)
        self._by(self._weights)
        self._spread(self._forward, _consumers, is_strict=True)
        if trusted:
            self._by(lambda _, node: (_operator(node), tuple(_names(node._outputs))))
            self._spread(self._forward, _consumers, is_strict=True)
        self._spread(self._backward, _producers, is_strict=True)
        if self._agree(lambda node: node.name):
            self._by(lambda _, node: (_operator(node), node.name) if node.name else None)
        self._spread(self._forward, _consumers, is_strict=False)
        self._spread(self._backward, _producers, is_strict=False)
        return self

    def _pair(self, first: Node, second: Node) -> None:
        self.partners[0][first] = second
        self.partners[1][second] = first

    def _by_digest(self) -> None:
        digests = []
        for side, graph in enumerate(self.graphs):
            given = dict(self._given[side])
            for pair in self.constants:
                constant = pair[side]
                if constant is not None:
                    given.setdefault(constant.value, f"only {side} {constant.value.id}")
            captured = {value for node in graph.nodes for value in _read(node)} - given.keys()
            for value in captured:
                if value.graph is not graph and self.outer is not None:
                    given[value] = self.outer.id_of(side, value)
            digests.append(value_digests(graph, given))
        looks: list[Key] = [self._results, lambda _, node: node.label, lambda *_: ""]
        for look in looks:
            self._join([
                [(self._digest(digests[side], node, look(side, node)), node)
                 for node in self.free(side)]
                for side in (0, 1)
            ])  # fmt: skip

    @staticmethod
    def _digest(
        digests: Mapping[Value, str], node: Node, beside: Hashable | None
    ) -> Hashable | None:
        known = [digests[value] for value in node._outputs if value is not None]
        return (*known, beside) if known and beside is not None else None

    def _results(self, side: Side, node: Node) -> Hashable | None:
        """Return which results of the graph a node computes, None without."""
        places = self._places[side]
        return tuple(places[value] for value in node._outputs if value in places) or None

    @cached_property
    def _places(self) -> tuple[dict[Value | None, int], ...]:
        """The places of results that both graphs have."""
        pairs = [(at, pair) for at, pair in enumerate(self.output_pairs) if None not in pair]
        return tuple({pair[side]: at for at, pair in pairs} for side in (0, 1))

    def _join(self, sides: list[list[tuple[Hashable | None, Node]]]) -> None:
        """Pair the nodes of equal keys, in order."""
        there: dict[Hashable, list[Node]] = defaultdict(list)
        for key, node in reversed(sides[1]):
            there[key].append(node)
        for key, node in sides[0]:
            if key is not None and there.get(key):
                self._pair(node, there[key].pop())

    def _by(self, key: Key) -> None:
        """Pair nodes of equal keys, unless their outputs have other partners by name."""
        there: dict[Hashable, list[Node]] = defaultdict(list)
        for node in self.free(1):
            there[key(1, node)].append(node)
        for node in [*self.free(0)]:
            known = key(0, node)
            candidates = there.get(known, []) if known is not None else []
            fitting = [each for each in candidates if not self._conflicts(node, each, strict=True)]
            if fitting:
                candidates.remove(fitting[0])
                self._pair(node, fitting[0])

    def _weights(self, side: Side, node: Node) -> Hashable | None:
        """Return the operator and the large constants that only this node reads, None without."""
        weights = [
            self.id_of(side, value)
            for value in node._inputs
            if value is not None
            and value.tensor is not None
            and value.tensor.size >= TELLING
            and value.n_users == 1
            and self.is_shared(side, value)
        ]
        return (_operator(node), *weights) if weights else None

    def _agree(self, name_of: Callable[[Node], object]) -> bool:
        """Return whether the pairs so far have the same names, most of them."""
        pairs = [pair for pair in self.partners[0].items() if all(map(name_of, pair))]
        same = sum(name_of(first) == name_of(second) for first, second in pairs)
        return len(pairs) < _FEW or 2 * same >= len(pairs)

    def _name_values(self, *, everything: bool) -> None:
        """Note the values that have the same name in both graphs, and types that agree."""
        wanted: Iterable[tuple[Value, Value]]
        wanted = [(one, two) for one, two in self.output_pairs if one and two]
        if everything:
            there = self.graphs[1].values
            wanted = [(value, there[name]) for name, value in self.graphs[0].values.items()
                      if name in there]  # fmt: skip
        for one, two in wanted:
            if self._may_be_same(0, one) and self._may_be_same(1, two) and _alike(one, two):
                self._named[0][one] = two
                self._named[1][two] = one

    def _may_be_same(self, side: Side, value: Value) -> bool:
        return value not in self._given[side] and value.producer not in self.partners[side]

    def _conflicts(self, first: Node, second: Node, *, strict: bool) -> bool:
        """Return whether a pair would part values that have the same name in both graphs.

        Args:
            first, second: the pair.
            strict: also if no consumers of these values are paired yet.
        """
        for side, node, other in ((0, first, second), (1, second, first)):
            for value in filter(None, node._outputs):
                named = self._named[side].get(value)
                if named is None or named in other._outputs:
                    continue
                if strict or self._is_boundary(side, value, named):
                    return True
        return False

    def _is_boundary(self, side: Side, value: Value, named: Value) -> bool:
        if value.is_graph_output and named.is_graph_output:
            return True
        there = set(named.readers)
        return any(self.partners[side].get(reader) in there for reader in value.readers)

    # --- along the edges --------------------------------------------------------------------------

    def _forward(self, side: Side, node: Node) -> Hashable | None:
        """Return the operator and what it reads; None unless the other side has all of it."""
        ids = self.ids_of(side, node)
        captured = [self.id_of(side, value) for value in node.captured]
        is_known = any(ids) and not any(each.startswith("only ") for each in (*ids, *captured))
        return (_operator(node), *ids, *sorted(captured)) if is_known else None

    def _backward(self, side: Side, node: Node) -> Hashable | None:
        """Return the operator and its readers; None unless all of them are paired."""
        found: list[Hashable] = []
        for index, value in enumerate(node._outputs):
            if value is None:
                continue
            for reader in value.readers:
                if reader not in self.partners[side]:
                    return None
                one = reader if side == 0 else self.partners[side][reader]
                slots: tuple[int, ...] = ()
                if reader.domain or reader.op_type not in COMMUTATIVE:
                    slots = tuple(at for at, read in enumerate(reader._inputs) if read is value)
                found.append((index, one.id, slots))
            if value.is_graph_output:
                places = [at for at, pair in enumerate(self.output_pairs) if pair[side] is value]
                found.append((index, "output", tuple(places)))
        return (_operator(node), tuple(sorted(map(repr, found)))) if found else None

    def _spread(
        self, key: Key, following: Callable[[Node], Iterable[Node]], *, is_strict: bool
    ) -> None:
        """Pair free nodes of equal keys, then those next to the new pairs, and so on."""
        waiting: tuple[dict[Hashable, list[Node]], ...] = (defaultdict(list), defaultdict(list))
        wave: list[list[Node]] = [[*self.free(side)] for side in (0, 1)]
        while any(wave):
            touched = dict.fromkeys(self._keyed(key, wave, waiting))
            fresh: list[dict[Node, None]] = [{}, {}]
            for known in touched:
                for pair in self._best(key, known, waiting, is_strict=is_strict):
                    self._pair(*pair)
                    for side, node in enumerate(pair):
                        fresh[side].update(dict.fromkeys(following(node)))
            wave = [
                [node for node in fresh[side] if node not in self.partners[side]] for side in (0, 1)
            ]

    def _keyed(
        self, key: Key, wave: list[list[Node]], waiting: tuple[dict[Hashable, list[Node]], ...]
    ) -> Iterator[Hashable]:
        """Put nodes where those of the other side find them; yield the keys of the first side."""
        for side, nodes in enumerate(wave):
            for node in nodes:
                known = None if _is_constant(node) else key(side, node)
                if known is not None and node not in waiting[side][known]:
                    waiting[side][known].append(node)
                    yield known

    def _best(
        self,
        key: Key,
        known: Hashable,
        waiting: tuple[dict[Hashable, list[Node]], ...],
        *,
        is_strict: bool,
    ) -> Iterator[tuple[Node, Node]]:
        """Yield pairs of a key: those of the same label first, then by settings, then in order."""
        sides = [
            [node for node in waiting[side][known]
             if node not in self.partners[side] and key(side, node) == known]
            for side in (0, 1)
        ]  # fmt: skip
        for look in (_label, _settings, _operator):
            there: dict[Hashable, list[Node]] = defaultdict(list)
            for node in sides[1]:
                there[look(node)].append(node)
            for node in [*sides[0]]:
                fitting = (
                    each
                    for each in there[look(node)]
                    if not self._conflicts(node, each, strict=is_strict)
                )
                found = next(fitting, None)
                if found is not None:
                    there[look(node)].remove(found)
                    sides[0].remove(node)
                    sides[1].remove(found)
                    yield node, found


def _ports(
    first: Iterable[Value], second: Iterable[Value], *, by_name: bool
) -> list[tuple[Value | None, Value | None]]:
    """Pair inputs or outputs: by name, and the rest in order if their types are equal."""
    ones, twos = [*first], [*second]
    if not by_name:
        longest = max(len(ones), len(twos))
        padded = [[*side, *[None] * (longest - len(side))] for side in (ones, twos)]
        return [*zip(*padded, strict=True)]
    names = {value.name: value for value in twos}
    found: list[tuple[Value | None, Value | None]]
    found = [(value, names.pop(value.name, None)) for value in ones]
    for at, (one, two) in enumerate(found):
        alike = (each for each in names.values() if two is None and one and each.type == one.type)
        other = next(alike, None)
        if other is not None:
            found[at] = (one, names.pop(other.name))
    return [*found, *((None, value) for value in names.values())]


def _operator(node: Node) -> tuple[str, str, str]:
    return node.callee


def _label(node: Node) -> str:
    return node.label


def _settings(node: Node) -> str:
    return repr(sorted(node.settings.items(), key=lambda item: item[0]))


def _names(values: Iterable[Value | None]) -> Iterator[str]:
    return ("" if value is None else value.name for value in values)


def _read(node: Node) -> Iterator[Value]:
    """Yield what a node and its bodies read."""
    return (value for value in (*node._inputs, *node.captured) if value is not None)


def _consumers(node: Node) -> Iterable[Node]:
    return node.successors


def _producers(node: Node) -> Iterable[Node]:
    return node.predecessors


def _is_constant(node: Node) -> bool:
    return node.is_op("Constant") and node.constant_tensor() is not None


def _alike(one: Value, two: Value) -> bool:
    """Return whether the types of two values of one name do not exclude that they are the same."""
    return one.rank == two.rank or None in (one.rank, two.rank)
