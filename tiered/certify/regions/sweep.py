"""Two models without a trace: equal parts are found by their structure, the rest is proved.

The nodes of the second model are visited in order. A value has the class of its operator and of the
classes of its operands, so what both models compute in the same way has one class. Where a value of
the second model has the name of one of the first and another class, the nodes between them and the
last common values are a region. If it is proved, the two have one class from then on. A tool that
folds a node into the one before it may leave the name of the earlier value: if the second model has
no value with the name of a later one, that is tried, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import onnx

from tiered.certify.checker import Checker, Proof
from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.evaluate import is_known_function
from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import Border, Given, Problem, Side, content_of
from tiered.certify.regions.problems import KnownSizes, side_of, stored
from tiered.certify.regions.watched_rewrites import border_of
from tiered.certify.trial_sizes import TrialSizes
from tiered.graph import Model
from tiered.graph.queries.equal_tensors import EqualTensors
from tiered.verify.live_extract import part_of
from tiered.verify.part_extraction import GraphPart, calls

DEPTHS: Final = (0, 2, 6, 16)
"""How many nodes before a value are part of its region even if they are common."""
LATER: Final = 2
"""How many nodes after a value a tool may have folded into the node before it."""
MOST_FAILED: Final = 16
"""A region with more values that were not proved by themselves is tried for outputs alone."""
MOST_NODES: Final = 300
MOST_READ: Final = 16 << 30
"""The bytes of weights that are read to find equal ones; what is not compared counts as different,
so that less may be proved."""
RESULT: Final = "result"


@dataclass(frozen=True)
class SweepStep:
    """A value of both models that differs in structure, and what is known of it.

    Attributes:
        name: the value.
        proof: of the region before it.
        problem: that region; None if there was none to try.
        is_output: whether it is an output of the models.
    """

    name: str
    proof: Proof
    problem: Problem | None
    is_output: bool


@dataclass
class Swept:
    """What was found of two models.

    Attributes:
        steps: the regions that were proved, and outputs that were not.
        common: how many values of the second model had the same structure at once.
    """

    steps: list[SweepStep] = field(default_factory=list)
    common: int = 0

    @property
    def left(self) -> Sequence[SweepStep]:
        """The outputs without a proof."""
        return [step for step in self.steps if not step.proof.is_proved]

    @property
    def empty(self) -> Sequence[str]:
        """The values that differ for empty tensors, where that is all."""
        return [step.name for step in self.steps if step.proof.except_for]

    @property
    def domain(self) -> str:
        """The weakest domain of a proof; "bits" if all is common."""
        return "reals" if any(step.proof.domain == "reals" for step in self.steps) else "bits"


class Sweep:
    """Two models, and the classes of their values."""

    def __init__(self, before: Model, after: Model) -> None:
        self._before = before
        self._parts = part_of(before), part_of(after)
        self._opsets = [dict(model.opset_imports) for model in (before, after)]
        self._numbers: dict[Hashable, int] = {}
        self._classes: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._named: dict[int, str] = {}
        self._seen: tuple[set[int], set[int]] = (set(), set())
        self._failed: set[str] = set()
        self._checker = Checker()
        self._known = KnownSizes(self._parts[0], self._type)
        self._found = Swept()

    def run(self) -> Swept:
        """Return what is known of the outputs.

        Raises:
            Unproved: the models have other inputs, outputs or opsets.
        """
        first, second = self._parts
        if [*first.outputs] != [*second.outputs] or [*first.inputs] != [*second.inputs]:
            raise Unproved("the models have other inputs or outputs")
        shared = self._opsets[0].keys() & self._opsets[1].keys()
        if any(self._opsets[0][domain] != self._opsets[1][domain] for domain in shared):
            raise Unproved("the models import other opsets")
        self._start()
        for at in first.in_order(first.nodes):
            self._visit(0, at)
        self._named = {number: name for name, number in self._classes[0].items()}
        for at in second.in_order(second.nodes):
            self._visit(1, at)
            self._unify(at)
        for name in second.outputs:
            self._output(name)
        return self._found

    # --- classes -------------------------------------------------------------------------------

    def _start(self) -> None:
        """Give the constants and inputs of both models their classes.

        Of weights in files only what tells them apart is read, and nothing of those that both have.
        """
        named = [
            (classes, name, stored(part, name))
            for part, classes in zip(self._parts, self._classes, strict=True)
            for name in part.weights
            if name not in part.inputs
        ]
        keys = EqualTensors(MOST_READ).keys_of_all([tensor for *_, tensor in named])
        for (classes, name, _), key in zip(named, keys, strict=True):
            classes[name] = self._number(("constant", key))
        for part, classes in zip(self._parts, self._classes, strict=True):
            classes.update((name, self._number(("input", name))) for name in part.inputs)

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _visit(self, index: int, at: int) -> None:
        """Give the results of a node their classes."""
        part, classes = self._parts[index], self._classes[index]
        node = part.nodes[at]
        reads: tuple[Hashable, ...] = tuple(classes.get(name, -1) for name in node.input)
        captured = [name for name in part.reads[at] if name not in node.input]
        held = (content_of(node), *reads, *((name, classes.get(name, -1)) for name in captured))
        opset = self._opsets[index].get(node.domain, 1)
        if any(call in part.callees for call in calls(node)):
            held = (
                *held,
                tuple(f.SerializeToString(deterministic=True) for f in part.callees.values()),
            )
        elif not is_known_function(node.op_type, node.domain, opset):
            held = (*held, tuple(node.output))
        is_same = node.op_type == "Identity" and not node.domain and node.input[0] in classes
        for place, name in enumerate(node.output):
            if name:
                kept = classes[node.input[0]] if is_same else None
                classes[name] = self._number((*held, place)) if kept is None else kept
                self._seen[index].add(classes[name])

    # --- regions -------------------------------------------------------------------------------

    def _unify(self, at: int) -> None:
        """Prove the results of a node of the second model, where the first one has their names."""
        before, after = self._classes
        names = [name for name in self._parts[1].nodes[at].output if name]
        for name in names:
            if after[name] in self._named:
                self._found.common += 1
            elif name in before and not self._is_found(name):
                self._failed.add(name)

    def _output(self, name: str) -> None:
        before, after = self._classes
        if before.get(name) != after.get(name):
            failed = self._prove(name, name, DEPTHS, is_output=True)
            if failed is not None:
                self._found.steps.append(failed)

    def _is_found(self, name: str) -> bool:
        """Prove that a value is that of its name in the first model, or one shortly after it."""
        if self._prove(name, name, DEPTHS[:1]) is None or self._prove_later(name):
            return True
        return self._prove(name, name, DEPTHS[1:2]) is None

    def _prove_later(self, name: str) -> bool:
        """Prove that a value of the second model is a later one of the first, which alone has it.

        Returns:
            Whether it is proved.
        """
        first, second = self._parts
        original = name
        for _ in range(LATER):
            users = first.consumers.get(original, ())
            nodes = [first.nodes[at] for at in users]
            if len(nodes) != 1 or original in first.outputs or not nodes[0].output:
                return False
            original = nodes[0].output[0]
            if not original or second.has(original):
                return False
            if self._prove(original, name, DEPTHS[:1]) is None:
                return True
        return False

    def _prove(
        self, original: str, name: str, depths: Sequence[int], *, is_output: bool = False
    ) -> SweepStep | None:
        """Prove that a value of the second model is one of the first; return what fails, if any."""
        failed: SweepStep | None = None
        for depth, is_aligned in itertools.product(depths, (False, True)):
            try:
                problem = self._problem(original, name, depth, is_aligned=is_aligned)
                if not is_output:
                    self._check_size(problem)
            except Unproved as error:
                failed = failed or SweepStep(name, Proof("", reason=str(error)), None, is_output)
                break
            proof = self._checker.prove(problem)
            step = SweepStep(name, proof, problem, is_output)
            if proof.is_proved:
                self._found.steps.append(step)
                before, after = self._classes
                after[name] = before[original]
                self._seen[1].add(before[original])
                return None
            failed = failed or step
        return failed

    def _check_size(self, problem: Problem) -> None:
        """Check that a region does not repeat many others that failed.

        Raises:
            Unproved: it does.
        """
        inside = {name for node in problem.sides[1].nodes for name in node.output}
        if len(inside & self._failed) > MOST_FAILED:
            raise Unproved(f"more than {MOST_FAILED} values before it are not proved")

    def _problem(self, original: str, name: str, depth: int, *, is_aligned: bool) -> Problem:
        """Return the region before two values, back to common values.

        Args:
            original: the value of the first model.
            name: that of the second one.
            depth: how many nodes before them are inside even if they are common.
            is_aligned: whether what is a border of one side is also one of the other.

        Raises:
            Unproved: it is too large, or the type of a border is not known.
        """
        cut: set[int] = set()
        while True:
            borders: dict[int, str] = {}
            names = enumerate((original, name))
            sides = tuple(self._side(index, each, depth, cut, borders) for index, each in names)
            if not is_aligned or borders.keys() <= cut:
                break
            cut |= borders.keys()
        types: dict[str, Border] = {}
        renamed: dict[str, str] = {}
        for number, border in borders.items():
            value = self._named[number]
            kind = self._type(value)
            if kind is None:
                raise Unproved(f"the type of {value} is not known")
            types[border], renamed[border] = kind, value
        opsets = {**self._opsets[0], **self._opsets[1]}
        given = _Renamed(self._known, renamed)
        return Problem(
            (sides[0], sides[1]), types, [RESULT], opsets, given, self._known.sizes,
            excuses_empty=True,
        )  # fmt: skip

    def _side(
        self, index: int, name: str, depth: int, cut: set[int], borders: dict[int, str]
    ) -> Side:
        """Return the nodes before a value on one side; common values get the same names."""
        part, classes = self._parts[index], self._classes[index]

        def is_border(value: str, distance: int) -> bool:
            if value not in part.producer:
                return value in part.inputs
            number = classes.get(value, -1)
            is_common = all(number in seen for seen in self._seen)
            return number in cut or (distance > depth and is_common)

        nodes, reads = _cone(part, name, is_border)
        bare = side_of(part, nodes, [name])
        first = [
            onnx.helper.make_node(
                "Identity", [borders.setdefault(classes[read], f"border {len(borders)}")], [read]
            )
            for read in reads
        ]
        last = onnx.helper.make_node("Identity", [name], [RESULT])
        return Side([*first, *bare.nodes, last], bare.constants, bare.functions)

    def _type(self, name: str) -> Border | None:
        return border_of(self._before, name)


def _cone(
    part: GraphPart, name: str, is_border: Callable[[str, int], bool]
) -> tuple[set[int], list[str]]:
    """Return the nodes before a value, and the borders that they read.

    Raises:
        Unproved: they are too many.
    """
    nodes: set[int] = set()
    reads: dict[str, None] = {}
    frontier, distance = [name], 0
    seen = {name}
    while frontier:
        after: list[str] = []
        for value in frontier:
            # The value itself is what is asked for, whatever is known of it.
            if distance and is_border(value, distance):
                reads[value] = None
                continue
            at = part.producer.get(value)
            if at is None:
                if value in part.inputs:
                    reads[value] = None
                continue
            nodes.add(at)
            if len(nodes) > MOST_NODES:
                raise Unproved(f"more than {MOST_NODES} nodes differ before {name}")
            after += [read for read in part.reads[at] if read not in seen]
            seen.update(part.reads[at])
        frontier, distance = after, distance + 1
    # A value that is computed inside is none of the borders.
    inside = {out for at in nodes for out in part.nodes[at].output}
    return nodes, [read for read in reads if read not in inside]


class _Renamed(Given):
    def __init__(self, known: KnownSizes, names: Mapping[str, str]) -> None:
        self._known = known
        self._names = names

    def at(self, sizes: TrialSizes) -> Mapping[str, Array]:
        given = self._known.of([*self._names.values()]).at(sizes)
        return {new: given[old] for new, old in self._names.items() if old in given}
