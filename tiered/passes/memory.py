"""What is remembered of each model between passes: when each pass last looked, and what ran."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from tiered.graph import Model, Stamp

_SERIALS = itertools.count(1)


@dataclass(slots=True)
class Memory:
    """One model's: it holds stamps and names only, so that it keeps no model alive."""

    serial: int = field(default_factory=lambda: next(_SERIALS))
    # By what decides the outcome of a run: the moment from which on there may be something new.
    looked: dict[object, Stamp] = field(default_factory=dict)
    # By the text of a pass: the end of its last run, for those who depend on it.
    ended: dict[str, Stamp] = field(default_factory=dict)
    # The passes that changed the model, in order.
    changed_by: list[str] = field(default_factory=list)


_MEMORIES: WeakKeyDictionary[Model, Memory] = WeakKeyDictionary()


def memory_of(model: Model) -> Memory:
    """Return what is remembered of a model."""
    memory = _MEMORIES.get(model)
    if memory is None:
        memory = _MEMORIES[model] = Memory()
    return memory
