"""Find out what is wrong: compare models, blame one rewrite, cut out what shows it, shrink it.

The names below load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiered.debug.models import ModelComparison, OutputRow, Trial, compare_models

__all__ = ["ModelComparison", "OutputRow", "Trial", "compare_models"]

_HOME = {"models": ("ModelComparison", "OutputRow", "Trial", "compare_models")}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
