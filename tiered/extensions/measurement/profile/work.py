"""The work of nodes that were executed, and what the machine does at most."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tiered.extensions.measurement.profile.events import Events, Kernel
from tiered.extensions.measurement.profile.result import Machine
from tiered.graph import Model, Node, Value
from tiered.graph.queries.multiply_adds import multiply_adds

_SIDE: Final = 768
"""The side of the matrices of the probe: large enough for the best speed of a product."""
_ELEMENTS: Final = 1 << 24
"""The elements of the probe's large tensor: 64 MiB, more than caches hold."""
_PRODUCT, _MOVE = "product", "move"
_OPSET: Final = 17


class Work:
    """The multiply-adds of nodes that were executed.

    Args:
        model: the graph that was executed, None if unknown.
    """

    def __init__(self, model: Model | None) -> None:
        graphs = () if model is None else model.graphs()
        self._nodes: Mapping[tuple[str, str], Node] = {
            (node.name, node.op_type): node for graph in graphs for node in graph.nodes
        }

    def of(self, kernel: Kernel) -> int:
        """Return the multiply-adds of one call, without those of bodies; 0 if unknown."""
        node = self._nodes.get((kernel.name, kernel.op_type))
        if node is None or node.bodies:
            return 0
        known: dict[Value, tuple[int, ...]] = {}
        for values, shapes in ((node.inputs, kernel.inputs), (node.outputs, kernel.outputs)):
            present = [value for value in values if value is not None]
            if len(present) != len(shapes):  # constants that a kernel packed are not listed
                present = [value for value in present if value.tensor is None]
            if len(present) == len(shapes):
                known.update(
                    (value, shape.dims) for value, shape in zip(present, shapes, strict=True)
                )
        return multiply_adds(node, lambda value: known.get(value, value.static_shape))


def probe() -> onnx.ModelProto:
    """Return a model with a large product, and an operator that reads and writes much memory."""
    weight = numpy_helper.from_array(np.full((_SIDE, _SIDE), 0.5, np.float32), "weight")
    kernel = np.array([_ELEMENTS], np.int64)
    one = helper.make_tensor("value", TensorProto.FLOAT, [1], [1.0])
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "weight"], ["y"], _PRODUCT),
            helper.make_node("ConstantOfShape", ["sizes"], ["large"], "fill", value=one),
            helper.make_node("Neg", ["large"], ["moved"], _MOVE),
            helper.make_node("ReduceMax", ["moved"], ["most"], "most", keepdims=0),
        ],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [_SIDE, _SIDE])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [_SIDE, _SIDE]),
            helper.make_tensor_value_info("most", TensorProto.FLOAT, []),
        ],
        [weight, numpy_helper.from_array(kernel, "sizes")],
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets)


def machine_of(events: Events) -> Machine:
    """Return what a machine does, from the profile of the probe: its fastest run counts."""
    fastest: dict[str, float] = {}
    for run in events.runs:
        for key, seconds in run.nodes.items():
            name = events.kernels[key].name
            fastest[name] = min(fastest.get(name, math.inf), max(seconds, 1e-9))
    return Machine(_SIDE**3 / fastest[_PRODUCT], 8 * _ELEMENTS / fastest[_MOVE])


def probe_feeds() -> dict[str, np.ndarray]:
    """Return the input of the probe."""
    return {"x": np.full((_SIDE, _SIDE), 0.5, np.float32)}
