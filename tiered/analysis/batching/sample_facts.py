"""Facts: how the samples of a batch are laid out in each tensor.

A model takes a batch of samples. A tensor is the same for every batch, or one of its axes carries
the samples: elements of the axis are counted by (outer, sample, inner). Windows, heads and groups
are such inner factors, as after a Reshape of [N, 4, 8] to [4 * N, 8].
"""

from __future__ import annotations

from typing import NamedTuple

from tiered.graph import Node
from tiered.graph.shape_inference.symbolic_dims import Poly, Size, multiply

Sizes = tuple[Size | None, ...]
"""The dims of a tensor; None for one that is not known."""


class Columns(NamedTuple):
    """What is added to the elements of each further sample, by the last index."""

    steps: tuple[Size, ...]


Step = Size | Columns | None
"""What is added to the elements of each further sample."""


class BatchRows(NamedTuple):
    """A tensor with an axis of outer * batch * inner elements; sample by sample it is the same.

    Attributes:
        axis: the axis.
        outer: how many groups of all samples follow one another.
        inner: how many neighbours one sample has there.
        step: of numbers of samples, as an index of rows has them: the elements of a sample are
            those of a run of its own, and this times its number. None if they differ otherwise.
    """

    axis: int
    outer: Size = 1
    inner: Size = 1
    step: Step = 0

    @property
    def is_whole(self) -> bool:
        """Whether the axis has nothing but the samples."""
        return self.outer == 1 and self.inner == 1

    def on(self, axis: int) -> BatchRows:
        """Return the same of another axis."""
        return self._replace(axis=axis)

    def size(self, batch: Size) -> Size:
        """Return the size of the axis for a batch."""
        return multiply(multiply(self.outer, batch), self.inner)


class Listed(NamedTuple):
    """A list of what is found in the samples, one sample after the other, of any length.

    Attributes:
        axis: the axis of the list.
        source: the node that finds it: lists of one node have the same entries.
        step: what is added to the elements of each further sample.
    """

    axis: int
    source: Node
    step: Size | Columns = 0


class Counted(NamedTuple):
    """A number that depends on how many samples there are, and on none of them."""


class RefusedTensor(NamedTuple):
    """A tensor that has no known relation to single samples, the node and the reason."""

    node: Node
    reason: str


Fact = BatchRows | Listed | Counted | RefusedTensor
"""What is known of a tensor; one that is the same for every batch has no fact."""


class BatchRefusal(Exception):
    """A node cannot be followed; the text says why.

    Attributes:
        origin: what is known of an operand, if that is the reason.
    """

    def __init__(self, reason: str, origin: RefusedTensor | None = None) -> None:
        super().__init__(reason)
        self.origin = origin


def mentions(size: object, name: str) -> bool:
    """Return whether a size depends on a dim."""
    return isinstance(size, Poly) and any(name in names for names, _ in size.terms)


def product(sizes: Sizes) -> Size | None:
    """Return the product of sizes; None if one is unknown."""
    found: Size = 1
    for size in sizes:
        if size is None:
            return None
        found = multiply(found, size)
    return found
