"""Elements over the reals: scale * atom + offset, where an atom is a term and two are numbers.

So scales and offsets that passes fold into weights meet those that they were folded from. Numbers
that passes computed in floats are rounded: numbers within a few ulps count as one, and the largest
distance that was seen is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tiered.certify.domains.element_arrays import (
    affine,
    atoms_of,
    is_number,
    merged,
    normal,
    of_atoms,
    without_zero,
)
from tiered.certify.domains.terms import (
    Array,
    Seed,
    constants as constant_terms,
    joined,
    kind_of,
    leaf_at,
    listed,
    mix,
    ordered,
    seed_of,
)
from tiered.certify.evaluation.evaluate import free_terms
from tiered.certify.evaluation.values import CheckedTensor, Unproved

NEAR: Final = 4.0
"""Numbers up to four ulps apart count as one."""


class Affine:
    """The domain: how elements are computed, and which numbers count as one.

    Args:
        epsilon: one ulp of 1, of the widest rounding among the dtypes of the constants.

    Attributes:
        bound: the largest distance between numbers that counted as one, in ulps.
    """

    name = "reals"

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon
        self.bound = 0.0
        self._numbers = np.zeros(0)
        self._known: list[Array] = []
        self._columns: dict[tuple[int, int, float], list[int]] = {}

    # --- making --------------------------------------------------------------------------------

    def constant(self, numbers: Array) -> Array:
        kind = kind_of(numbers.dtype)
        if kind in ("string", "complex"):
            raise Unproved(f"{kind} constants are no reals")
        wide = numbers.astype(np.float64)
        is_finite = np.isfinite(wide)
        if is_finite.all():
            return affine(np.zeros(wide.shape), np.zeros(wide.shape), 0.0, wide)
        # NaN and infinities are unknowns: nothing is computed with them.
        terms = constant_terms(wide)
        made = affine(terms["a"], terms["b"], 1.0, 0.0)
        return np.where(is_finite, self.constant(np.where(is_finite, wide, 0)), made)

    def free(self, key: object, shape: Sequence[int]) -> Array:
        return of_atoms(free_terms(key, shape))

    def hashed(self, seed: Seed, *elements: Array) -> Array:
        """Return an unknown function of elements."""
        return of_atoms(mix(seed, *map(self.plain, elements)))

    def plain(self, elements: Array) -> Array:
        """Return the terms of elements; those of numbers that count as one are equal."""
        atoms = atoms_of(elements)
        is_plain = (elements["s"] == 1) & (elements["o"] == 0)
        if is_plain.all():
            return atoms
        s, o = (self.canonical(elements[part]).view(np.uint64) for part in ("s", "o"))
        return np.where(is_plain, atoms, mix(seed_of("affine"), atoms, joined(s, o)))

    def canonical(self, numbers: Array) -> Array:
        """Return for each number the first one near it that was seen."""
        values, places = np.unique(np.asarray(numbers, np.float64), return_inverse=True)
        values = values + 0.0  # no -0.0
        made = values.copy()
        if len(self._numbers):
            at = np.searchsorted(self._numbers, values)
            for step in (at - 1, at):
                other = self._numbers[np.clip(step, 0, len(self._numbers) - 1)]
                near = self._distance(values, other) <= NEAR
                with np.errstate(invalid="ignore"):  # infinite bounds
                    closer = np.abs(other - values) < np.abs(made - values)
                made = np.where(near & (closer | (made == values)), other, made)
            distance = self._distance(values, made)
            self.bound = max(self.bound, float(distance.max(initial=0.0)))
        self._numbers = np.union1d(self._numbers, made)
        return made[places].reshape(np.shape(numbers))

    def _distance(self, x: Array, y: Array) -> Array:
        """Return how far numbers are apart, in ulps."""
        with np.errstate(all="ignore"):
            gap = np.abs(x - y) / (self.epsilon * np.maximum(np.abs(x), np.abs(y)))
        return np.where(x == y, 0.0, gap)

    def are_equal(self, one: CheckedTensor, other: CheckedTensor) -> bool:
        """Return whether tensors are equal, but for the rounding of constants."""
        x, y = one.terms, other.terms
        if not ((x["a"] == y["a"]) & (x["b"] == y["b"])).all():
            return False
        gaps = [self._distance(x[part], y[part]) for part in ("s", "o")]
        largest = max(float(gap.max(initial=0.0)) for gap in gaps)
        if not largest <= NEAR:
            return False
        self.bound = max(self.bound, largest)
        return True

    # --- arithmetic ----------------------------------------------------------------------------

    def add(self, *parts: Array) -> Array:
        """Return sums in any order: offsets are added; of different atoms ratios are hashed."""
        whole = np.broadcast_arrays(*parts)
        offset = sum((part["o"] for part in whole[1:]), whole[0]["o"])
        lanes = merged([affine(part["a"], part["b"], part["s"], 0.0) for part in whole])
        first = lanes[0]
        term = atoms_of(first)
        for lane in lanes[1:]:
            is_there = ~is_number(lane)
            if is_there.any():
                with np.errstate(all="ignore"):
                    ratio = np.where(is_there, lane["s"] / first["s"], 1.0)
                ratio = self.canonical(ratio).view(np.uint64)
                more = mix(seed_of("sum of two"), term, atoms_of(lane), joined(ratio, ratio))
                term = np.where(is_there, more, term)
        return without_zero(affine(term["a"], term["b"], first["s"], offset))

    def scaled(self, x: Array, factor: Array | float) -> Array:
        """Return elements times numbers.

        Raises:
            Unproved: one is no finite number.
        """
        factor = finite(np.asarray(factor, np.float64))
        x, factor = np.broadcast_arrays(x, factor)
        return without_zero(affine(x["a"], x["b"], x["s"] * factor, x["o"] * factor))

    def mul(self, x: Array, y: Array) -> Array:
        """Return products: numbers scale; of others scales are taken out, and offsets apart."""
        x, y = np.broadcast_arrays(x, y)
        by_number = np.where(is_number(x), self.scaled(y, x["o"]), self.scaled(x, y["o"]))
        simple = is_number(x) | is_number(y)
        if simple.all():
            return np.asarray(by_number)
        term = mix(seed_of("product"), *ordered(atoms_of(x), atoms_of(y)))
        made = affine(term["a"], term["b"], x["s"] * y["s"], 0.0)
        if (x["o"][~simple] != 0).any() or (y["o"][~simple] != 0).any():
            # (a + m) * (b + n) is a * b + n * a + m * b + m * n.
            bare = affine(y["a"], y["b"], y["s"], 0.0)
            made = self.add(made, self.scaled(x, y["o"]), self.scaled(bare, x["o"]))
        return np.where(simple, by_number, made)

    def inverse(self, x: Array) -> Array:
        """Return reciprocals.

        Raises:
            Unproved: one is that of zero.
        """
        numbers = is_number(x)
        if (numbers & (x["o"] == 0)).any():
            raise Unproved("a division by zero")
        term = mix(seed_of("inverse"), self.plain(normal(x)))
        with np.errstate(all="ignore"):
            made = affine(term["a"], term["b"], 1 / x["s"], 0.0)
            fixed = affine(np.zeros(x.shape), np.zeros(x.shape), 0.0, 1 / x["o"])
        return np.where(numbers, fixed, made)

    def total(self, lanes: Array) -> Array:
        """Return the sums along the last axis, in any order."""
        offset = lanes["o"].sum(-1)
        scale = lanes["s"][..., :1]
        if lanes.shape[-1] == 0:
            return self.constant(np.zeros(lanes.shape[:-1]))
        if (lanes["s"] == scale).all() and (scale != 0).all():
            term = listed(seed_of("sum"), atoms_of(lanes), is_ordered=False)
            return affine(term["a"], term["b"], scale[..., 0], offset)
        if is_number(lanes).all():
            return self.constant(offset)
        bare = affine(lanes["a"], lanes["b"], lanes["s"], 0.0)
        term = listed(seed_of("sum"), self.plain(bare), is_ordered=False)
        return affine(term["a"], term["b"], 1.0, offset)

    # --- sums of products ----------------------------------------------------------------------

    def dots(self, rows: Array, columns: Array, weights: Array | None) -> Array:
        """Return the products of rows [..., m, k] and columns [..., k, n].

        Args:
            rows: elements.
            columns: elements.
            weights: the columns as numbers, if they are known.

        Raises:
            Unproved: one of them is not finite.
        """
        if rows.shape[-1] == 0:
            outer = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
            return self.constant(np.zeros((*outer, rows.shape[-2], columns.shape[-1])))
        if weights is None:
            return self._bilinear(rows, columns)
        scale, offset = _common(rows)
        if scale is None:
            rows, scale = of_atoms(self.plain(rows)), np.ones(rows.shape[-1])
            offset = np.zeros(rows.shape[-1])
        assert offset is not None
        left = listed(seed_of("row"), atoms_of(rows))[..., :, None]
        numbers = finite(weights.astype(np.float64))
        wide = np.moveaxis(numbers, -2, 0)[..., None, :]  # [k, ..., 1, n]
        along = (-1, *[1] * (wide.ndim - 1))
        offsets = np.asarray((offset.reshape(along) * wide).sum(0))
        return self.products(left, scale.reshape(along) * wide, offsets)

    def products(self, rows: Array, weights: Array, offsets: Array) -> Array:
        """Return the products of rows and columns of numbers.

        Args:
            rows: terms of lists of atoms; they broadcast with the columns.
            weights: the columns, [k, *columns], by the scales of the elements of the rows.
            offsets: what is added for each column, [*columns].
        """
        shape = weights.shape[1:]
        names, norms = self._named(weights.reshape(len(weights), -1).astype(np.float64))
        term = mix(seed_of("dot"), rows, names.reshape(shape))
        return without_zero(affine(term["a"], term["b"], norms.reshape(shape), offsets))

    def _bilinear(self, rows: Array, columns: Array) -> Array:
        left, right = rows, np.swapaxes(columns, -1, -2)
        sides = []
        for side in (left, right):
            # Each row by the scale of its first element: what is left are ratios.
            factor = np.where(side["s"][..., 0] == 0, 1.0, side["s"][..., 0])
            rest = self.plain(self.scaled(side, 1 / factor[..., None]))
            is_zero = (is_number(side) & (side["o"] == 0)).all(-1)
            sides.append((listed(seed_of("row"), rest), np.where(is_zero, 0.0, factor)))
        (one, first), (other, second) = sides
        term = mix(seed_of("bilinear"), *ordered(one[..., :, None], other[..., None, :]))
        return without_zero(
            affine(term["a"], term["b"], first[..., :, None] * second[..., None, :], 0.0)
        )

    def _named(self, weights: Array) -> tuple[Array, Array]:
        """Return a term for each column of numbers, up to its scale, and that scale."""
        size, count = weights.shape
        places = np.argmax(np.abs(weights), axis=0) if size else np.zeros(count, np.int64)
        norms = weights[places, np.arange(count)] if size else np.zeros(count)
        names = np.zeros(count, np.int64)
        there = np.flatnonzero(norms)
        beside = weights[(places[there] + 1) % max(size, 1), there] / norms[there]
        steps = np.rint(beside * 4096)
        held: list[tuple[int, int]] = []  # columns, and known ones that they may be multiples of
        keys = zip(there.tolist(), places[there].tolist(), steps.tolist(), strict=True)
        for at, place, step in keys:
            found = [
                name
                for near in (step, step - 1, step + 1)
                for name in self._columns.get((size, place, near), ())
            ]
            held += [(at, name) for name in found]
            if not found:
                names[at], norms[at] = self._new_name(weights[:, at], (size, place, step))
        self._look_up(weights, held, names, norms)
        for at, place, step in zip(there.tolist(), places[there].tolist(), steps, strict=True):
            if not names[at]:
                names[at], norms[at] = self._new_name(weights[:, at], (size, place, step))
        return leaf_at(seed_of("column", size), names), norms

    def _new_name(self, column: Array, key: tuple[int, int, float]) -> tuple[int, float]:
        """Return the number of a new column, and its scale."""
        self._known.append(column)
        self._columns.setdefault(key, []).append(len(self._known))
        return len(self._known), 1.0

    def _look_up(
        self, weights: Array, pairs: Sequence[tuple[int, int]], names: Array, norms: Array
    ) -> None:
        """Write the numbers of known columns that columns are multiples of, and their scales.

        Args:
            weights: the columns.
            pairs: columns, and numbers of known ones that each may be a multiple of.
            names: the numbers; 0 where there is none yet.
            norms: the largest number of each column; afterwards its scale.
        """
        if not pairs:
            return
        ats = np.array([at for at, _ in pairs])
        columns, known = weights[:, ats], np.stack([self._known[n - 1] for _, n in pairs], axis=1)
        largest = np.argmax(np.abs(columns), axis=0)
        factors = norms[ats] / known[largest, np.arange(len(pairs))]
        distances = self._distance(columns, known * factors).max(axis=0)
        for (at, name), factor, distance in zip(pairs, factors, distances, strict=True):
            if distance <= NEAR and not names[at]:
                self.bound = max(self.bound, float(distance))
                names[at], norms[at] = name, factor


def finite(numbers: Array) -> Array:
    """Return numbers with which elements are multiplied.

    Raises:
        Unproved: one is an infinity or NaN: the laws of a field do not hold for these.
    """
    if not np.isfinite(numbers).all():
        raise Unproved("a factor that is not finite")
    return numbers


def by_channel(x: Array, *, has_pads: bool) -> tuple[Array | None, Array | None]:
    """Return the scales and offsets along axis 1, if each channel has one.

    A zero has every scale. With pads among them, offsets are no constant of a sum.
    """
    lanes = np.moveaxis(x, 1, -1)
    if not x.size:
        return np.ones(x.shape[1]), np.zeros(x.shape[1])
    scale, offset = _common(lanes)
    if offset is not None and has_pads and (offset != 0).any():
        return None, None
    return scale, offset


def _common(rows: Array) -> tuple[Array | None, Array | None]:
    """Return the scales and offsets along the last axis, if all rows have the same ones.

    A pad is a zero, which has every scale.
    """
    size = rows.shape[-1]
    flat = rows.reshape(-1, size)
    if not len(flat):
        return np.ones(size), np.zeros(size)
    numbers = is_number(flat)
    zeros = numbers & (flat["o"] == 0)
    if (numbers & ~zeros).any():
        return None, None
    first = np.argmin(zeros, axis=0)
    scale = np.where(zeros.all(0), 1.0, flat["s"][first, np.arange(size)])
    offset = np.where(zeros.all(0), 0.0, flat["o"][first, np.arange(size)])
    fits = zeros | ((flat["s"] == scale) & (flat["o"] == offset))
    # Offsets of pads are none: only without any are they a constant of the sum.
    if not fits.all() or (zeros.any() and (offset != 0).any()):
        return None, None
    return scale, offset
