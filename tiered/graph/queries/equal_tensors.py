"""Tensors with equal bits, found without reading more of their files than tells them apart.

The candidates of one dtype and shape are read side by side: first a few pages spread over them,
then blocks that grow. Those that differ part ways, so that only equal tensors are read to the end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np

from tiered.graph.core.dtypes import bits_of
from tiered.graph.core.tensor import Tensor
from tiered.support.errors import ModelError

_PROBES: Final = 16
_PROBE: Final = 1 << 12
"""How many places are compared first, and the bytes of each."""

_SMALL: Final = 1 << 17
"""Tensors up to this many bytes have a key that is quick to compute."""

_STEP: Final = 1 << 16
_GROWTH: Final = 4
_LARGEST: Final = 1 << 24
"""The bytes of the first block, by how much the next one is larger, and of the largest."""

_AT_ONCE: Final = 1 << 26
"""Bytes of blocks in memory at a time."""


class EqualTensors:
    """Compares tensors, and reads a limited number of bytes of files for all of them.

    Attributes:
        uncompared: the tensors that begin alike and need more reading; they count as different.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self.uncompared: list[Tensor] = []

    def keys_of_all(self, tensors: Sequence[Tensor]) -> list[Hashable]:
        """Return a key for each of some tensors of any types, as `keys`."""
        groups: dict[Hashable, list[int]] = {}
        for at, tensor in enumerate(tensors):
            kind = tensor.dtype, tensor.shape, tensor.is_sparse
            groups.setdefault(kind, []).append(at)
        found: dict[int, Hashable] = {}
        for group in groups.values():
            found.update(zip(group, self.keys([tensors[at] for at in group]), strict=True))
        return [found[at] for at in range(len(tensors))]

    def keys(self, tensors: Sequence[Tensor]) -> list[Hashable]:
        """Return a key for each tensor of one dtype and shape; those of equal bits are equal.

        Raises:
            ModelError: a file is missing or too short.
        """
        first = tensors[0]
        if first.is_sparse or bits_of(first.dtype) < 8 or first.nbytes <= _SMALL:
            return [tensor.key() for tensor in tensors]
        # The same bytes of the same file are read once, or not at all.
        places = [
            tensor.external_span() if tensor.is_on_disk else at for at, tensor in enumerate(tensors)
        ]
        apart = dict(zip(reversed(places), reversed(tensors), strict=True))
        keys: dict[Hashable, Hashable] = {}
        names = [*apart]
        for members in self._classes([*apart.values()], first.nbytes):
            # A new object is equal to nothing else.
            keys.update(dict.fromkeys([names[at] for at in members], object()))
        return [keys[place] for place in places]

    def _classes(self, tensors: Sequence[Tensor], nbytes: int) -> Iterator[list[int]]:
        """Yield the places of the tensors of each class."""
        classes = [list(range(len(tensors)))]
        # Weights that begin alike often differ at the end.
        for probe in reversed(range(_PROBES)):
            at = (nbytes - _PROBE) * probe // (_PROBES - 1)
            classes = [part for each in classes for part in self._parted(tensors, each, at, _PROBE)]
        pending = [(members, 0, _STEP) for members in classes]
        while pending:
            members, at, step = pending.pop()
            if at == nbytes or len(members) < 2:
                yield members
                continue
            if at >= _LARGEST and any(tensors[each].is_on_disk for each in members):
                # Some to the end rather than all halfway.
                finished = self._left // (nbytes - at)
                yield from self._apart(tensors, members[finished:])
                members = members[:finished]
            count = min(step, nbytes - at, max(_PROBE, _AT_ONCE // (len(members) or 1)))
            step = min(step * _GROWTH, _LARGEST)
            parts = self._parted(tensors, members, at, count)
            pending += [(part, at + count, step) for part in parts]

    def _parted(
        self, tensors: Sequence[Tensor], members: list[int], at: int, count: int
    ) -> list[list[int]]:
        """Return the members by their bytes at a place; each apart if that reads too much."""
        if len(members) < 2:
            return [members]
        needed = count * sum(tensors[each].is_on_disk for each in members)
        if needed > self._left:
            return self._apart(tensors, members)
        self._left -= needed
        parts: list[tuple[bytes, list[int]]] = []
        for each in members:
            found = _read(tensors[each], at, count)
            # Comparing takes a fraction of the time of a hash.
            own = next((part for block, part in parts if block == found), None)
            if own is None:
                parts.append((found, [each]))
            else:
                own.append(each)
        return [part for _, part in parts]

    def _apart(self, tensors: Sequence[Tensor], members: list[int]) -> list[list[int]]:
        """Give members up: each is a class of its own."""
        self.uncompared += [tensors[each] for each in members]
        return [[each] for each in members]


def _read(tensor: Tensor, at: int, count: int) -> bytes:
    """Return some bytes of a tensor, as a file has them."""
    if not tensor.is_on_disk:
        flat = np.ascontiguousarray(tensor.numpy()).ravel()
        return flat.view(np.uint8)[at : at + count].tobytes()
    path, offset, _ = tensor.external_span()
    with open(path, "rb", buffering=0) as file:
        file.seek(offset + at)
        found = file.read(count)
    if len(found) != count:
        raise ModelError(f"{path} became shorter while it was read")
    return found
