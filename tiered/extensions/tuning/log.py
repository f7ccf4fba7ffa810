"""The log of a search: what was measured, so that a search that ended can go on.

A search asks for the same rounds in the same order as long as it gets the same answers. So a log of
the rounds is all that it takes to resume one: what is in the log is not measured again.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tiered.extensions.measurement.medians import drift
from tiered.extensions.tuning.judges import Judge
from tiered.extensions.tuning.model_forms import Made
from tiered.support.errors import ModelError, UsageError
from tiered.support.whole_files import write_json

_FORMAT: Final = 1


class Log:
    """A judge that remembers.

    Args:
        judge: measures what is not known yet.
        path: a file for the rounds, None to keep them here.
        key: what they depend on: the model, the machine and the options.
        resume: take the rounds of the file over, if they depend on the same.

    Raises:
        UsageError: a log to resume was written for something else.
        ModelError: there is none, or it cannot be read.
    """

    def __init__(
        self, judge: Judge, path: str | None, key: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        self._judge, self._path, self._key = judge, path, dict(key)
        self._rounds: dict[str, list[float]] = {}
        self.measured = 0
        self._speeds: dict[str, list[float]] = {}
        if resume and path is not None:
            self._rounds = _read(path, self._key)

    @property
    def is_exact(self) -> bool:
        """Whether every round has the same costs."""
        return self._judge.is_exact

    def has(self, stage: str, forms: Sequence[Made], number: int) -> bool:
        """Return whether a round is known."""
        return _name(stage, forms, number) in self._rounds

    def costs(self, stage: str, forms: Sequence[Made], number: int, *, apart: bool) -> list[float]:
        """Return the costs of a round of a stage, measured or known.

        Raises:
            RuntimeFailure: a form fails.
        """
        name = _name(stage, forms, number)
        if name not in self._rounds:
            self._rounds[name] = self._judge.costs(forms, number, apart=apart)
            self.measured += 1
            self.save()
        costs = self._rounds[name]
        self._speeds.setdefault(forms[0].digest, []).append(math.exp(costs[0]))
        return costs

    def drift(self) -> float | None:
        """Return the last costs by the first ones of what was measured most; None without a trend.

        Ratios are not affected: all forms of a round drift together.
        """
        series = max(self._speeds.values(), key=len, default=[])
        return None if self.is_exact else drift(series)

    def measure(self, forms: Sequence[Made]) -> None:
        """Measure forms without remembering it.

        Raises:
            RuntimeFailure: one of them fails.
        """
        self._judge.costs(forms, 0, apart=False)

    def save(self) -> None:
        """Write the rounds, whole or not at all."""
        if self._path is not None:
            record = {"format": _FORMAT, "key": self._key, "rounds": self._rounds}
            write_json(self._path, record)

    def remove(self) -> None:
        """Delete the file of a search that came to its end."""
        if self._path is not None and os.path.exists(self._path):
            os.remove(self._path)


def _name(stage: str, forms: Sequence[Made], number: int) -> str:
    text = " ".join(form.digest for form in forms)
    return f"{stage} {number} {hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"


def _read(path: str, key: Mapping[str, Any]) -> dict[str, list[float]]:
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except FileNotFoundError:
        raise ModelError(f"--resume: no file {path!r}; a search that is ended leaves one") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"--resume: cannot read {path!r}: {error}") from error
    if not _is_log(record):
        raise ModelError(f"--resume: {path!r} is no log of a search of this version")
    found = record["key"]
    other = [name for name in key if found.get(name) != key[name]]
    if other:
        said = "; ".join(f"{name} was {found.get(name)!r}, not {key[name]!r}" for name in other)
        raise UsageError(f"--resume: {path!r} was written for another search: {said}")
    rounds: dict[str, list[float]] = record["rounds"]
    return rounds


def _is_log(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and record.get("format") == _FORMAT
        and isinstance(record.get("key"), dict)
        and isinstance(record.get("rounds"), dict)
        and all(isinstance(costs, list) for costs in record["rounds"].values())
        and all(isinstance(cost, float) for costs in record["rounds"].values() for cost in costs)
    )
