"""Terms: 128 bits for each element, a hash of how it is computed.

Equal terms mean equal bits for every input, but for a collision: n different terms collide with a
probability of about n * n / 2**129 if the mixing behaves as a random function. All is plain numpy:
an array of terms is moved as an array of numbers is.

A float and its negative have terms that differ by `NEGATIVE` alone, so that the sign of a product
is a bit of its term. A number has one term in all dtypes of its class that hold it exactly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
TERM: Final = np.dtype([("a", "<u8"), ("b", "<u8")])
_U64: Final = np.uint64
_K: Final = tuple(
    _U64(k)
    for k in (
        *(0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F),
        *(0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3, 0x1D8E4E27C47D124F),
    )
)
_BLOCK: Final = 1 << 14
_S29, _S32, _S63 = _U64(29), _U64(32), _U64(63)
NEGATIVE: Final = (_U64(0xB492B66FBE98F273), _U64(0x9AE16A3B2F90404F))
"""What the term of a number and that of its negative differ by; its top bit is set."""
_NAN: Final = np.float64("nan").view(_U64)

Seed = tuple[np.uint64, np.uint64]


def seed_of(*parts: object) -> Seed:
    """Return the seed of an operator with its attributes, or of anything that has a repr."""
    # By the text: 0.0, -0.0, 0 and False are equal as keys.
    return _seed_of_text(repr(parts))


@lru_cache(maxsize=8192)
def _seed_of_text(text: str) -> Seed:
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return _U64(int.from_bytes(digest[:8], "little")), _U64(int.from_bytes(digest[8:], "little"))


def joined(a: Any, b: Any) -> Array:
    """Return two lanes as terms."""
    made = np.empty(np.shape(a), TERM)
    made["a"], made["b"] = a, b
    return made


def mix(seed: Seed, *terms: Array) -> Array:
    """Return the terms of an operator: a hash of its seed and the terms that it reads, in order."""
    shape = np.broadcast_shapes(*(term.shape for term in terms))
    made = np.empty(shape, TERM)
    with np.errstate(over="ignore"):
        _mix_into(made, seed, [np.broadcast_to(term, shape) for term in terms])
    return made


def _mix_into(made: Array, seed: Seed, terms: Sequence[Array]) -> None:
    """Fill an array, block by block: what a processor's cache holds is mixed fastest."""
    if made.size > _BLOCK:
        rows = max(1, _BLOCK * len(made) // made.size)
        if len(made) == 1:
            _mix_into(made[0], seed, [term[0] for term in terms])
            return
        for start in range(0, len(made), rows):
            part = slice(start, start + rows)
            _mix_into(made[part], seed, [term[part] for term in terms])
        return
    a, b = np.full(made.shape, seed[0]), np.full(made.shape, seed[1])
    for term in terms:
        x, y = term["a"], term["b"]
        a = _absorbed(a, x, y, _K[0], _K[1])
        b = _absorbed(b, y, x, _K[2], _K[3])
    made["a"], made["b"] = a, b


def _absorbed(lane: Array, first: Array, second: Array, k: np.uint64, j: np.uint64) -> Array:
    lane ^= first
    lane *= k
    lane ^= lane >> _S29
    lane += second
    lane *= j
    lane ^= lane >> _S32
    return lane


def leaf(seed: Seed, shape: Sequence[int]) -> Array:
    """Return the terms of a free tensor: one unknown for each element."""
    count = int(np.prod(shape, dtype=np.int64))
    return leaf_at(seed, np.arange(count, dtype=_U64)).reshape(tuple(shape))


def leaf_at(seed: Seed, places: Array) -> Array:
    """Return some terms of a free tensor, by their places."""
    index = places.astype(_U64)
    with np.errstate(over="ignore"):
        return mix(seed, joined(index * _K[4] + _K[5], (index ^ _K[6]) * _K[7]))


def constants(array: Array) -> Array:
    """Return the terms of numbers: by value within floats, integers, bools and strings."""
    kind = kind_of(array.dtype)
    if kind == "string":
        made = np.empty(array.shape, TERM)
        made.reshape(-1)[:] = [seed_of("string", text) for text in array.ravel().tolist()]
        return made
    if kind == "complex":
        parts = array.astype(np.complex128)
        return mix(seed_of("complex"), _numbers(parts.real), _numbers(parts.imag))
    if kind == "float":
        return _numbers(array)
    if kind == "bool":
        bits = np.asarray(array, _U64)
        return _of_bits("bool", bits)
    if array.dtype == _U64:
        return _of_bits("integer", array)
    wide = array.astype(np.int64)
    is_negative = wide < 0
    magnitude = np.where(is_negative, np.add((~wide).view(_U64), _U64(1)), wide.view(_U64))
    return negated(_of_bits("integer", magnitude), is_negative)


def _numbers(array: Array) -> Array:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = np.asarray(array).astype(np.float64)
    bits = np.where(np.isnan(wide), _NAN, np.abs(wide).view(_U64))
    return negated(_of_bits("float", bits), np.signbit(wide) & ~np.isnan(wide))


def _of_bits(kind: str, bits: Array) -> Array:
    with np.errstate(over="ignore"):
        return mix(seed_of("constant", kind), joined(bits, (bits + _K[5]) * _K[7]))


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return the class of a dtype: within one, a number has one term."""
    if dtype.kind in "OSU":
        return "string"
    if dtype.kind in "bc":
        return "bool" if dtype.kind == "b" else "complex"
    if dtype.name.startswith(("int", "uint")):
        return "integer"
    return "float"


def negated(terms: Array, where: Any = True) -> Array:
    """Return the terms of the negatives, at some places."""
    flip = np.asarray(where).astype(_U64)
    return joined(terms["a"] ^ (NEGATIVE[0] * flip), terms["b"] ^ (NEGATIVE[1] * flip))


def flipped(terms: Array) -> Array:
    """Return the terms of unsigned integers of 8 bits minus 128, or of signed ones plus 128."""
    return joined(terms["a"] ^ _K[2], terms["b"] ^ _K[3])


def magnitudes(terms: Array) -> tuple[Array, Array]:
    """Return terms without their sign, and where the sign was."""
    signs = (terms["a"] >> _S63).astype(bool)
    return negated(terms, signs), signs


def ordered(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the smaller and the larger of two terms: an order that does not depend on theirs."""
    x, y = np.broadcast_arrays(x, y)
    is_first = (x["a"] < y["a"]) | ((x["a"] == y["a"]) & (x["b"] <= y["b"]))
    return np.where(is_first, x, y), np.where(is_first, y, x)


def are_equal(x: Array, y: Array) -> Any:
    """Return where terms are equal."""
    return (x["a"] == y["a"]) & (x["b"] == y["b"])


def listed(seed: Seed, terms: Array, *, is_ordered: bool = True) -> Array:
    """Return the term of each list along the last axis; of each multiset if not ordered.

    Of a list, each lane is the sum of its terms times odd numbers, one for each place. So lists
    of terms that differ at one place have different sums, and others have equal ones with a
    probability of 2**-64 for each lane.
    """
    length = terms.shape[-1]
    if is_ordered:
        a, b = odd_numbers(seed, length)
        sums = joined(*(terms[lane] @ by for lane, by in (("a", a), ("b", b))))
    else:
        spread = mix(seed, terms)
        with np.errstate(over="ignore"):
            sums = joined(spread["a"].sum(-1, dtype=_U64), spread["b"].sum(-1, dtype=_U64))
    return mix(seed_of("list", length), sums)


@lru_cache(maxsize=64)
def odd_numbers(seed: Seed, length: int) -> tuple[Array, Array]:
    """Return what the terms of a list are multiplied by, for both lanes."""
    marks = leaf(seed, (length,))
    return marks["a"] | _U64(1), marks["b"] | _U64(1)


def digest(terms: Array) -> tuple[int, int]:
    """Return the term of a whole tensor as two numbers; of other elements, by their bytes."""
    if terms.dtype != TERM:
        # Numbers are no random bits: sums of such would be equal by far too often.
        terms = mix(seed_of("bytes"), np.ascontiguousarray(terms).ravel().view(TERM))
    total = listed(seed_of("tensor", terms.shape), terms.ravel())
    return int(total["a"]), int(total["b"])
