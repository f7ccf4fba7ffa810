"""Sizes that depend on dynamic dims: integer polynomials in the names of dims.

A dim is never negative, so a polynomial without negative coefficients is not negative either; that
decides `Equal(dim, -1)`. Only divisions without remainder for all dims are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from tiered.graph.core.types import Dim

Monomial = tuple[str, ...]
"""The sorted names of a product of dims; () for a constant term."""

COMPOSED: Final = "="
"""The prefix of names of composed sizes; names in files do not have it."""

INVENTED: Final = "unk__"
"""The prefix of names that shape inference invents for unknown dims."""


def is_invented(dim: Dim) -> bool:
    """Return whether a dim is an invented name, or a size composed of such names."""
    if not isinstance(dim, str):
        return False
    return dim.startswith(INVENTED) or (dim.startswith(COMPOSED) and INVENTED in dim)


class Poly(NamedTuple):
    """A polynomial that contains a dim, as sorted terms (monomial, coefficient)."""

    terms: tuple[tuple[Monomial, int], ...]

    @property
    def is_non_negative(self) -> bool:
        """Return whether it is known to be at least 0 for all dims."""
        return all(coefficient > 0 for _, coefficient in self.terms)

    @property
    def is_positive(self) -> bool:
        """Return whether it is known to be at least 1 for all dims."""
        return self.is_non_negative and any(not names for names, _ in self.terms)

    def is_positive_if(self, positive: Collection[str]) -> bool:
        """Return whether it is known to be at least 1 if some dims are at least 1."""
        named = frozenset(positive)
        return self.is_non_negative and any(named.issuperset(names) for names, _ in self.terms)

    @property
    def symbol(self) -> str | None:
        """Return the name of the dim if the polynomial is a single dim, else None."""
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
    """Return the size of a dim of this name; a shared object, as it is needed often."""
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
    """Return a / b if it is exact for all dims with b != 0, else None.

    The quotient of two integers is truncated towards zero, as in ONNX.
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


def combined(
    combine: Callable[[Size, Size], Size], elements: Iterable[Element], empty: int
) -> Size | None:
    """Return the sum or product of elements, from that of none; None if one is unknown."""
    total: Size = empty
    for element in elements:
        if element is None:
            return None
        total = combine(total, element)
    return total


def is_non_negative(size: Size) -> bool:
    """Return whether a size is known to be at least 0 for all dims."""
    return size >= 0 if isinstance(size, int) else size.is_non_negative


def equal(a: Size, b: Size) -> bool | None:
    """Return whether two sizes are equal for all dims (True) or for none (False), else None."""
    difference = subtract(a, b)
    if isinstance(difference, int):
        return difference == 0
    sign = sign_of(difference)
    return False if sign in (1, -1) else None


def sign_of(size: Size) -> int | None:
    """Return the sign (1, 0 or -1) if it is the same for all dims, else None."""
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
    """The sizes of the named dims of one model, and the invented names with known sizes.

    Composed sizes get a name, so that a shape can hold them.

    Attributes:
        has_learned: whether shapes may still contain a name that was learned.
        positive: dims that are taken to be at least 1; types inferred so are for such dims only.
    """

    __slots__ = ("_capped", "_composed", "_given", "_invented", "_known", "has_learned", "positive")

    def __init__(self) -> None:
        self._composed: dict[str, Poly] = {}
        # The dim of `size` by the name of min(most, size).
        self._capped: dict[str, Dim] = {}
        # The sizes that were found for invented names.
        self._known: dict[str, Size] = {}
        self.has_learned = False
        self._invented = 0
        # Invented names of dims of inputs, which callers decide: no size can be learned.
        self._given: set[str] = set()
        self.positive: frozenset[str] = frozenset()

    def invent(self, *, is_given: bool = False) -> str:
        """Return a new name for an unknown dim; the names that onnx invents have no dot.

        Args:
            is_given: whether it is a dim of a graph input.
        """
        self._invented += 1
        name = f"{INVENTED}.{self._invented}"
        if is_given:
            self._given.add(name)
        return name

    def renewed(self) -> Dims:
        """Return the dims of a model before inference: inputs keep their names.

        No name is invented a second time: two dims would be taken for equal.
        """
        fresh = Dims()
        fresh._invented, fresh._given = self._invented, set(self._given)
        return fresh

    def is_given(self, dim: Dim) -> bool:
        """Return whether a dim has a name that was invented for a graph input."""
        return dim in self._given

    def is_unknown(self, dim: Dim) -> bool:
        """Return whether the dims of inputs do not determine a dim, as far as is known."""
        size = self.size(dim)
        if size is None or isinstance(size, int):
            return size is None
        names = {name for names, _ in size.terms for name in names}
        return any(name.startswith(INVENTED) and not self.is_given(name) for name in names)

    def size(self, dim: Dim) -> Size | None:
        """Return the size of a dim as known now; None for an unknown one."""
        if dim is None or isinstance(dim, int):
            return dim
        size = self._known.get(dim, self._composed.get(dim))
        return size_of_dim(dim) if size is None else self._resolved(size)

    def dim(self, size: Element) -> Dim:
        """Return the dim of a size; None for an unknown or negative one."""
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
        """Return min(size, most) for most > 1; None if the size has an invented name."""
        if not size.is_non_negative or most < 2:
            return None
        if any(name.startswith(INVENTED) for names, _ in size.terms for name in names):
            return None
        name = f"{COMPOSED}min({most},{size})"
        self._capped[name] = self.dim(size)
        return size_of_dim(name)

    def broadcast(self, a: str, b: str) -> str | None:
        """Return the dim that two dims broadcast to; None if it depends on their sizes.

        A size and its minimum with a number above 1 broadcast only if they are equal.
        """
        if a == b or self._capped.get(b) == a:
            return a
        return b if self._capped.get(a) == b else None

    def resolve(self, dim: Dim) -> Dim:
        """Return a dim with learned sizes in place of invented names."""
        if not isinstance(dim, str):
            return dim
        composed = self._composed.get(dim)
        if composed is not None:
            size = self._resolved(composed)
            return dim if size is composed else self.dim(size)
        known = self._known.get(dim)
        return dim if known is None else self.dim(self._resolved(known))

    def learn(self, invented: str, size: Size) -> bool:
        """Record the size of a dim with an invented name; return whether it was unknown."""
        if not invented.startswith(INVENTED) or invented in self._known or invented in self._given:
            return False
        size = self._resolved(size)
        if isinstance(size, Poly) and any(invented in names for names, _ in size.terms):
            return False
        self._known[invented] = size
        self.has_learned = True
        return True

    def _resolved(self, size: Size) -> Size:
        """Replace names by the sizes learned for them."""
        known = self._known
        if not known or isinstance(size, int):
            return size
        if not any(name in known for names, _ in size.terms for name in names):
            return size
        total: Size = 0
        for names, coefficient in size.terms:
            product: Size = coefficient
            for name in names:
                by = known.get(name)
                factor = size_of_dim(name) if by is None else self._resolved(by)
                product = multiply(product, factor)
            total = add(total, product)
        return total
