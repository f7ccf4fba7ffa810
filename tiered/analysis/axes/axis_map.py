"""Axis maps: which axes of the operands and outputs of a node are walked together, and how.

A map gives each axis of each operand and output an iterator, a number, as the loops of a kernel
have: `MatMul(x, w)` of ranks 3 and 2 has the iterators (0, 1, 2), (2, 3) and (0, 1, 3), and sums
over 2. What each iterator does is its kind, as in MLIR's indexing maps and iterator types. An
operand that broadcasts along an iterator has its axis with one element.

How a cut passes through a node, where the samples of a batch go, and where packed tokens go are
derived from this one description.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from tiered.graph import Node, Value, is_deterministic
from tiered.graph.core.types import Dim
from tiered.graph.opset.aspect import Aspect

Dims = tuple[Dim, ...]

Axes = tuple[int | None, ...]
"""The iterator of each axis of a tensor; None for an axis of one element that none walks along."""

Labels = tuple[int, ...]
"""Iterators, in the order of axes."""


class Kind(Enum):
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


class Steps(NamedTuple):
    """How a window walks along the axis of an operand: from element stride * index - pad on.

    Attributes:
        stride: the distance of the first elements for neighbours of the output.
        pad: the elements before the operand that the first output begins at.
        extent: the elements from the first to the last that one element of the output needs.
    """

    stride: int = 1
    pad: int = 0
    extent: int = 1


_NONE: Final[Mapping[int, Kind]] = MappingProxyType({})
_NO_WINDOWS: Final[Mapping[int, Steps]] = MappingProxyType({})


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
    kinds: Mapping[int, Kind] = _NONE
    windows: Mapping[int, Steps] = _NO_WINDOWS
    groups: tuple[tuple[Labels, Labels], ...] = ()
    broadcasts: tuple[int, ...] = ()
    has_shape: bool = False

    def kind(self, label: int) -> Kind:
        """Return the kind of an iterator."""
        return Kind.WINDOW if label in self.windows else self.kinds.get(label, Kind.PARALLEL)

    def is_parallel(self, label: int | None) -> bool:
        """Return whether an axis has an iterator, and a parallel one."""
        return label is not None and self.kind(label) is Kind.PARALLEL

    def at(self, slot: int, axis: int) -> int | None:
        """Return the iterator of an axis of an operand; None if it has none."""
        axes = self.inputs[slot] if slot < len(self.inputs) else None
        return None if axes is None else axes[axis]


Rule = Callable[[Node], AxisMap | None]
"""Returns the map of a node, or None; the ranks of its operands and first output are known."""

AXES: Final[Aspect[Rule]] = Aspect("axes")

axes_rule = AXES.rule
"""Registers the decorated function as the rule of the axes of operators.

    @axes_rule("Scale", domain="my.domain")
    def scale(node):
        axes = whole(node.inputs[0].rank)
        return AxisMap((axes, None), (axes,))
"""


_OWN_DOMAINS: Final = ("", "com.microsoft")
"""The domains of operators that rules of tiered are for."""


def axis_map(node: Node) -> AxisMap | None:
    """Return how the axes of a node belong together.

    None if the operator has no rule, if attributes or operands that decide it are not known, or if
    the rank of an operand or of the first output is not known.
    """
    rule = AXES.of(node)
    if rule is None or node.has_references or (not node.domain and not is_deterministic(node)):
        return None
    functions = node.owner.model.functions
    if functions and node.domain in _OWN_DOMAINS and node.owner.model.function(*node.callee):
        # A function may compute anything; a rule of a user speaks for the operator by its name.
        return None
    values = (value for value in (*node.operands, *node.outputs[:1]) if value is not None)
    if any(value.shape is None for value in values):
        return None
    return rule(node)


# --- what rules are written with ------------------------------------------------------------------


def whole(rank: int, start: int = 0) -> Labels:
    """Return `rank` consecutive iterators."""
    return tuple(range(start, start + rank))


def dims_of(value: Value | None) -> Dims:
    """Return the dims of a value of known rank."""
    assert value is not None
    assert value.shape is not None
    return value.shape


def broadcast(value: Value | None, labels: Labels) -> Axes | None:
    """Return the iterators of an operand that broadcasts to a result with the given ones."""
    skipped = len(labels) - len(dims_of(value)) if value is not None else 0
    return None if value is None or skipped < 0 else labels[skipped:]


def all_of(kind: Kind, labels: Iterable[int]) -> dict[int, Kind]:
    """Return the entries of iterators of one kind."""
    return dict.fromkeys(labels, kind)


def axis_of(node: Node, rank: int, default: int | None = None) -> int | None:
    """Return the attribute `axis` of a node, counted from the front; None if it is out of range."""
    axis = node.attr("axis") if default is None else node.attr("axis", default)
    return axis % rank if isinstance(axis, int) and -rank <= axis < rank else None


def first_alone(
    node: Node, kinds: Mapping[int, Kind] = _NONE, windows: Mapping[int, Steps] = _NO_WINDOWS
) -> AxisMap:
    """Return the map of a node: its outputs have the axes of its first operand."""
    labels = whole(len(dims_of(node.operands[0])))
    others = (None,) * (len(node.operands) - 1)
    return AxisMap((labels, *others), (labels,) * len(node.outputs), kinds, windows)
