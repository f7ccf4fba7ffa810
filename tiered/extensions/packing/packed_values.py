"""Abstract values: how a tensor of the packed run relates to that of a run with one sequence.

A run with one sequence has a batch of 1 and `n` tokens; in the packed run these tokens are the
columns from `a` to `a + n` of one row. Each axis of a tensor has a role or none. A tensor with a
batch axis and a token axis holds at column `a + i` what the single run has at `i`. One with two
token axes does so for pairs of tokens of one sequence, and may hold anything for other pairs. One
with token axes and no batch axis depends on positions alone, the same way for every `n`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from tiered.graph import Node
from tiered.graph.shape_inference.symbolic_dims import Size


class AxisRole(Enum):
    """The role of an axis."""

    BATCH = "batch"
    TOKEN = "token"
    FLAT = "batch and tokens as one axis"
    SEQUENCE_FIRST = "tokens and batch as one axis"
    HEADS = "batch and a fixed number of parts as one axis, as of attention heads"


FLATTENED = {
    AxisRole.FLAT: (AxisRole.BATCH, AxisRole.TOKEN),
    AxisRole.SEQUENCE_FIRST: (AxisRole.TOKEN, AxisRole.BATCH),
}
"""The roles of the two axes that are one."""

_WITH_BATCH = frozenset({AxisRole.BATCH, AxisRole.HEADS, *FLATTENED})

Roles = tuple[AxisRole | None, ...]


@dataclass(frozen=True)
class AbstractTensor:
    """The relation of a tensor in both runs.

    Attributes:
        roles: the role of each axis; an axis without one is the same in both runs.
        zeros: the axis of keys of attention weights: exactly 0 where query and key are of
            different sequences. None for all other tensors.
        index: an integer tensor whose element is the sum of factor * place over all axes: the
            factors. None for all other tensors.
        is_row_number: whether it is an index of rows, or of columns: of no use but as an index.
        columns: the factors of several indices, joined along the last axis. None for all others.
        is_pooled: whether the batch axis has one row for each sequence in the packed run.
        chosen_by: the ArgMax over the tokens of each row that is the index, or its last column.
    """

    roles: Roles
    zeros: int | None = None
    index: tuple[Size, ...] | None = None
    is_row_number: bool = False
    columns: tuple[tuple[Size, ...], ...] | None = None
    is_pooled: bool = False
    chosen_by: Node | None = None

    @property
    def is_constant(self) -> bool:
        """Whether it is the same in both runs."""
        return not any(self.roles)

    @property
    def has_batch(self) -> bool:
        return any(role in _WITH_BATCH for role in self.roles)

    @property
    def is_positional(self) -> bool:
        """Whether it depends on positions, and on no row."""
        return AxisRole.TOKEN in self.roles and not self.has_batch

    def places(self, role: AxisRole) -> tuple[int, ...]:
        """Return the axes with a role."""
        return tuple(axis for axis, each in enumerate(self.roles) if each is role)

    def plain(self) -> AbstractTensor:
        """Return the relation without what only holds for the very tensor."""
        return replace(self, zeros=None, index=None, columns=None, chosen_by=None)


def constant_tensor(rank: int | None) -> AbstractTensor:
    """Return the relation of a tensor that is the same in both runs."""
    return AbstractTensor((None,) * (rank or 0))


class PackedSizes(NamedTuple):
    """Sizes of tensors, which follow from the shapes of the packed inputs.

    Attributes:
        is_pooled: whether they were read from a tensor with one row for each sequence.
    """

    is_pooled: bool = False


class Refused(NamedTuple):
    """Why nothing is known of a value, and the node that is the reason."""

    node: Node
    reason: str


Abstract = AbstractTensor | PackedSizes | Refused


class PackingRefusal(Exception):
    """An operator relates tokens in a way that has no rule; the message is the reason."""


class PositionEdit(NamedTuple):
    """An operand that depends on positions meets rows: it is gathered by the positions.

    Attributes:
        node, slot: the use of the operand.
        rank: the rank of the result that operand broadcasts to.
        batch: the axis of the result with the rows.
        parts: how often each row is in that axis: the heads that are part of it.
    """

    node: Node
    slot: int
    rank: int
    batch: int
    parts: int = 1


class TermEdit(NamedTuple):
    """An operand of an Einsum that depends on positions: its term gets the label of the rows.

    Attributes:
        node, slot: the use of the operand.
        label: of the rows in the equation, which is `terms` before.
        terms: of the equation, the last one of the result.
        parts: how often each row is in the axis of the batch.
    """

    node: Node
    slot: int
    label: str
    terms: tuple[str, ...]
    parts: int = 1


class MaskEdit(NamedTuple):
    """A Softmax over keys: those of other sequences are masked.

    Attributes:
        node: the Softmax.
        parts: how often each row is in the axis of the batch.
    """

    node: Node
    parts: int = 1


class PoolEdit(NamedTuple):
    """A node that takes the first token of each sequence, or reduces over its tokens."""

    node: Node


class SumEdit(NamedTuple):
    """A CumSum over tokens: it starts again with each sequence."""

    node: Node


class ChoiceEdit(NamedTuple):
    """A GatherND, or a Gather of all tokens, of the one of each row that an ArgMax chooses."""

    node: Node
    chooser: Node


Edit = PositionEdit | TermEdit | MaskEdit | PoolEdit | SumEdit | ChoiceEdit
