"""What is remembered of each model between passes: when each pass last looked, and what ran."""

from __future__ import annotations

import itertools
from weakref import WeakKeyDictionary

from tiered.graph import Model, Stamp

_SERIALS = itertools.count(1)


class Memory:
    """One model's: it holds stamps and names only, so that it keeps no model alive."""

    def __init__(self) -> None:
        self.serial = next(_SERIALS)
        # By what decides the outcome of a run: the moment from which on there may be something new.
        self.looked: dict[object, Stamp] = {}
        # By the text of a pass: the end of its last run, for those who depend on it.
        self.ended: dict[str, Stamp] = {}
        # The passes that changed the model, in order.
        self.changed_by: list[str] = []


_MEMORIES: WeakKeyDictionary[Model, Memory] = WeakKeyDictionary()


def memory_of(model: Model) -> Memory:
    """Return what is remembered of a model."""
    memory = _MEMORIES.get(model)
    if memory is None:
        memory = _MEMORIES[model] = Memory()
    return memory
