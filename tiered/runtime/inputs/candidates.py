"""Sizes to try, likeliest first, where a model does not take the usual ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tiered.runtime.inputs.dims import Binder, Slot

# With more names than these, there are too many relations between them to try.
_MAX_PAIRED = 6
_MAX_SUMMED = 4
# Windows of recurrent detectors at 16 and 8 kHz, then what spectrograms and whole seconds take.
_SOUNDS = (512, 256, 576, 128, 1536, 3000, 16000)
_SOUND_RANK = 3

Candidate = tuple[str, dict[str, int], int]


def candidates(slots: list[Slot], usual: Binder) -> Iterator[Candidate]:
    """Yield (words, sizes by name or role, rank of tensors that have none), likeliest first.

    Args:
        slots: the dims of the inputs.
        usual: has bound them as `make_inputs` does unasked.
    """
    rank = 2
    yield "sizes as usual", {}, rank
    yield "one new token after a past", {"seq": 1}, rank
    yield "no past", {"past": 0}, rank
    yield "total = seq", {"total": usual.first("seq") or 1}, rank
    names = list(dict.fromkeys(slot.key for slot in slots if not isinstance(slot.dim, int)))
    free = [name for name in names if usual.roles[name] != "weights"]
    rest = [name for name in free if usual.roles[name] != "batch"]
    yield "batch 1", {"batch": 1}, rank
    if rest:
        size = usual.sizes[rest[0]]
        yield "all dims but the batch equal", dict.fromkeys(rest, size), rank
        yield "all dims equal", dict.fromkeys(free, size), rank
    yield from _relations(free, usual, rank)
    yield from _sounds(slots, usual, rank)
    yield "square images", {"height": 64, "width": 64}, rank
    yield "images of 224", {"height": 224, "width": 224}, rank
    if any(slot.rank == 2 for slot in slots):
        for other in (1, 0, 3, 4):
            yield f"rank {other} where the model says none", {}, other
    yield "all dims 32", dict.fromkeys(free, 32), rank
    yield "all dims 1", dict.fromkeys(free, 1), rank  # last: ones broadcast, and so prove little


def _sounds(slots: list[Slot], usual: Binder, rank: int) -> Iterator[Candidate]:
    """Yield lengths of sound, in samples or frames, for the float inputs that have a free dim."""
    keys = [
        slot.key
        for slot in slots
        if not isinstance(slot.dim, int) and not slot.is_integer and slot.rank <= _SOUND_RANK
        if usual.roles[slot.key] not in ("batch", "past", "weights")
    ]
    for size in _SOUNDS if keys else ():
        yield f"{size} samples or frames of sound", dict.fromkeys(keys, size), rank
        yield f"{size} of them, batch 1", {"batch": 1, **dict.fromkeys(keys, size)}, rank


def _relations(free: list[str], usual: Binder, rank: int) -> Iterator[Candidate]:
    """Yield that one name equals another, or the sum of two others."""
    if len(free) > _MAX_PAIRED:
        return
    for one, other in combinations(free, 2):
        yield f"{other} = {one}", {other: usual.sizes[one]}, rank
    for a, b in combinations(free if len(free) <= _MAX_SUMMED else (), 2):
        for total in (name for name in free if name not in (a, b)):
            yield f"{total} = {a} + {b}", {total: usual.sizes[a] + usual.sizes[b]}, rank
