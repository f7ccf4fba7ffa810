"""Run models on onnxruntime, compare what they give, and make inputs that they accept.

The names below load on first use. The function `compare` is not among them, because the module
`tiered.runtime.compare` has its name: `from tiered.runtime.compare import compare`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiered.runtime.compare import Comparison
    from tiered.runtime.elements import OutputDifference
    from tiered.runtime.fold import ancestors, divides_safely, evaluate, freed_bytes
    from tiered.runtime.inputs import Inputs, feasible_inputs, make_inputs
    from tiered.runtime.numerics import Numerics
    from tiered.runtime.session import Reference, Runner, Session, run, run_reference
    from tiered.runtime.work import is_fragile, work_of
    from tiered.runtime.worker import Worker, WorkerSession, shared_worker

__all__ = [
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
    "is_fragile",
    "make_inputs",
    "run",
    "run_reference",
    "shared_worker",
    "work_of",
]

_HOME = {
    "Comparison": "compare",
    "OutputDifference": "elements",
    "Inputs": "inputs",
    "ancestors": "fold",
    "divides_safely": "fold",
    "evaluate": "fold",
    "freed_bytes": "fold",
    "feasible_inputs": "inputs",
    "make_inputs": "inputs",
    "Numerics": "numerics",
    "Reference": "session",
    "Runner": "session",
    "Session": "session",
    "run": "session",
    "run_reference": "session",
    "Worker": "worker",
    "WorkerSession": "worker",
    "shared_worker": "worker",
    "is_fragile": "work",
    "work_of": "work",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
