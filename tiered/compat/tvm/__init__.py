"""The names of TVM: `tvm.transform` and `tvm.ir.instrument`, over ONNX models.

Each name is an alias of a name of tiered, where the documentation is; `docs/context.md` compares
the two. Every pass has a constructor here, under any of its names:

    from tiered.compat import tvm

    with tvm.transform.PassContext(opt_level=3, disabled_pass=["FoldConstant"]):
        model = tvm.transform.Sequential([tvm.transform.InferType()])(model)
"""

import importlib
import sys
from typing import Any

from tiered.compat.tvm.paths import add_paths
from tiered.support.aliases import NO_EQUIVALENT
from tiered.support.errors import PassNotFoundError
from tiered.support.loading import load_later

_load, _names = load_later(__name__)
transform = relay = analysis = build_module = ir = instrument = expr = expr_functor = sys.modules[
    __name__
]
_MODULES = {
    "annotation": "running.devices",
    "contrib": "contrib",
    "data_dep_optimization": "data_dep_optimization",
    "dataflow_pattern": "patterns.dataflow_pattern",
    "frontend": "running.frontends",
    "graph_executor": "running.graph_executor",
    "nd": "running.graph_executor",
    "op": "op_attributes",
    "pattern_tables": "pattern_tables",
    "sparse_dense": "sparse_dense",
    "target": "target",
}
"""The modules of TVM that are modules here too, by TVM's name."""
add_paths(__name__, _MODULES)


def __getattr__(name: str) -> Any:
    """Return a public name, or the constructor of a pass."""
    try:
        return _load(name)
    except AttributeError:
        if name.startswith("__"):
            raise
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    operators = importlib.import_module(f"{__name__}.expressions.relay_operators")
    if name in operators.PREFIXES:
        return operators.Namespace(name)
    if name in operators.OPERATORS:
        return operators.function_of(name)
    constructors = importlib.import_module(f"{__name__}.constructors")
    if name == "OPT_PASS_LEVEL":
        return constructors.levels()
    if not name[:1].isupper() and name not in NO_EQUIVALENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return constructors.constructor(name)
    except PassNotFoundError as error:
        raise AttributeError(str(error)) from error


def __dir__() -> list[str]:
    from tiered.compat.tvm.constructors import camel
    from tiered.passes import pass_names

    return sorted({*_names(), *map(camel, pass_names())})
