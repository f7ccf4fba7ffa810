"""Proving passes on the user's own model: promises, structure, and the instrument `Verify`.

`from tiered import verify`; the names below load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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
    "METRICS": "promises",
    "Verify": "instrument",
    "acyclic": "structure",
    "connected": "structure",
    "equality": "promises",
    "isomorphic_to": "structure",
    "metric": "promises",
    "tolerance": "promises",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
