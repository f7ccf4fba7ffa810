"""Run models on onnxruntime, compare what they give, and make inputs that they accept.

The names below load on first use. The function `compare` is not among them, because the module
`tiered.runtime.compare` has its name: `from tiered.runtime.compare import compare`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiered.loading import load_later

if TYPE_CHECKING:
    from tiered.runtime.compare import Comparison
    from tiered.runtime.elements import OutputDifference
    from tiered.runtime.fold import ancestors, divides_safely, evaluate, freed_bytes
    from tiered.runtime.inputs import Inputs, feasible_inputs, make_inputs
    from tiered.runtime.needs import held_bytes, needs_of, waits_for_operands
    from tiered.runtime.numerics import QUANTISED, Numerics
    from tiered.runtime.session import Reference, Runner, Session, run, run_reference
    from tiered.runtime.work import is_fragile, work_of
    from tiered.runtime.worker import Worker, WorkerSession, shared_worker

__all__ = [
    "QUANTISED",
    "Comparison",
    "Inputs",
    "Numerics",
    "OutputDifference",
    "Reference",
    "Runner",
    "Session",
    "Worker",
    "WorkerSession",
    "ancestors",
    "divides_safely",
    "evaluate",
    "feasible_inputs",
    "freed_bytes",
    "held_bytes",
    "is_fragile",
    "make_inputs",
    "needs_of",
    "run",
    "run_reference",
    "shared_worker",
    "waits_for_operands",
    "work_of",
]

_HOME = {
    "compare": ("Comparison",),
    "elements": ("OutputDifference",),
    "fold": ("ancestors", "divides_safely", "evaluate", "freed_bytes"),
    "inputs": ("Inputs", "feasible_inputs", "make_inputs"),
    "needs": ("held_bytes", "needs_of", "waits_for_operands"),
    "numerics": ("QUANTISED", "Numerics"),
    "session": ("Reference", "Runner", "Session", "run", "run_reference"),
    "work": ("is_fragile", "work_of"),
    "worker": ("Worker", "WorkerSession", "shared_worker"),
}

if not TYPE_CHECKING:  # with a __getattr__ to fall back to, type checkers would take any name
    __getattr__, __dir__ = load_later(__name__, _HOME)
