"""Axis maps: which axes of the operands and outputs of a node are walked together, and how.

A map gives each axis of each operand and output an iterator, a number, as the loops of a kernel
have: `MatMul(x, w)` of ranks 3 and 2 has the iterators (0, 1, 2), (2, 3) and (0, 1, 3), and sums
over 2. What each iterator does is its kind, as in MLIR's indexing maps and iterator types. An
operand that broadcasts along an iterator has its axis with one element.

How a cut passes through a node, where the samples of a batch go, and where packed tokens go are
derived from this one description.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.graph import Node, Value, is_deterministic
from tiered.graph.core.types import Dim
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.graph.opset.aspect import Aspect
from tiered.graph.queries.op_traits import RANDOM
from tiered.rewriter import Skip

Dims = tuple[Dim, ...]

Axes = tuple[int | None, ...]
"""The iterator of each axis of a tensor; None for an axis of one element that none walks along."""

Labels = tuple[int, ...]
"""Iterators, in the order of axes."""


class IteratorKind(Enum):
    """What the elements of the outputs at one index of an iterator need.

    Attributes:
        PARALLEL: the elements of the operands at this index, and none at another one. The same
            node computes a part of the outputs of the same part of the operands.
        REDUCTION: all elements along it: they are summed, normalised or compared.
        WINDOW: neighbours of this index, the same number for each, as kernels of convolutions have.
        OPAQUE: elements at indices that are not known, or that no one formula says.
    """

    PARALLEL = "parallel"
    REDUCTION = "reduction"
    WINDOW = "window"
    OPAQUE = "opaque"


class WindowSteps(NamedTuple):
    """How a window walks along the axis of an operand: from element stride * index - pad on.

    Attributes:
        stride: the distance of the first elements for neighbours of the output.
        pad: the elements before the operand that the first output begins at.
        extent: the elements from the first to the last that one element of the output needs.
    """

    stride: int = 1
    pad: int = 0
    extent: int = 1


_NONE: Final[Mapping[int, IteratorKind]] = MappingProxyType({})
_NO_WINDOWS: Final[Mapping[int, WindowSteps]] = MappingProxyType({})


class AxisMap(NamedTuple):
    """How the axes of a node belong together.

    Attributes:
        inputs: the iterators of each operand, in the operator's newest form; None for an operand
            without iterators: each element of the outputs may read all of it.
        outputs: the iterators of each output; None for an output that the map does not describe.
        kinds: the iterators that are not parallel; those of `windows` need no entry.
        windows: how the windows walk along the axis of the first operand.
        groups: the iterators of neighbouring axes of the operand, and those of the result that
            hold the same elements in the same order, where a Reshape merges or splits axes.
        broadcasts: the operands that may have one element along an iterator where the result has
            more.
        has_shape: whether the shape of the result is an operand, or follows from axes of one
            element: a part is written with its own shape.
    """

    inputs: tuple[Axes | None, ...]
    outputs: tuple[Axes | None, ...]
    kinds: Mapping[int, IteratorKind] = _NONE
    windows: Mapping[int, WindowSteps] = _NO_WINDOWS
    groups: tuple[tuple[Labels, Labels], ...] = ()
    broadcasts: tuple[int, ...] = ()
    has_shape: bool = False

    def kind(self, label: int) -> IteratorKind:
        """Return the kind of an iterator."""
        return (
            IteratorKind.WINDOW
            if label in self.windows
            else self.kinds.get(label, IteratorKind.PARALLEL)
        )

    def is_parallel(self, label: int | None) -> bool:
        """Return whether an axis has an iterator, and a parallel one."""
        return label is not None and self.kind(label) is IteratorKind.PARALLEL

    def at(self, slot: int, axis: int) -> int | None:
        """Return the iterator of an axis of an operand; None if it has none."""
        axes = self.inputs[slot] if slot < len(self.inputs) else None
        return None if axes is None else axes[axis]


class NoMap(Exception):
    """The reason why a node has no axis map: what decides it is not known."""


Rule = Callable[[Node], AxisMap]
"""Returns the map of a node, or raises `NoMap`."""

AXES: Final[Aspect[Rule]] = Aspect("axes")

axes_rule = AXES.rule
"""Registers the decorated function as the rule of the axes of operators.

    @axes_rule("Scale", domain="my.domain")
    def scale(node):
        axes = whole(node.inputs[0].rank)
        return AxisMap((axes, None), (axes,))

The ranks of the operands and of the first output are known.
"""


OWN_DOMAINS: Final = ("", "com.microsoft")
"""The domains of operators that rules of tiered are for; they ask for the ranks that they need."""

NO_RANK: Final = Skip("its rank is not known")


def axis_map(node: Node) -> AxisMap | Skip:
    """Return how the axes of a node belong together, or why that is not known."""
    why = unknown(node)
    if why is not None:
        return why
    try:
        return map_of(node)
    except (NoEquivalentForm, NoMap) as reason:
        return Skip("{}", str(reason))


def unknown(node: Node) -> Skip | None:
    """Return why nothing is known of a node, whatever the rules of its operator say."""
    model = node.owner.model
    if model.functions and node.domain in OWN_DOMAINS and model.function(*node.callee):
        # A function may compute anything; a rule of a user speaks for the operator by its name.
        return Skip("a function has its name")
    if node.has_references:
        return Skip("{}", node.parameter_reason)
    if not node.domain:
        if node.schema is None:
            return Skip("its opset has no such operator")
        if node.op_type in RANDOM and not is_deterministic(node):
            return Skip("it draws random numbers")
    return None


def map_of(node: Node) -> AxisMap:
    """Return how the axes of a node belong together, where `unknown` finds no obstacle.

    Raises:
        NoMap: it has no rule, or what decides it is not known.
        NoEquivalentForm: the newest form of its operator cannot express it.
    """
    rule = AXES.of(node)
    if rule is None:
        raise NoMap("how its axes belong together is not known")
    if node.domain not in OWN_DOMAINS:
        values = (*node.operands, *node.outputs[:1])
        if any(value is not None and value.shape is None for value in values):
            raise NoMap(NO_RANK.reason)
    try:
        found = rule(node)
    except IndexError:
        # Operators of other domains are not checked when a model is loaded.
        raise NoMap("it lacks an operand") from None
    if all(value is not None for value in node.operands):
        return found
    pairs = zip(node.operands, found.inputs, strict=False)
    return found._replace(inputs=tuple(own if value is not None else None for value, own in pairs))


# --- what rules are written with ------------------------------------------------------------------


def whole(rank: int, start: int = 0) -> Labels:
    """Return `rank` consecutive iterators."""
    return tuple(range(start, start + rank))


def dims_of(value: Value | None) -> Dims:
    """Return the dims of a value.

    Raises:
        NoMap: its rank is not known.
    """
    if value is None or value.shape is None:
        raise NoMap(NO_RANK.reason)
    return value.shape


def own_labels(node: Node, least: int = 0) -> Labels:
    """Return iterators for the axes of the first operand.

    Raises:
        NoMap: its rank is not known, or less than `least`.
    """
    rank = len(dims_of(node.operands[0]))
    if rank < least:
        raise NoMap(f"its rank is {rank}")
    return whole(rank)


def broadcast(value: Value | None, labels: Labels) -> Axes | None:
    """Return the iterators of an operand that broadcasts to a result with the given ones.

    Raises:
        NoMap: it has more axes.
    """
    if value is None:
        return None
    skipped = len(labels) - len(dims_of(value))
    if skipped < 0:
        raise NoMap("an operand has more axes than the result")
    return labels[skipped:]


def all_of(kind: IteratorKind, labels: Iterable[int]) -> dict[int, IteratorKind]:
    """Return the entries of iterators of one kind."""
    return dict.fromkeys(labels, kind)


def axis_of(node: Node, rank: int, default: int | None = None) -> int:
    """Return the attribute `axis` of a node, counted from the front.

    Raises:
        NoMap: it is out of range.
    """
    axis: int = node.attr("axis") if default is None else node.attr("axis", default)
    if not -rank <= axis < rank:
        raise NoMap("its axis is out of range")
    return axis % rank


def axes_in(axes: np.ndarray[Any, Any] | Sequence[int], rank: int) -> Labels:
    """Return axes, counted from the front.

    Raises:
        NoMap: one is out of range.
    """
    # A file may hold axes as an array of any rank; runtimes reject those that are no vector.
    given = axes.ravel().tolist() if isinstance(axes, np.ndarray) else axes
    if any(not -rank <= axis < rank for axis in given):
        raise NoMap("its axes are out of range")
    return tuple([axis % rank for axis in given])


def first_alone(node: Node, kinds: Mapping[int, IteratorKind] = _NONE) -> AxisMap:
    """Return the map of a node: its outputs have the axes of its first operand."""
    others, outputs = len(node.operands) - 1, len(node.outputs)
    axes = _alone(len(dims_of(node.operands[0])), others, outputs)
    return axes._replace(kinds=kinds) if kinds else axes


@lru_cache
def _alone(rank: int, others: int, outputs: int) -> AxisMap:
    labels = whole(rank)
    return AxisMap((labels, *(None,) * others), (labels,) * outputs)
