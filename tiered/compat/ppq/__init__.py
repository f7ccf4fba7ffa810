"""The names of `ppq.IR` for the view: BaseGraph, Operation and Variable.

Each name is an alias of a name of tiered, where the documentation is. The behaviour differs where
that of PPQ would break an ONNX model, and errors are `ModelError`s: see `docs/view.md`.

    graph = BaseGraph(model.main)
    relu = graph.create_operation("Relu")
    graph.insert_op_after(relu, graph.operations["conv1"])
"""

import sys

from tiered.support.loading import load_later

__getattr__, __dir__ = load_later(__name__)
for _place in (
    "IR", "IR.base", "IR.base.graph", "IR.base.opdef", "IR.morph", "IR.quantize", "IR.search",
    "api", "api.interface", "core", "executor", "executor.torch",
):  # fmt: skip
    # `from tiered.compat.ppq.IR import BaseGraph`, where PPQ has it.
    sys.modules.setdefault(f"{__name__}.{_place}", sys.modules[__name__])
