"""Draw the values of one input from its constraints, and name the rule that chose them."""

from __future__ import annotations

import math
import re
import sys
import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tiered.graph.core.dtypes import float_info, integer_info, is_float
from tiered.runtime.inputs.graph_facts import Fact
from tiered.runtime.inputs.varied import varied

Array = np.ndarray[Any, Any]

_DRAWN_BYTES = 16
"""The bytes of an element as it is drawn, at most."""

_WORDS = ("tiered", "pass", "", "a b", "naïve", "ONNX", "0")
_POSITION = re.compile(r"position|\bpos_?ids?\b|cache_position", re.I)
_TYPE_IDS = re.compile(r"token_?type|segment", re.I)
_IDS = re.compile(r"(^|[_.])ids?$|token|index|indices|beam_idx", re.I)
_RATE = re.compile(r"^sr$|^fs$|sampl(e|ing)_?rate", re.I)
_LENGTH = re.compile(r"(^|[_.])(len|lens|lengths?|seq_?lens?)($|[_.])", re.I)
_MASK = re.compile(r"mask", re.I)


@dataclass(frozen=True)
class Request:
    """One tensor input to make.

    Attributes:
        name, dtype, shape: the input; a string tensor has dtype object.
        facts: the constraints on its values.
        seed, binding, special: as in `make_inputs`.
        longest: a length that no axis of the model's inputs is below.
        varied: whether floats are drawn over decades, with offsets and zeros.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    facts: tuple[Fact, ...]
    seed: int
    binding: int
    special: bool
    longest: int
    varied: bool = False

    @property
    def rng(self) -> np.random.Generator:
        """A stream of its own for each input, so that the others' order does not matter."""
        return np.random.default_rng([self.seed, self.binding, zlib.crc32(self.name.encode())])

    def fact(self, *kinds: str) -> Fact | None:
        return next((fact for fact in self.facts if fact.kind in kinds), None)

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "c" or is_float(self.dtype)

    @property
    def is_varied(self) -> bool:
        """Whether the numbers are varied; a divisor of 0 would make all infinite."""
        is_wide = self.dtype.kind == "f" or self.dtype.name == "bfloat16"
        return self.varied and is_wide and self.fact("divisor") is None

    @property
    def is_mask(self) -> bool:
        return bool(_MASK.search(self.name))


def make_tensor(request: Request) -> tuple[Array, str]:
    """Return an array for the request and the rule that chose it, in words.

    Raises:
        MemoryError: it does not fit, even into the address space.
    """
    # For numpy it is a ValueError, by the dims that are not 0.
    if math.prod(filter(None, request.shape)) > sys.maxsize // _DRAWN_BYTES:
        raise MemoryError(f"no array has the shape {request.shape}")
    if request.dtype == object:
        words = request.rng.choice(np.array(_WORDS, dtype=object), size=request.shape)
        return np.asarray(words, dtype=object), "strings"
    if (prescribed := request.fact("values")) is not None:
        return _prescribed(request, prescribed), f"values for {prescribed.why}"
    if request.dtype == bool:
        return _booleans(request)
    if request.is_float:
        return _floats(request)
    return _integers(request)


def _prescribed(request: Request, fact: Fact) -> Array:
    """Take the fact's values in order, the last one for all the rest."""
    count = int(np.prod(request.shape))
    index = _joined(request, "index")
    if fact.why.startswith("Loop") and index is not None and index.high is not None:
        # The body indexes with the iteration number.
        return np.full(request.shape, min(fact.values[0], index.high)).astype(request.dtype)
    values = [*fact.values[:count], *fact.values[-1:] * (count - len(fact.values))]
    return np.asarray(values, np.float64).astype(request.dtype).reshape(request.shape)


def _booleans(request: Request) -> tuple[Array, str]:
    if request.is_mask or request.fact("mask", "conjunct"):
        return _ones(request, "mask")
    if not request.shape:
        # Each branch runs in some binding: True with even bindings, False with odd ones.
        return np.asarray(request.binding % 2 == 0), "condition"
    drawn = request.rng.integers(0, 2, request.shape).astype(bool)
    if drawn.size > 1:
        drawn.flat[:2] = (True, False)
    return drawn, "booleans"


def _ones(request: Request, what: str) -> tuple[Array, str]:
    """Return ones; with odd bindings the last row ends in zeros, as padding would."""
    ones = np.ones(request.shape, request.dtype)
    padded = request.shape[1] // 4 if len(request.shape) == 2 else 0
    if request.binding % 2 == 0 or not padded or not request.shape[0]:
        return ones, f"{what} of ones"
    ones[-1, -padded:] = 0
    return ones, f"{what} of ones, the last row padded by {padded}"


def _integers(request: Request) -> tuple[Array, str]:
    index = _joined(request, "index")
    if request.is_mask and index is None:
        return _ones(request, "mask")
    if _POSITION.search(request.name) and request.shape:
        return _positions(request, index)
    if index is not None:
        return _indices(request, index)
    length = _joined(request, "length")
    if length is not None or _LENGTH.search(request.name):
        return _lengths(request, length)
    if _RATE.search(request.name) and request.dtype.itemsize >= 4:
        rate = 8000 if request.binding % 2 else 16000
        return np.full(request.shape, rate, request.dtype), f"sampling rate of {rate}"
    if (mask := request.fact("mask", "conjunct", "chooser")) is not None:
        ones, rule = _ones(request, "mask")
        return ones, f"{rule} ({mask.why})"
    if (size := request.fact("size")) is not None:
        return np.full(request.shape, 2, request.dtype), f"small size ({size.why})"
    if request.fact("zero_point"):
        one = int(request.rng.integers(0, 8))
        return np.full(request.shape, one % (_range(request.dtype)[1] + 1)).astype(
            request.dtype
        ), "zero point, the same everywhere"
    if request.fact("divisor"):
        return _draw(request, 1, 6), "divisor: 1 to 5"
    if request.fact("small"):
        return _draw(request, 0, 4), "small: 0 to 3"
    if request.fact("condition"):
        return np.ones(request.shape, request.dtype), "condition"
    if _TYPE_IDS.search(request.name) or _IDS.search(request.name):
        return _draw(request, 0, 2), "ids of an unknown table: 0 or 1"
    return _free_integers(request)


def _joined(request: Request, kind: str) -> Fact | None:
    """Return one fact that satisfies all of a kind; the first supplies `why`."""
    same = [fact for fact in request.facts if fact.kind == kind]
    if not same:
        return None
    highs = [fact.high for fact in same if fact.high is not None]
    dims = next((fact.dims for fact in same if fact.dims), ())
    low = max(fact.low for fact in same)
    return Fact(kind, same[0].why, low, min(highs) if highs else None, dims=dims)


def _positions(request: Request, index: Fact | None) -> tuple[Array, str]:
    low, high = (0, None) if index is None else (index.low, index.high)
    count = np.arange(request.shape[-1], dtype=np.int64)
    if high is not None:
        count %= max(1, high - low)
    count += max(low, _range(request.dtype)[0])
    return np.broadcast_to(count, request.shape).astype(request.dtype), "positions in order"


def _indices(request: Request, index: Fact) -> tuple[Array, str]:
    # Arithmetic on the way may allow numbers that the dtype does not have.
    index = replace(index, low=max(index.low, _range(request.dtype)[0]))
    high = index.low + 2 if index.high is None else max(index.high, index.low + 1)
    text = f"{index.low} <= x < {high} ({index.why})"
    if index.high is None:
        return _draw(request, index.low, high), f"index of an unknown axis: {text}"
    distinct = _distinct(request, index)
    if distinct is not None:
        return distinct, f"index, no place twice ({index.why})"
    drawn = _draw(request, index.low, high)
    if request.varied and drawn.size > 1:
        drawn.flat[[0, -1]] = (index.low, high - 1)
    return drawn, f"index: {text}"


def _distinct(request: Request, index: Fact) -> Array | None:
    """Return scatter indices that hit no place twice (their order would then count), if they fit.

    `index.dims` is the axis for ScatterElements, the addressed sizes for ScatterND.
    """
    if index.why.startswith("ScatterElements") and len(index.dims) == 1 and request.shape:
        axis, size = index.dims[0], request.shape[index.dims[0]]
        if index.low == 0 and index.high is not None and size <= index.high:
            order = request.rng.permutation(index.high)[:size]
            shape = [1] * len(request.shape)
            shape[axis] = size
            return np.broadcast_to(order.reshape(shape), request.shape).astype(request.dtype)
    if index.why.startswith("ScatterND") and index.low == 0 and request.shape and index.dims:
        rows, places = math.prod(request.shape[:-1]), math.prod(index.dims)
        if rows <= places and len(index.dims) == request.shape[-1]:
            flat = request.rng.permutation(places)[:rows]
            columns = np.unravel_index(flat, index.dims)
            return np.stack(columns, axis=-1).reshape(request.shape).astype(request.dtype)
    return None


def _lengths(request: Request, length: Fact | None) -> tuple[Array, str]:
    high = request.longest + 1 if length is None or length.high is None else length.high
    high = max(2, high)
    drawn = _draw(request, 1, high)
    if drawn.size:
        drawn.flat[0] = high - 1  # one row uses all there is
    return drawn, f"length: 1 to {high - 1}"


def _draw(request: Request, low: int, high: int) -> Array:
    """Return integers low <= x < high in any dtype."""
    _, top = _range(request.dtype)
    drawn = request.rng.integers(low, max(low + 1, min(high, top + 1)), request.shape)
    return np.asarray(drawn).astype(request.dtype)


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and greatest integer of a dtype that a draw can use."""
    if dtype.kind == "c" or is_float(dtype):
        return -(2**31), 2**31
    info = integer_info(dtype)
    return max(int(info.min), -(2**62)), min(int(info.max), 2**62)


def _free_integers(request: Request) -> tuple[Array, str]:
    low, high = _range(request.dtype)
    narrow = high - low < 256
    low, high = (low, high) if narrow else (max(low, -10), min(high, 10))
    drawn = np.asarray(request.rng.integers(low, high + 1, request.shape)).astype(request.dtype)
    # The least integer divided by -1 ends the process, so dividends have no extremes.
    if not request.special or not drawn.size or request.fact("dividend"):
        return drawn, f"integers from {low} to {high}"
    info = integer_info(request.dtype)
    _scatter(request, drawn, [int(info.min), int(info.max), 0])
    return drawn, f"integers from {low} to {high}, and the dtype's least and greatest"


def _floats(request: Request) -> tuple[Array, str]:
    if request.is_mask:
        if _adds_first(request):
            return np.zeros(request.shape, request.dtype), "added mask of zeros"
        return _ones(request, "mask")
    if (index := _joined(request, "index")) is not None:
        return _indices(request, index)
    if request.fact("condition"):
        return np.ones(request.shape, request.dtype), "condition"
    if request.fact("zero_point"):
        return np.zeros(request.shape, request.dtype), "zero point of 0"
    if (corners := request.fact("corners")) is not None and request.shape[-1:] == (4,):
        return _corners(request, corners)
    normal = request.rng.standard_normal(request.shape)
    if request.dtype.kind == "c":
        normal = normal + 1j * request.rng.standard_normal(request.shape)
    positive = request.fact("positive")
    unsigned = request.dtype.name == "float8_e8m0fnu"
    if positive is not None or unsigned:
        reason = "the dtype has no sign" if positive is None else positive.why
        return (np.abs(normal) + 0.5).astype(request.dtype), f"positive ({reason})"
    domain = request.fact("domain")
    rule = "normal distribution" if domain is None else f"positive ({domain.why})"
    if domain is not None:
        normal = np.abs(normal) + 0.5
    elif request.is_varied:
        normal, rule = varied(normal, request.dtype.itemsize * 8, request.seed)
    drawn = np.asarray(normal).astype(request.dtype)
    if not request.special or not drawn.size:
        return drawn, rule
    parts = drawn.view(f"f{drawn.itemsize // 2}") if request.dtype.kind == "c" else drawn
    _scatter(request, parts, _special_floats(parts.dtype))
    return drawn, f"{rule}, with special values"


def _corners(request: Request, fact: Fact) -> tuple[Array, str]:
    """Return regions [..., (x1, y1, x2, y2)] of an image; a kernel fails if x2 < x1."""
    half = (2 if fact.high is None else fact.high) / 2
    near = request.rng.uniform(0, half, (*request.shape[:-1], 2))
    extent = request.rng.uniform(half / 4, half, near.shape)
    drawn = np.concatenate([near, near + extent], axis=-1)
    return drawn.astype(request.dtype), f"corners of regions ({fact.why})"


def _adds_first(request: Request) -> bool:
    """Whether a float mask is added to scores, rather than multiplied or taken from 1."""
    use = request.fact("addend", "factor", "mask")
    return use is not None and (use.kind == "addend" or use.why.startswith(("Attention", "Multi")))


def _special_floats(dtype: np.dtype[Any]) -> list[float]:
    """Return ±0, denormals, ±max and, where the dtype has them, ±Inf and NaN."""
    info = float_info(dtype)
    tiny = float(info.smallest_subnormal)
    values = [0.0, -0.0, tiny, -tiny, float(info.max), float(info.min)]
    if info.bits < 8:
        return values
    return [np.inf, -np.inf, np.nan, *values]


def _scatter(request: Request, array: Array, values: list[Any]) -> None:
    """Put values at drawn places, in at most half of the elements, in place."""
    count = min(len(values), max(1, array.size // 2))
    places = request.rng.permutation(array.size)[:count]
    start = request.seed % len(values) if count < len(values) else 0
    chosen = [values[(start + i) % len(values)] for i in range(count)]
    with np.errstate(invalid="ignore", over="ignore"):
        array.flat[places] = np.asarray(chosen).astype(array.dtype)
