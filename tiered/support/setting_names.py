"""Names of settings: those of the command line and of other tools lead to the names here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tiered.support.errors import UsageError, did_you_mean

_OTHER_NAMES: Final = {
    "disable": "disabled",
    "disabled_pass": "disabled",
    "require": "required",
    "required_pass": "required",
    "input_shape": "input_shapes",
    "dim": "dims",
    "edit": "edits",
    "optimization_level": "opt_level",
    "level": "opt_level",
    "target": "backend",
    "limit": "rewrite_limit",
}


def unknown_setting(subject: str, name: str, known: Collection[str]) -> UsageError:
    """Return the error for a setting that a function does not have; it suggests the right name."""
    other = _OTHER_NAMES.get(name)
    hint = f"; here it is called {other!r}" if other in known else did_you_mean(name, known)
    return UsageError(f"{subject} has no setting {name!r}{hint} (it has {', '.join(known)})")
