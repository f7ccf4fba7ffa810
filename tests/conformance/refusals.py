"""Valid models that onnxruntime does not run, through a fault of its own or of its Python API.

Whether a model has such a fault depends on where it begins: a cut can bring it about.
"""

import re
from collections.abc import Sequence

import onnx

from tests.conformance.judge import all_nodes, nodes_below
from tiered.support.errors import RuntimeFailure

_MISSING = re.compile(r"Missing Input: (\S+)$")
_NOT_FED = "onnxruntime's Python API cannot feed input"

_NO_CONSTANT = "(op_type:Constant): output has unsupported type"
_CONSTANTS_SINCE = 9
_FLOATS = frozenset((onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE))


def is_known(models: Sequence[onnx.ModelProto], error: RuntimeFailure) -> bool:
    """Return whether onnxruntime fails on one of the models in a way that is known.

    - It takes no integer Constant in a function of an opset below 9, whose Constant is of floats;
      in a graph it does.
    - It removes a Cast of a graph input to a wider type and back, although a body reads the result.
    - Its Python API takes no text where an output has a type that numpy has not.
    """
    if _NOT_FED in str(error):
        return True
    if _NO_CONSTANT in str(error) and any(map(_has_old_constants, models)):
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


def _has_old_constants(model: onnx.ModelProto) -> bool:
    """Return whether a function of an old opset has a Constant of another type than floats."""
    return any(
        attribute.t.data_type not in _FLOATS
        for function in model.functions
        if any(not e.domain and e.version < _CONSTANTS_SINCE for e in function.opset_import)
        for node in nodes_below(function.node)
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.name == "value"
    )
