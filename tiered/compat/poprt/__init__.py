"""The names of PopRT: `Converter`, `Pass`, `register`, `get_pass`, `PassManager`, ...

PopRT has no levels: a pass runs whatever its level, unless the context disables it. The result of
`get_pass` has `run(model)` and is called with a model. So is a subclass of `Pass`, which runs as a
pass of tiered: it is undone when it fails, and can be verified.

    @register("drop_names")
    class DropNames(Pass):
        def run(self, onnx_model):
            for node in onnx_model.graph.node:
                node.name = ""
            return onnx_model
"""

from tiered.compat.poprt import passes
from tiered.compat.poprt.converter import Converter
from tiered.compat.poprt.passes import (
    BuiltIn,
    Pass,
    PassManager,
    UnknownPassError,
    get_pass,
    get_registered_passes,
    register,
)

__all__ = [
    "BuiltIn",
    "Converter",
    "Pass",
    "PassManager",
    "UnknownPassError",
    "get_pass",
    "get_registered_passes",
    "passes",
    "register",
]
