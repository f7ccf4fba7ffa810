"""The places of TVM's modules, so that `from tiered.compat.tvm.relay import ...` works.

`transform`, `relay`, `ir`, `instrument` and `analysis` are `tiered.compat.tvm` itself.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

_ITSELF: Final = (
    "analysis", "build_module", "instrument", "ir", "ir.instrument", "ir.transform", "relay",
    "relay.analysis", "relay.build_module", "relay.expr", "relay.expr_functor", "relay.transform",
    "transform",
)  # fmt: skip
_PLACES: Final = {
    "contrib.graph_executor": "graph_executor",
    "contrib.graph_runtime": "graph_executor",
    "dataflow_pattern": "dataflow_pattern",
    "graph_executor": "graph_executor",
    "relay.analysis.sparse_dense": "sparse_dense",
    "relay.annotation": "annotation",
    "relay.data_dep_optimization": "data_dep_optimization",
    "relay.dataflow_pattern": "dataflow_pattern",
    "relay.frontend": "frontend",
    "relay.op": "op",
    "relay.op.annotation": "annotation",
    "relay.op.op": "op",
    "relay.op.contrib": "pattern_tables",
    "relay.op.contrib.register": "pattern_tables",
    "op.contrib": "pattern_tables",
    "op.contrib.register": "pattern_tables",
    "nd": "nd",
    "frontend": "frontend",
    "annotation": "annotation",
    "op": "op",
}


class _LateModule(ModuleType):
    """A module under another name, which loads when a name of it is asked for."""

    def __init__(self, name: str, target: str) -> None:
        super().__init__(name)
        self._target = target

    def __getattr__(self, name: str) -> Any:
        # `from ... import *` asks for __all__.
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(importlib.import_module(self._target), name)


def add_paths(package: str, modules: Mapping[str, str]) -> None:
    """Make the modules of TVM importable below a package.

    Args:
        package: its name.
        modules: the modules here by TVM's names.
    """
    for name in _ITSELF:
        sys.modules.setdefault(f"{package}.{name}", sys.modules[package])
    for name, wanted in _PLACES.items():
        full = f"{package}.{name}"
        sys.modules.setdefault(full, _LateModule(full, f"{package}.{modules[wanted]}"))
