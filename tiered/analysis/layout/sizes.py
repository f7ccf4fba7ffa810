"""The sizes of axes, and the bytes of tensors; dynamic dims get a size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from tiered.graph import Model, Value
from tiered.graph.core.dim_names import check_named
from tiered.graph.core.dtypes import bits_of
from tiered.graph.shape_inference.symbolic_dims import Poly, is_invented
from tiered.support.errors import UsageError
from tiered.support.records import Record

_STRING_BITS: Final = 64


class LayoutSizes(Record):
    """The sizes of dynamic dims: given ones by name, and a default for the others."""

    known: Mapping[str, int] = MappingProxyType({})
    default: int = 16

    @classmethod
    def parse(cls, entries: Iterable[str], default: int, owner: str, model: Model) -> LayoutSizes:
        """Return the sizes of `name=size` entries.

        Raises:
            UsageError: an entry is none, or no input of the model has that dim; the message names
                the pass that owns the option.
        """
        known = {}
        for entry in entries:
            name, _, size = entry.rpartition("=")
            if not name or not size.isdecimal():
                raise UsageError(f"{owner}: a size is name=size, not {entry!r}")
            known[name] = int(size)
        dims = (dim for value in model.main.inputs for dim in value.shape or ())
        named = (dim for dim in dims if isinstance(dim, str) and not is_invented(dim))
        check_named(known, dict.fromkeys(named), f"{owner}: ")
        return cls(known, default)

    def dims(self, value: Value) -> tuple[int, ...]:
        """Return the sizes of the axes of a value whose rank is known."""
        shape = value.shape
        assert shape is not None
        of = value.owner.model.dims.size
        return tuple([dim if isinstance(dim, int) else self._size(of(dim)) for dim in shape])

    def known_dims(self, value: Value) -> tuple[int, ...] | None:
        """Return the sizes of the axes of a value; None for an unknown rank."""
        return None if value.shape is None else self.dims(value)

    def nbytes(self, value: Value) -> int:
        """Return the bytes of a value whose rank is known."""
        width = 4.0 if value.dtype is None else (bits_of(value.dtype) or _STRING_BITS) / 8
        return math.ceil(width * math.prod(self.dims(value)))

    def _size(self, size: int | Poly | None) -> int:
        if size is None:
            return self.default
        if isinstance(size, int):
            return size
        return max(0, sum(
            factor * math.prod(self.known.get(name, self.default) for name in names)
            for names, factor in size.terms
        ))  # fmt: skip
