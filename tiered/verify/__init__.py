"""Proving passes on the user's own model: promises, structure, and the instrument `Verify`.

`from tiered import verify`; the names below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiered.loading import load_later

if TYPE_CHECKING:
    from tiered.verify.instrument import Verify
    from tiered.verify.promises import METRICS, equality, metric, tolerance
    from tiered.verify.structure import acyclic, connected, isomorphic_to

__all__ = [
    "METRICS",
    "Verify",
    "acyclic",
    "connected",
    "equality",
    "isomorphic_to",
    "metric",
    "tolerance",
]

_HOME = {
    "instrument": ("Verify",),
    "promises": ("METRICS", "equality", "metric", "tolerance"),
    "structure": ("acyclic", "connected", "isomorphic_to"),
}

if not TYPE_CHECKING:  # with a __getattr__ to fall back to, type checkers would take any name
    __getattr__, __dir__ = load_later(__name__, _HOME)
