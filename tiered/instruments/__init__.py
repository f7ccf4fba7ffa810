"""What watches passes: `PassContext(instruments=[Timing(), Diff()])`; each loads at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiered.loading import load_later

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
    "checks": ("Checks",),
    "diff": ("Diff",),
    "dump": ("Dump",),
    "invariants": ("Invariants",),
    "print_ir": ("PrintIR",),
    "statistics": ("Statistics",),
    "timing": ("Timing",),
    "trace": ("Trace",),
    "verify": ("Verify",),
}

if not TYPE_CHECKING:  # with a __getattr__ to fall back to, type checkers would take any name
    __getattr__, __dir__ = load_later(__name__, _HOME)
