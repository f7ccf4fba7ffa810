"""The analysis: it follows the samples of a batch from the inputs through every operator.

Where a Reshape of a batch of 1 leaves open which of several axes of size 1 is the batch, one is
chosen, and another one if the first leads to an operator that would mix samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from tiered.analysis.batching.sample_facts import (
    BatchRefusal,
    BatchRows,
    Counted,
    Fact,
    Listed,
    RefusedTensor,
    Sizes,
    Step,
    mentions,
)
from tiered.analysis.batching.twin import Twin
from tiered.analysis.batching.uniform_values import Uniformity
from tiered.graph import Graph, Model, Node, Value, is_deterministic
from tiered.graph.intervals.range_analysis import ranges
from tiered.graph.opset.aspect import Aspect
from tiered.graph.queries.op_traits import RANDOM
from tiered.graph.shape_inference.symbolic_dims import Poly, Size, size_of_dim
from tiered.support.errors import ShapeError

if TYPE_CHECKING:
    from tiered.analysis.batching.batch_edits import Rewriting

Made = Fact | None | list[Fact | None]
"""The facts of the outputs of a node: one for all of them, or one each."""

Rule = Callable[["Following", Node], Made]
"""Returns what is known of the outputs of a node; raises Refusal."""

BATCHES: Final[Aspect[Rule]] = Aspect("batch")
"""The rules of operators with samples among their operands."""

COUNTS: Final[Aspect[Rule]] = Aspect("count")
"""The rules of operators with numbers of samples among their operands."""

LISTS: Final[Aspect[Rule]] = Aspect("list of found")
"""The rules of operators with lists of what is found in the samples among their operands."""

Edit = Callable[["Rewriting"], None]

T = TypeVar("T")

MOST_TRIES: Final = 200
"""Limit of runs of the analysis with other choices."""


class Following:
    """What is known of the tensors of a model, and the edits that make it true for any batch.

    Attributes:
        model: the model; the analysis does not edit it.
        places: the axis of the batch, by input.
        old: the present size of the batch.
        name: the dim that the batch has in symbolic sizes.
        facts: what is known by value; nothing of those that are the same for every batch.
        edits: what has to change, in the order of the nodes.
        outputs: what is known after the edits of the outputs of each graph, by their place.
    """

    def __init__(
        self,
        model: Model,
        places: Mapping[Value, int],
        old: int,
        name: str,
        rule_of: Callable[[Node], Rule | None],
    ) -> None:
        self.model = model
        self.places = places
        self.old = old
        self.name = name
        self.facts: dict[Value | None, Fact] = {}  # an absent operand has none
        self.edits: list[Edit] = []
        self.outputs: dict[tuple[Graph, int], Fact] = {}
        self._rule_of = rule_of
        self._twin = Twin(model, places, name)
        self._chosen: dict[Node, int] = {}
        # The possibility that is followed first at a node: the last one taken at one like it.
        self._starts: dict[Node, int] = {}
        self._preferred: dict[object, int] = {}
        self._keys: dict[Node, object] = {}
        self._trail: dict[Node, int] = {}
        self._bakes: dict[Node, str] = {}
        # The dims of lists: they follow from the batch, too.
        self._lengths: set[str] = set()

    def close(self) -> None:
        self._twin.close()

    @property
    def batch(self) -> Size:
        """The size of the batch as a symbol."""
        return size_of_dim(self.name)

    # --- the run ------------------------------------------------------------------------------

    def run(self) -> None:
        """Follow the batch to the outputs.

        Raises:
            ShapeError: an operator mixes samples, or is not known; the message names it.
        """
        first: RefusedTensor | None = None
        for _ in range(MOST_TRIES):
            self.facts = {value: BatchRows(axis) for value, axis in self.places.items()}
            self.edits.clear()
            self.outputs.clear()
            self._trail.clear()
            self.follow(self.model.main)
            refused = self._refused(self.model.main.outputs)
            if refused is None:
                self._note_outputs()
                return
            first = first or refused
            if not self._choose_again(refused.node):
                break
        assert first is not None
        raise ShapeError(self._text(first))

    def _note_outputs(self) -> None:
        for graph in self.model.graphs():
            for at, value in enumerate(graph.outputs):
                fact = self.facts.get(value)
                if fact is not None:
                    self.outputs[graph, at] = fact

    def _refused(self, outputs: Iterable[Value]) -> RefusedTensor | None:
        """Return why an output does not follow from single samples; None if all do."""
        for value in outputs:
            fact, node = self.facts.get(value), value.producer
            if isinstance(fact, RefusedTensor):
                return fact
            if node is not None and (
                isinstance(fact, Counted) or (isinstance(fact, BatchRows) and fact.step != 0)
            ):
                return RefusedTensor(node, f"the output {value.name!r} counts the samples")
        return None

    def is_non_negative(self, value: Value) -> bool:
        """Return whether all elements are known to be at least 0."""
        return self.model.analysis(ranges)[value].low >= 0

    def _text(self, refused: RefusedTensor) -> str:
        node = refused.node
        text = f"change_batch: {node.op_type} {node.label!r}: {refused.reason}"
        ancestors = _ancestors(node)
        baked = [why for other, why in self._bakes.items() if other in ancestors]
        if baked and refused.reason not in baked:
            text += f"; before it, {baked[-1]}"
        return text

    def choose(self, node: Node, options: Sequence[T], why: str) -> T:
        """Return which of several possibilities is followed at a node."""
        count, key = len(options), tuple(options)
        self._trail[node] = count
        if count > 1:
            self._bakes[node] = why
        self._keys[node] = key
        start = self._starts.setdefault(node, self._preferred.get(key, 0))
        return options[self._place(start, self._chosen.get(node, 0), count)]

    @staticmethod
    def _place(start: int, turn: int, count: int) -> int:
        return (start + min(turn, count - 1)) % count

    def _choose_again(self, node: Node) -> bool:
        """Take the next possibility at the last choice that a node depends on."""
        ancestors = _ancestors(node)
        trail = list(self._trail)
        for at in reversed(range(len(trail))):
            other = trail[at]
            if other in ancestors and self._chosen.get(other, 0) + 1 < self._trail[other]:
                turn = self._chosen[other] = self._chosen.get(other, 0) + 1
                place = self._place(self._starts[other], turn, self._trail[other])
                self._preferred[self._keys[other]] = place
                for later in trail[at + 1 :]:
                    self._chosen.pop(later, None)
                    self._starts.pop(later, None)
                return True
        return False

    def follow(self, graph: Graph) -> None:
        """Follow the batch through the nodes of a graph."""
        for node in graph.topological_order():
            if not any(node.outputs):
                continue
            self._twin.unsettle(node)
            for value, fact in zip(node.outputs, self._outputs(node), strict=True):
                if value is not None:
                    self.learn(value, fact)

    def learn(self, value: Value, fact: Fact | None) -> None:
        """Record what is known of a value."""
        if fact is None:
            self.facts.pop(value, None)
        else:
            self.facts[value] = fact
        if isinstance(fact, Listed) and value.shape is not None:
            length = self.sizes(value)[fact.axis]
            if isinstance(length, Poly):
                self._lengths.update(*(names for names, _ in length.terms))
        if value.shape is not None and value.tensor is None:
            self._twin.state(value, self.sizes_now(value))

    def _outputs(self, node: Node) -> Sequence[Fact | None]:
        reads = node.reads
        facts = [self.facts[value] for value in reads if value in self.facts]
        count = len(node.outputs)
        if not facts:
            if not node.domain and node.op_type in RANDOM and not is_deterministic(node):
                reason = f"it draws random numbers for a batch of {self.old}"
                return (RefusedTensor(node, reason),) * count
            return (None,) * count
        refused = next((fact for fact in facts if isinstance(fact, RefusedTensor)), None)
        if refused is not None and not node.bodies:
            return (refused,) * count
        known = len(self.edits)
        try:
            made = self._by_rule(node, facts)
        except BatchRefusal as refusal:
            del self.edits[known:]
            return (refusal.origin or RefusedTensor(node, str(refusal)),) * count
        return made if isinstance(made, list) else [made] * count

    def _by_rule(self, node: Node, facts: Sequence[Fact]) -> Made:
        counts = None if node.bodies else self._number(node, facts)
        if counts is not None:
            return counts
        rule = self._rule_of(node)
        if any(isinstance(fact, Listed) for fact in facts):
            rule = LISTS.of(node)
            if rule is None:
                raise BatchRefusal(
                    "how many entries a sample has in its list is known in a run only"
                )
        elif any(isinstance(fact, BatchRows) and fact.step != 0 for fact in facts):
            rule = COUNTS.of(node)
            if rule is None:
                raise BatchRefusal("it computes with the numbers of samples")
        if rule is None:
            raise BatchRefusal("the operator may mix samples: it has no rule")
        if node.has_references:
            raise BatchRefusal(str(node.parameter_reason))
        return rule(self, node)

    def _number(self, node: Node, facts: Sequence[Fact]) -> list[Fact | None] | None:
        """Return what is known of arithmetic with sizes; None for other nodes."""
        is_size = node.is_op("Shape") or node.is_op("Size")
        if not is_size and any(isinstance(fact, BatchRows | Listed) for fact in facts):
            return None
        elements = self._twin.elements(node.output) if len(node.outputs) == 1 else None
        if elements is not None and not any(each is None for each in elements.ravel()):
            names = (self.name, *self._lengths)
            is_open = any(mentions(each, name) for each in elements.ravel() for name in names)
            return [Counted() if is_open else None]
        if is_size:
            return [Counted()]
        sizes = self._twin.inferred(node)
        is_fixed = [
            value is None or size == self.sizes(value)
            for value, size in zip(node.outputs, sizes, strict=False)
        ]
        if all(is_fixed) and len(is_fixed) == len(node.outputs) and is_deterministic(node):
            return [Counted()] * len(is_fixed)
        return None

    # --- what rules ask -----------------------------------------------------------------------

    def sizes(self, value: Value | None) -> Sizes:
        """Return the present sizes of a value.

        Raises:
            Refusal: its rank is unknown.
        """
        shape = None if value is None else value.shape
        if shape is None:
            raise BatchRefusal(f"the rank of {'' if value is None else value.name!r} is not known")
        size = self.model.dims.size
        return tuple([size(dim) for dim in shape])

    def sizes_now(self, value: Value) -> Sizes:
        """Return the sizes of a value for any batch."""
        sizes, fact = self.sizes(value), self.facts.get(value)
        if isinstance(fact, BatchRows):
            return (*sizes[: fact.axis], fact.size(self.batch), *sizes[fact.axis + 1 :])
        return sizes

    def rank(self, value: Value | None) -> int:
        return len(self.sizes(value))

    def elements(self, value: Value | None) -> list[Size | None] | None:
        """Return the elements of a small integer tensor for any batch; None if it is not one.

        Raises:
            Refusal: how an element depends on the size of the batch is not known.
        """
        if value is None or (found := self._twin.elements(value)) is None:
            return None
        known = [int(each) if isinstance(each, np.integer) else each for each in found.ravel()]
        if None in known and isinstance(self.facts.get(value), Counted):
            raise BatchRefusal(f"how {value.name!r} depends on the size of the batch is not known")
        return known

    def inferred(self, node: Node) -> Sizes:
        """Return the sizes of the first output of a node that follow from its operands.

        Raises:
            Refusal: they are not known.
        """
        sizes = self._twin.inferred(node)
        if not sizes or sizes[0] is None:
            raise BatchRefusal("the shape of its result is not known")
        return sizes[0]

    def rows(self, node: Node, slot: int) -> BatchRows | None:
        """Return the samples of an operand; None if it is the same for every batch.

        Raises:
            Refusal: it depends on the size of the batch.
        """
        fact = self.facts.get(node.input(slot))
        if isinstance(fact, Counted):
            raise BatchRefusal("it computes with the size of the batch")
        if isinstance(fact, RefusedTensor):
            raise BatchRefusal(fact.reason, fact)
        if isinstance(fact, Listed):
            name = node.given(slot).name
            raise BatchRefusal(f"its operand {name!r} lists what is found in all samples")
        return None if fact is None else fact._replace(step=0)

    def samples(self, node: Node) -> BatchRows:
        """Return the samples of the first operand.

        Raises:
            Refusal: it has none: what another one is depends on the size of the batch.
        """
        rows = self.rows(node, 0)
        if rows is None:
            raise BatchRefusal("it computes with the size of the batch")
        return rows

    def step(self, node: Node, slot: int) -> Step:
        """Return what each further sample adds to the elements of an operand."""
        fact = self.facts.get(node.input(slot))
        return fact.step if isinstance(fact, BatchRows) else 0

    def shared(self, node: Node, *slots: int) -> None:
        """Check that operands are the same for every sample.

        Raises:
            Refusal: one is not.
        """
        for slot in slots:
            if self.rows(node, slot) is not None:
                name = node.given(slot).name
                raise BatchRefusal(f"its operand {name!r} differs from sample to sample")

    def in_rows(self, node: Node) -> dict[int, BatchRows]:
        """Return the operands that carry samples.

        Raises:
            Refusal: one depends on the size of the batch.
        """
        found = {slot: self.rows(node, slot) for slot in range(len(node.inputs))}
        return {slot: rows for slot, rows in found.items() if rows is not None}

    # --- operands that are the same for every sample --------------------------------------------

    def spread(self, node: Node, slot: int, rows: BatchRows) -> None:
        """Repeat an operand for each sample.

        Raises:
            Refusal: the operand differs between the samples of the present batch.
        """
        value = node.given(slot)
        self.check_uniform(value, rows)
        self.edits.append(lambda to: to.set_input(node, slot, to.spread(node.owner, value, rows)))

    def check_uniform(self, value: Value, rows: BatchRows) -> None:
        """Check that a value has equal numbers for each sample of the present batch.

        Raises:
            Refusal: it has not; the constant is named.
        """
        size = self.sizes(value)[rows.axis]
        if size != rows.size(self.old):
            raise BatchRefusal(f"{value.name!r} has size {size} along the batch")
        if not rows.is_whole:
            self.check_static(value, rows)
        if not Uniformity(self.old, self.sizes).holds(value, rows):
            is_constant = value.tensor is not None
            what, has = ("constant", "has") if is_constant else ("value", "may have")
            raise BatchRefusal(
                f"its {what} {value.name!r} bakes the batch of {self.old}: it {has} other numbers "
                "for each sample"
            )

    def check_static(self, value: Value, rows: BatchRows) -> None:
        """Check that a Reshape can make three axes of that of the batch.

        Raises:
            Refusal: a size after it, or a factor of it, is dynamic.
        """
        sizes = (*self.sizes(value)[rows.axis + 1 :], rows.outer, rows.inner)
        if not all(isinstance(size, int) for size in sizes):
            raise BatchRefusal(f"{value.name!r} has dynamic dims behind those of the batch")

    def known_size(self, rows: BatchRows) -> Size:
        """Return the size of an axis as a multiple of the batch.

        Raises:
            Refusal: a factor of it is dynamic.
        """
        if not isinstance(rows.outer, int) or not isinstance(rows.inner, int):
            raise BatchRefusal("the axis of the batch has a dynamic factor")
        return rows.size(self.batch)


def _ancestors(node: Node) -> set[Node]:
    """Return the nodes that a node depends on, outside of its body too, with itself."""
    found, pending = {node}, [node]
    while pending:
        each = pending.pop()
        reads = each.reads
        above = [value.producer for value in reads]
        above += [each.owner.parent_node]
        above += [inner.producer for body in each.bodies for inner in body.outputs]
        for other in above:
            if other is not None and other not in found:
                found.add(other)
                pending.append(other)
    return found
