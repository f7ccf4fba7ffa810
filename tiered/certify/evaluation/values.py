"""Tensors as the checker sees them: dtype, concrete shape, and numbers or terms."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tiered.certify.domains.terms import Array, digest, kind_of
from tiered.graph.core.dtypes import DataType, integer_info

MOST_ELEMENTS: Final = 1 << 22
"""Tensors with more elements have no terms."""


class Unproved(Exception):
    """Why something is not proved; the message is the reason."""


class Misfit(Unproved):
    """Operands whose sizes do not fit, as those that were tried are none that the model takes.

    Attributes:
        repairs: sizes, and what each would have to be.
    """

    def __init__(self, message: str, repairs: Sequence[tuple[int, int]]) -> None:
        super().__init__(message)
        self.repairs = repairs


def broadcast_of(shapes: Sequence[tuple[int, ...]], what: str) -> tuple[int, ...]:
    """Return the common shape of shapes.

    Raises:
        Misfit: there is none.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        repairs = []
        for dims in itertools.zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
            others = list(dict.fromkeys(size for size in dims if size != 1))
            repairs += list(itertools.permutations(others, 2))
        raise Misfit(f"{what} do not broadcast", repairs) from error


class CheckedTensor:
    """One tensor.

    Attributes:
        dtype: of ONNX.
        shape: its sizes.
        known: its numbers, if it is a constant.
        exact: the narrowest dtype that holds all its elements exactly: that of before a Cast.
        form: how it was computed, where rules of its consumers ask: one of `forms`, or None.
    """

    __slots__ = ("_digest", "_key", "_make", "_terms", "dtype", "exact", "form", "known", "shape")

    def __init__(
        self,
        dtype: int,
        shape: Sequence[int],
        make: Callable[[], Array],
        known: Array | None = None,
        *,
        exact: int | None = None,
        key: tuple[object, ...] | None = None,
    ) -> None:
        self.dtype = dtype
        self.shape = tuple(shape)
        self.known = known
        self.exact = dtype if exact is None else exact
        self.form: object = None
        self._make = make
        self._terms: Array | None = None
        self._key = key
        self._digest: object = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def terms(self) -> Array:
        """The terms of its elements, made when they are first asked for.

        Raises:
            Unproved: there are too many.
        """
        if self._terms is None:
            if self.size > MOST_ELEMENTS:
                raise Unproved(f"a tensor of more than {MOST_ELEMENTS:,} elements")
            try:
                self._terms = self._make()
            except (IndexError, ValueError) as error:
                raise Unproved(f"operands that do not fit: {error}") from error
            except RecursionError as error:
                raise Unproved("a chain of too many nodes") from error
            assert self._terms.shape == self.shape
        return self._terms

    @property
    def key(self) -> tuple[object, ...]:
        """What identifies its contents: equal keys mean equal tensors."""
        if self._key is None:
            held = digest(self.terms) if self.known is None else _content(self.known)
            self._key = (self.dtype, self.shape, held)
        return self._key

    def numbers(self, what: str) -> Array:
        """Return its numbers.

        Raises:
            Unproved: it is no constant.
        """
        if self.known is None:
            raise Unproved(f"{what} is not known")
        return self.known

    def integers(self, what: str) -> list[int]:
        """Return its numbers as a list of integers; raises as `numbers`."""
        return [int(number) for number in self.numbers(what).ravel()]


class TensorList(CheckedTensor):
    """A sequence of tensors.

    Attributes:
        items: its tensors.
    """

    __slots__ = ("items",)

    def __init__(self, dtype: int, items: Sequence[CheckedTensor]) -> None:
        super().__init__(dtype, (), _no_terms)
        self.items = tuple(items)

    @property
    def key(self) -> tuple[object, ...]:
        return (self.dtype, "sequence", *(item.key for item in self.items))


def _no_terms() -> Array:
    raise Unproved("a sequence is no tensor")


def _content(numbers: Array) -> bytes:
    """Return a hash of numbers; all NaNs are equal."""
    if numbers.dtype.kind in "OSU":
        return hashlib.blake2b(repr(numbers.tolist()).encode(), digest_size=16).digest()
    if kind_of(numbers.dtype) == "float":
        numbers = np.where(np.isnan(numbers), np.asarray(np.nan).astype(numbers.dtype), numbers)
    return hashlib.blake2b(np.ascontiguousarray(numbers).tobytes(), digest_size=16).digest()


@lru_cache(maxsize=64)
def numpy_dtype(dtype: int) -> np.dtype[Any]:
    """Return the numpy dtype of a dtype of ONNX."""
    return DataType(dtype).numpy


@lru_cache(maxsize=64)
def class_of(dtype: int) -> str:
    """Return the class of a dtype: float, integer, bool, string or complex."""
    return kind_of(numpy_dtype(dtype))


@lru_cache(maxsize=256)
def holds(wide: int, narrow: int) -> bool:
    """Return whether one dtype has every value of another, special ones and signed zeros too."""
    if wide == narrow:
        return True
    if class_of(wide) != class_of(narrow):
        return False
    if class_of(wide) == "integer":
        outer, inner = (integer_info(numpy_dtype(dtype)) for dtype in (wide, narrow))
        return bool(outer.min <= inner.min and inner.max <= outer.max)
    return (wide, narrow) in _WIDER


_FLOATS: Final = {
    int(DataType.FLOAT16): (int(DataType.FLOAT), int(DataType.DOUBLE)),
    int(DataType.BFLOAT16): (int(DataType.FLOAT), int(DataType.DOUBLE)),
    int(DataType.FLOAT): (int(DataType.DOUBLE),),
}
_WIDER: Final = frozenset((to, of) for of, wider in _FLOATS.items() for to in wider)
