"""Sizes that depend on dynamic dims: integer polynomials in the names of dims.

A dim is never negative, so a polynomial without negative coefficients is not negative either: that
is what lets `Equal(dim, -1)` be answered. Division is done only where it leaves no remainder
whatever the dims are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from tiered.graph.core.types import Dim

Monomial = tuple[str, ...]
"""The sorted names of a product of dims; () for a constant term."""

COMPOSED: Final = "="
"""What the names of composed sizes begin with, so that no name of a user's can mean one."""

INVENTED: Final = "unk__"
"""What the names begin with that onnx's shape inference makes up."""


def is_invented(dim: Dim) -> bool:
    """Tell whether a dim is an invented name, or a size composed of such."""
    if not isinstance(dim, str):
        return False
    return dim.startswith(INVENTED) or (dim.startswith(COMPOSED) and INVENTED in dim)


class Poly(NamedTuple):
    """A polynomial with at least one dim in it, as sorted terms (monomial, coefficient)."""

    terms: tuple[tuple[Monomial, int], ...]

    @property
    def is_non_negative(self) -> bool:
        """Tell whether it can be seen that no dims make it negative."""
        return all(coefficient > 0 for _, coefficient in self.terms)

    @property
    def is_positive(self) -> bool:
        """Tell whether it can be seen that no dims make it 0 or negative."""
        return self.is_non_negative and any(not names for names, _ in self.terms)

    @property
    def symbol(self) -> str | None:
        """Return the name of the dim, if it is nothing but one."""
        if len(self.terms) == 1:
            ((names, coefficient),) = self.terms
            if coefficient == 1 and len(names) == 1:
                return names[0]
        return None

    def __str__(self) -> str:
        parts = []
        for names, coefficient in self.terms:
            factors = list(names) if coefficient == 1 and names else [str(coefficient), *names]
            parts.append("*".join(factors))
        return "+".join(parts)


@lru_cache(maxsize=1024)
def size_of_dim(name: str) -> Poly:
    """Return the size of a dim of this name: one object, as it is asked for again and again."""
    return Poly((((name,), 1),))


Size = int | Poly
Element = Size | bool | None
"""An element of an integer or boolean tensor: known, known as a polynomial, or unknown."""


def _terms(size: Size) -> dict[Monomial, int]:
    return {(): size} if isinstance(size, int) else dict(size.terms)


def _size(terms: dict[Monomial, int]) -> Size:
    kept = {names: coefficient for names, coefficient in terms.items() if coefficient}
    if not kept:
        return 0
    if kept.keys() == {()}:
        return kept[()]
    return Poly(tuple(sorted(kept.items())))


def add(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    terms = _terms(a)
    for names, coefficient in _terms(b).items():
        terms[names] = terms.get(names, 0) + coefficient
    return _size(terms)


def multiply(a: Size, b: Size) -> Size:
    if isinstance(a, int):
        if isinstance(b, int):
            return a * b
        return Poly(tuple([(names, a * x) for names, x in b.terms])) if a else 0
    if isinstance(b, int):
        return multiply(b, a)
    terms: dict[Monomial, int] = {}
    for left, x in _terms(a).items():
        for right, y in _terms(b).items():
            names = tuple(sorted((*left, *right)))
            terms[names] = terms.get(names, 0) + x * y
    return _size(terms)


def subtract(a: Size, b: Size) -> Size:
    return add(a, multiply(-1, b))


def divide(a: Size, b: Size) -> Size | None:
    """Return a / b where that is exact for all dims for which b is not zero, else None.

    Two integers are divided as ONNX divides them, towards zero.
    """
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    if isinstance(b, int):
        divisor: tuple[Monomial, int] = ((), b)
    elif len(b.terms) == 1:
        divisor = b.terms[0]
    else:
        return 1 if a == b else None
    terms: dict[Monomial, int] = {}
    for names, coefficient in _terms(a).items():
        remaining = _without(names, divisor[0])
        if remaining is None or coefficient % divisor[1]:
            return None
        terms[remaining] = coefficient // divisor[1]
    return _size(terms)


def _without(names: Monomial, divisor: Monomial) -> Monomial | None:
    remaining = list(names)
    for name in divisor:
        if name not in remaining:
            return None
        remaining.remove(name)
    return tuple(remaining)


def equal(a: Size, b: Size) -> bool | None:
    """Tell whether two sizes are equal for all dims (True), for none (False), or it depends."""
    difference = subtract(a, b)
    if isinstance(difference, int):
        return difference == 0
    sign = sign_of(difference)
    return False if sign in (1, -1) else None


def sign_of(size: Size) -> int | None:
    """Return the sign if it is the same for all dims: 1, 0 or -1; None if it depends on them."""
    if isinstance(size, int):
        return (size > 0) - (size < 0)
    constant = dict(size.terms).get((), 0)
    others = [coefficient for names, coefficient in size.terms if names]
    if constant > 0 and all(coefficient > 0 for coefficient in others):
        return 1
    if constant < 0 and all(coefficient < 0 for coefficient in others):
        return -1
    return None


class Dims:
    """What the names of dims stand for, and which of them turned out to be the same.

    One for each model. Composed sizes get a name, so that a shape can hold them.
    """

    __slots__ = ("_capped", "_composed", "_given", "_invented", "_known", "has_news")

    def __init__(self) -> None:
        self._composed: dict[str, Poly] = {}
        # Of min(most, size): the dim that the size alone has.
        self._capped: dict[str, Dim] = {}
        # Invented names that turned out to be something else.
        self._known: dict[str, Size] = {}
        # Whether a name was learnt that shapes may still show.
        self.has_news = False
        self._invented = 0
        # Names of dims of inputs: callers decide them, so no more can be learnt of them.
        self._given: set[str] = set()

    def invent(self, *, is_given: bool = False) -> str:
        """Return a new name for a dim of which nothing is known; onnx's own have no dot.

        Args:
            is_given: the dim is one of a graph input.
        """
        self._invented += 1
        name = f"{INVENTED}.{self._invented}"
        if is_given:
            self._given.add(name)
        return name

    def is_given(self, dim: Dim) -> bool:
        """Return whether a dim has the invented name of one of a graph input."""
        return dim in self._given

    def size(self, dim: Dim) -> Size | None:
        """Return what a dim stands for, as far as is known now; None for an unknown one."""
        if dim is None or isinstance(dim, int):
            return dim
        size = self._known.get(dim, self._composed.get(dim))
        return size_of_dim(dim) if size is None else self._resolved(size)

    def dim(self, size: Element) -> Dim:
        """Return the dim that stands for a size."""
        if not isinstance(size, Poly):
            return None if size is None or size < 0 else int(size)
        if size.symbol is not None:
            return size.symbol
        if not size.is_non_negative:
            return None
        name = f"{COMPOSED}{size}"
        self._composed[name] = size
        return name

    def capped(self, size: Poly, most: int) -> Size | None:
        """Return min(size, most) for more than 1; None where a name may still be learnt."""
        if not size.is_non_negative or most < 2:
            return None
        if any(name.startswith(INVENTED) for names, _ in size.terms for name in names):
            return None
        name = f"{COMPOSED}min({most},{size})"
        self._capped[name] = self.dim(size)
        return size_of_dim(name)

    def broadcast(self, a: str, b: str) -> str | None:
        """Return what two dims broadcast to, None where that depends on their sizes.

        A size and the same one that is cut at a number above 1 broadcast only if they are equal.
        """
        if a == b or self._capped.get(b) == a:
            return a
        return b if self._capped.get(a) == b else None

    def resolve(self, dim: Dim) -> Dim:
        """Return what a dim is now known as."""
        if not isinstance(dim, str) or not (dim in self._known or dim in self._composed):
            return dim
        return self.dim(self.size(dim))

    def learn(self, invented: str, size: Size) -> bool:
        """Note that an invented name is a size; tell whether that is news."""
        if not invented.startswith(INVENTED) or invented in self._known or invented in self._given:
            return False
        size = self._resolved(size)
        if isinstance(size, Poly) and any(invented in names for names, _ in size.terms):
            return False
        self._known[invented] = size
        self.has_news = True
        return True

    def _resolved(self, size: Size) -> Size:
        """Replace the names that turned out to be something else."""
        if isinstance(size, int) or not any(
            name in self._known for names, _ in size.terms for name in names
        ):
            return size
        total: Size = 0
        for names, coefficient in size.terms:
            product: Size = coefficient
            for name in names:
                by = self._known.get(name)
                factor = size_of_dim(name) if by is None else self._resolved(by)
                product = multiply(product, factor)
            total = add(total, product)
        return total
