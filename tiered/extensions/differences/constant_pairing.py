"""The constants of two graphs, paired by name and by content.

Bytes are read only where names, dtypes and dims leave a question open. Elements at the same place
of the same file are equal without a look, and large ones pass through memory in blocks.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tiered.graph.core.types import tensor_type

if TYPE_CHECKING:
    from tiered.graph import Graph, Tensor, Value

TELLING: Final = 16
"""Tensors of this many elements or more are identified by their contents before their names."""


class NamedConstant(NamedTuple):
    """An initializer, or the output of a Constant node."""

    value: Value
    tensor: Tensor

    @property
    def type(self) -> str:
        """Its dtype and dims: float[64,3,7,7]."""
        return str(tensor_type(self.tensor.dtype, self.tensor.shape))

    @property
    def is_node(self) -> bool:
        return self.value.producer is not None


class ConstantPair(NamedTuple):
    """The same constant in both models; a side may lack it."""

    first: NamedConstant | None
    second: NamedConstant | None


class TensorChange(NamedTuple):
    """A constant that differs between two models.

    Attributes:
        graph: the body or function that it is in; "" for the main graph.
        what: added, removed, or some of renamed, dtype, dims, values (its bits differ), and moved
            (from an initializer to a Constant node, or back).
        before, after: its names; "" where a side lacks it.
        type_before, type_after: such as float[64,3,7,7].
        bytes_before, bytes_after: of its elements.
    """

    graph: str
    what: tuple[str, ...]
    before: str
    after: str
    type_before: str
    type_after: str
    bytes_before: int
    bytes_after: int


def constants_of(graph: Graph) -> list[NamedConstant]:
    """Return the constants of a graph: the initializers first, then those of Constant nodes."""
    found = [
        NamedConstant(value, value.default)
        for value in graph.initializers
        if value.default is not None
    ]
    for node in graph.nodes_of("Constant"):
        tensor = node.constant_tensor()
        if tensor is not None:
            found.append(NamedConstant(node.output, tensor))
    return found


def paired(first: Sequence[NamedConstant], second: Sequence[NamedConstant]) -> list[ConstantPair]:
    """Pair the constants of two graphs: by content where that says more than the name.

    Returns:
        the pairs in the order of the first graph, then what only the second one has.
    """
    work = _Pairing(first, second)
    names = [{each.value.name for each in side} for side in (first, second)]
    work.join(lambda each: (each.value.name, *_outline(each)), same_content)
    work.join_contents(lambda each, side: each.value.name not in names[1 - side])
    work.join_contents(lambda each, _: each.tensor.size >= TELLING)
    work.join(lambda each: each.value.name, lambda *_: True)
    work.join_contents(lambda *_: True)
    return work.pairs()


def same_content(one: NamedConstant, other: NamedConstant) -> bool:
    """Return whether two constants have the same dtype, dims and bits."""
    if _outline(one) != _outline(other):
        return False
    places = [_place(each.tensor) for each in (one, other)]
    if places[0] is not None and places[0] == places[1]:
        return True
    return one.tensor.key() == other.tensor.key()


def identities(pairs: Sequence[ConstantPair]) -> tuple[dict[Value, str], dict[Value, str]]:
    """Return for each side the identity of a constant: equal for one that both sides have.

    Constants of equal content are one, whatever their names; so are both of a pair that differs.
    Only those are hashed that may be equal to one without a partner of the same name.
    """
    loose = {
        _outline(each)
        for pair in pairs
        if len({each and each.value.name for each in pair}) > 1
        for each in pair
        if each is not None
    }
    found: tuple[dict[Value, str], dict[Value, str]] = ({}, {})
    known: dict[Hashable, str] = {}
    for number, (one, two) in enumerate(pairs):
        own = f"constant {number}"
        each = one or two
        assert each is not None, "a pair has a side"
        is_equal = one is None or two is None or same_content(one, two)
        if is_equal and _outline(each) in loose:
            own = known.setdefault(each.tensor.key(), own)
        for side, constant in enumerate((one, two)):
            if constant is not None:
                found[side][constant.value] = own
    return found


def change_of(pair: ConstantPair, graph: str) -> TensorChange | None:
    """Return how a constant differs; None if it is the same in both models."""
    first, second = pair
    if first is None or second is None:
        what: tuple[str, ...] = ("removed",) if second is None else ("added",)
    else:
        tensors = first.tensor, second.tensor
        is_same_form = _outline(first) == _outline(second)
        facts = {
            "renamed": first.value.name != second.value.name,
            "dtype": tensors[0].dtype != tensors[1].dtype,
            "dims": tensors[0].shape != tensors[1].shape,
            "values": is_same_form and not same_content(first, second),
            "moved": first.is_node != second.is_node,
        }
        what = tuple(name for name, is_true in facts.items() if is_true)
    if not what:
        return None
    names, types, sizes = zip(*map(_described, pair), strict=True)
    return TensorChange(graph, what, *names, *types, *sizes)


def _described(constant: NamedConstant | None) -> tuple[str, str, int]:
    if constant is None:
        return "", "", 0
    return constant.value.name, constant.type, constant.tensor.nbytes


class _Pairing:
    """Constants of both sides, with the partners found so far."""

    def __init__(self, first: Sequence[NamedConstant], second: Sequence[NamedConstant]) -> None:
        self.sides = (first, second)
        self.partners: dict[int, int] = {}  # places of the first side, and those of the second
        self.taken: set[int] = set()

    def free(self, side: int) -> Iterable[int]:
        known = self.taken if side else self.partners
        return (place for place in range(len(self.sides[side])) if place not in known)

    def join(
        self,
        key: Callable[[NamedConstant], Hashable],
        is_equal: Callable[[NamedConstant, NamedConstant], bool],
    ) -> None:
        """Pair the constants of equal keys, in order, that pass a closer look."""
        there: dict[Hashable, list[int]] = defaultdict(list)
        for place in self.free(1):
            there[key(self.sides[1][place])].append(place)
        for place in [*self.free(0)]:
            mine = self.sides[0][place]
            candidates = there.get(key(mine), [])
            found = next((at for at in candidates if is_equal(mine, self.sides[1][at])), None)
            if found is not None:
                candidates.remove(found)
                self.partners[place] = found
                self.taken.add(found)

    def join_contents(self, may: Callable[[NamedConstant, int], bool]) -> None:
        """Pair the constants of equal content; only those of a form that both sides have are read.

        Args:
            may: whether a constant of a side (0 or 1) takes part.
        """
        forms = [
            {_outline(self.sides[side][at]) for at in self.free(side)
             if may(self.sides[side][at], side)}
            for side in (0, 1)
        ]  # fmt: skip
        common = forms[0] & forms[1]
        there: dict[Hashable, list[int]] = defaultdict(list)
        for at in self.free(1):
            each = self.sides[1][at]
            if _outline(each) in common and may(each, 1):
                there[each.tensor.key()].append(at)
        for at in [*self.free(0)]:
            each = self.sides[0][at]
            if _outline(each) in common and may(each, 0) and there.get(each.tensor.key()):
                found = there[each.tensor.key()].pop(0)
                self.partners[at] = found
                self.taken.add(found)

    def pairs(self) -> list[ConstantPair]:
        first, second = self.sides
        found = [
            ConstantPair(each, second[self.partners[at]] if at in self.partners else None)
            for at, each in enumerate(first)
        ]
        return [*found, *(ConstantPair(None, second[at]) for at in self.free(1))]


def _outline(each: NamedConstant) -> tuple[int, tuple[int, ...]]:
    return each.tensor.dtype, each.tensor.shape


def _place(tensor: Tensor) -> tuple[str, int, int] | None:
    """Return where the bytes of a tensor are; None if they are in memory."""
    if not tensor.is_on_disk:
        return None
    path, offset, length = tensor.external_span()
    return os.path.realpath(path), offset, length
