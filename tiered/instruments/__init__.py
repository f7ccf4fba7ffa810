"""What watches passes: `PassContext(instruments=[Timing(), Diff()])`; each loads at first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiered.instruments.checks import Checks
    from tiered.instruments.diff import Diff
    from tiered.instruments.dump import Dump
    from tiered.instruments.invariants import Invariants
    from tiered.instruments.print_ir import PrintIR
    from tiered.instruments.statistics import Statistics
    from tiered.instruments.timing import Timing
    from tiered.instruments.trace import Trace
    from tiered.verify.instrument import Verify

__all__ = [
    "Checks",
    "Diff",
    "Dump",
    "Invariants",
    "PrintIR",
    "Statistics",
    "Timing",
    "Trace",
    "Verify",
]

_HOME = {
    "Checks": "checks",
    "Diff": "diff",
    "Dump": "dump",
    "Invariants": "invariants",
    "PrintIR": "print_ir",
    "Statistics": "statistics",
    "Timing": "timing",
    "Trace": "trace",
    "Verify": "verify",
}

if not TYPE_CHECKING:  # with a __getattr__ to fall back to, type checkers would take any name

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
