"""What earlier searches measured, by decision, blocks and machine.

A decision about a block, on the same machine and runtime, helps a model with equal blocks as it
helped the one before: what did not pay is not measured again, and what did goes straight to the
proof. A proof is never taken from here.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Final

from tiered.extensions.measurement.latency_result import NO_DIFFERENCE
from tiered.extensions.measurement.medians import MedianInterval
from tiered.extensions.tuning.model_forms import Choice, ModelForm
from tiered.extensions.tuning.race import FASTER, SLOWER, UNDECIDED, Gain
from tiered.support.errors import ModelError
from tiered.support.whole_files import write_json

_FORMAT: Final = 1
_NUMBERS: Final = 5
"""Of a gain: its interval, the confidence of that, and the rounds."""
_VERDICTS: Final = (FASTER, SLOWER, NO_DIFFERENCE)


class GainCache:
    """Gains of decisions in a file of a folder.

    Args:
        folder: where it is; None for no cache.
        machine: what the gains depend on beside form and blocks: the machine and the runtime.

    Raises:
        ModelError: the folder or the file cannot be used.
    """

    def __init__(self, folder: str | None, machine: str) -> None:
        self._machine, self._gains = machine, dict[str, list[Any]]()
        self._path = None
        self.hits = 0
        if folder is None:
            return
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise ModelError(f"--cache {folder!r}: {error.strerror}") from error
        name = hashlib.blake2b(machine.encode(), digest_size=12).hexdigest()
        self._path = os.path.join(folder, f"{name}.json")
        if os.path.exists(self._path):
            self._gains = _read(self._path)

    def gain(self, form: ModelForm, choice: Choice) -> Gain | None:
        """Return what is known of a decision beside a form; None if its blocks are new."""
        found = self._gains.get(_key(form, choice)) if choice.blocks else None
        if found is None:
            return None
        self.hits += 1
        low, median, high, confidence, rounds, verdict = found
        return Gain(MedianInterval(low, median, high, confidence), rounds, verdict)

    def keep(self, form: ModelForm, choice: Choice, gain: Gain) -> None:
        """Remember what was measured of a decision; undecided ones are measured again."""
        if choice.blocks and gain.verdict != UNDECIDED:
            self._gains[_key(form, choice)] = [*gain.ratio, gain.rounds, gain.verdict]

    def save(self) -> None:
        """Write the file, whole or not at all, with what other searches added to it meanwhile.

        Raises:
            ModelError: it cannot be written.
        """
        if self._path is not None:
            others = _read(self._path) if os.path.exists(self._path) else {}
            ordered = dict(sorted({**others, **self._gains}.items()))
            write_json(self._path, {"format": _FORMAT, "machine": self._machine, "gains": ordered})


def _key(form: ModelForm, choice: Choice) -> str:
    """Return the key of a decision: the blocks stand for the names of their nodes."""
    without = [f"without {name.partition('@')[0]}" for name in choice.disabled]
    added = [f"with {name}" for name in choice.required]
    where = f"{form.level} {form.backend}"
    return " ".join((where, *without, *added, *choice.edits, "at", *choice.blocks))


def _read(path: str) -> dict[str, list[Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        if record["format"] != _FORMAT:
            return {}
        gains: dict[str, list[Any]] = record["gains"]
        for *numbers, verdict in gains.values():
            if len(numbers) != _NUMBERS or verdict not in _VERDICTS:
                raise ValueError(f"{[*numbers, verdict]} is no gain")
            _ = [float(number) for number in numbers]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"--cache: {path!r} is no cache of tiered; delete it: {error}") from error
    return gains
