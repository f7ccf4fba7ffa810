"""Valid models that onnxruntime does not run, through a fault of its own or of its Python API.

Whether a model has such a fault depends on where it begins: a cut can bring it about.
"""

import re
from collections.abc import Sequence

import onnx

from tests.conformance.judge import all_nodes
from tiered.support.errors import RuntimeFailure

_MISSING = re.compile(r"Missing Input: (\S+)$")
_NOT_FED = "onnxruntime's Python API cannot feed input"


def is_known(models: Sequence[onnx.ModelProto], error: RuntimeFailure) -> bool:
    """Return whether onnxruntime fails on one of the models in a way that is known.

    - It removes a Cast of a graph input to a wider type and back, although a body reads the result.
    - Its Python API takes no text where an output has a type that numpy has not.
    """
    if _NOT_FED in str(error):
        return True
    missing = _MISSING.search(str(error))
    return missing is not None and any(_is_cast_back(model, missing[1]) for model in models)


def _is_cast_back(model: onnx.ModelProto, name: str) -> bool:
    """Return whether a value is a graph input after two or more Casts, and a body reads it."""
    casts = {node.output[0]: node for node in model.graph.node if node.op_type == "Cast"}
    inside = {id(node) for node in model.graph.node}
    is_captured = any(name in node.input for node in all_nodes(model) if id(node) not in inside)
    length = 0
    while name in casts:
        name, length = casts[name].input[0], length + 1
    return is_captured and length > 1 and name in {info.name for info in model.graph.input}
