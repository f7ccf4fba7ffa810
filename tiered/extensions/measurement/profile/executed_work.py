"""The work of nodes that were executed, and what the machine does at most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tiered.extensions.measurement.profile.kernel_events import Events, Kernel, Shape
from tiered.extensions.measurement.profile.model_profile import Machine
from tiered.graph import Model, Node, Value
from tiered.graph.core.tensor import Tensor
from tiered.graph.queries.multiply_adds import multiply_adds

_SIDE: Final = 768
"""The side of the matrices of the probe: large enough for the best speed of a product."""
_ELEMENTS: Final = 1 << 24
"""The elements of the probe's large tensor: 64 MiB, more than caches hold."""
_PRODUCT, _MOVE = "product", "move"
_OPSET: Final = 17


class Work:
    """The multiply-adds and the bytes of nodes that were executed.

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
        node = self._node(kernel)
        if node is None or node.bodies:
            return 0
        known = {**_sizes(node.inputs, kernel.inputs)[0], **_sizes(node.outputs, kernel.outputs)[0]}
        return multiply_adds(node, lambda value: known.get(value, value.static_shape))

    def nbytes(self, kernel: Kernel) -> int:
        """Return the bytes that one call reads and writes, with weights that the kernel packed."""
        node = self._node(kernel)
        packed = () if node is None else _sizes(node.inputs, kernel.inputs)[1]
        return kernel.nbytes + sum(tensor.nbytes for tensor in packed)

    def _node(self, kernel: Kernel) -> Node | None:
        return self._nodes.get((kernel.name, kernel.op_type))


def _sizes(
    values: Sequence[Value | None], shapes: Sequence[Shape]
) -> tuple[dict[Value, tuple[int, ...]], list[Tensor]]:
    """Return the sizes of the values of a node, and the constants that its kernel packed.

    Those are not among the shapes of a profile.
    """
    present = [value for value in values if value is not None]
    known: dict[Value, tuple[int, ...]] = {}
    packed: list[Tensor] = []
    left, more = [*shapes], len(present) - len(shapes)
    for value in present:
        tensor = value.tensor
        is_listed = bool(left) and left[0].dims == value.static_shape
        if tensor is not None and more > 0 and not is_listed:
            packed.append(tensor)
            more -= 1
        elif left:
            known[value] = left.pop(0).dims
    return ({}, []) if left or more else (known, packed)


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
