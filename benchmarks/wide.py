"""Models in which many nodes read one value: `benchmarks.growth --shape wide` measures them.

A quarter of the width each: products with constants that one Sum adds up, outputs of the model,
dense layers, and Reshapes whose sizes are computed from the shape of the value.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

_SIZE = 4


def wide(nodes: int) -> onnx.ModelProto:
    """Return a model of about so many nodes, most of which read one value or its readers."""
    width = max(nodes // 11, 1)
    made = [helper.make_node("Relu", ["x"], ["v"])]
    weights: dict[str, np.ndarray[Any, Any]] = {
        "zero": np.array(0, np.int64),
        "axes": np.array([0], np.int64),
        "rest": np.array([-1], np.int64),
    }
    for at in range(width):
        made += _branch(f"/{at}", weights, at)
    for what in ("product", "dense", "shaped"):
        made.append(helper.make_node("Sum", [f"/{at}/{what}" for at in range(width)], [what]))
    square: list[str | int | None] = ["batch", _SIZE]
    x = helper.make_tensor_value_info("x", 1, square)
    outputs = [*(f"/{at}/output" for at in range(width)), "product", "dense", "shaped"]
    infos = [helper.make_tensor_value_info(name, 1, square) for name in outputs]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(made, "wide", [x], infos, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def outputs(nodes: int) -> onnx.ModelProto:
    """Return a model in which so many nodes read one value, and each makes an output."""
    made, tensors = _products(nodes)
    return _model(made, [node.output[0] for node in made[1:]], tensors)


def concatenated(nodes: int) -> onnx.ModelProto:
    """Return a model in which one Concat has so many operands, all made of one value."""
    made, tensors = _products(nodes)
    made.append(helper.make_node("Concat", [n.output[0] for n in made[1:]], ["y"], "y", axis=0))
    return _model(made, ["y"], tensors)


def _products(count: int) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    made = [helper.make_node("Tanh", ["x"], ["v"], "v")]
    tensors = []
    for at in range(count):
        factor = np.full(_SIZE, 1 + at / 7, np.float32)
        tensors.append(numpy_helper.from_array(factor, f"factor_{at}"))
        made.append(helper.make_node("Mul", ["v", f"factor_{at}"], [f"m{at}"], f"m{at}"))
    return made, tensors


def _model(
    made: list[onnx.NodeProto], names: list[str], tensors: list[onnx.TensorProto]
) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(name, 1, None) for name in names]
    x = helper.make_tensor_value_info("x", 1, ["batch", _SIZE])
    graph = helper.make_graph(made, "wide", [x], infos, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _branch(
    name: str, weights: dict[str, np.ndarray[Any, Any]], at: int
) -> Iterator[onnx.NodeProto]:
    def node(op_type: str, *inputs: str, to: str, **attributes: Any) -> onnx.NodeProto:
        return helper.make_node(op_type, inputs, [f"{name}/{to}"], f"{name}/{to}", **attributes)

    def weight(what: str, array: np.ndarray[Any, Any]) -> str:
        weights[f"{name}/{what}"] = array.astype(np.float32)
        return f"{name}/{what}"

    factor = 1 + at / 7
    yield node("Mul", "v", weight("factor", np.array(factor)), to="product")
    yield node("Tanh", "v", to="output")
    yield node("MatMul", "v", weight("matrix", np.full((_SIZE, _SIZE), factor)), to="matrix_v")
    yield node("Add", f"{name}/matrix_v", weight("bias", np.full(_SIZE, factor)), to="sum")
    yield node("Relu", f"{name}/sum", to="dense")
    yield node("Shape", "v", to="shape")
    yield node("Gather", f"{name}/shape", "zero", to="size")
    yield node("Unsqueeze", f"{name}/size", "axes", to="sizes")
    yield node("Concat", f"{name}/sizes", "rest", to="target", axis=0)
    yield node("Mul", "v", weight("scale", np.array(-factor)), to="scaled")
    yield node("Reshape", f"{name}/scaled", f"{name}/target", to="shaped")
