"""Places and kernels of each sample: random models, each sample computed as by itself."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.analysis.batching.by_sample import assert_each_by_itself

SEEDS = range(12)


class _Model:
    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def pick(self, *options: int) -> int:
        return int(self.random.choice(options))

    def constant(self, array: Any, dtype: Any = np.int64) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def add(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [f"v{len(self.nodes)}", *(f"v{len(self.nodes)}_{at}" for at in range(1, outputs))]
        self.nodes.append(helper.make_node(op_type, inputs, names, **attributes))
        return names[0]

    def proto(
        self, inputs: dict[str, tuple[int, list[int]]], outputs: list[str]
    ) -> onnx.ModelProto:
        infos = [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()]
        made = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, "g", infos, made, self.constants)
        imports = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def end_token(seed: int) -> onnx.ModelProto:
    """The features at the place of the largest token, as exporters index them."""
    model = _Model(seed)
    batch, form = (1, seed % 4) if seed % 3 else (2, 0)
    length, width, dtype = model.pick(1, 3, 5), model.pick(1, 4), model.pick(6, 7)
    table = model.constant(model.random.standard_normal((9, width)), np.float32)
    x = model.add("Gather", table, "ids")
    place = model.add("ArgMax", "ids", axis=1, keepdims=0)
    if form == 3:  # Gather along the tokens
        y = model.add("Gather", x, place, axis=1)
    elif form == 2:  # flat rows
        flat = model.add("Reshape", x, model.constant([length if batch == 1 else -1, width]))
        y = model.add("Gather", flat, place, axis=0)
    else:
        rows = np.arange(batch)[:, None]
        if form:
            x = model.add("Transpose", x, perm=[1, 0, 2])
        wide = model.add("Unsqueeze", place, model.constant([1]))
        columns = [model.constant(rows), wide]
        both = model.add("Concat", *(columns if form == 0 else reversed(columns)), axis=-1)
        y = model.add("GatherND", x, both)
    return model.proto({"ids": (dtype, [batch, length])}, [y])


def correlation(seed: int) -> onnx.ModelProto:
    """An image with kernels of its own: with a group for each channel, for some, or one."""
    model = _Model(seed)
    batch, channels, size, kernel = (
        model.pick(1, 2),
        model.pick(2, 4),
        model.pick(4, 5),
        model.pick(1, 2, 3),
    )
    group = (channels, 1, 2)[seed % 3]
    each, kernels = channels // group, group * model.pick(1, 2)
    attributes: dict[str, Any] = {"group": batch * group}
    if model.pick(0, 1):
        attributes["pads"] = [1, 0, 1, 1]
    if model.pick(0, 1):
        attributes["strides"] = [2, 1]
    shapes = {"x": [batch, channels, size, size], "k": [batch, kernels, each, kernel, kernel]}
    x = model.add("Reshape", "x", model.constant([1, batch * channels, size, size]))
    weight = model.add("Reshape", "k", model.constant([batch * kernels, each, kernel, kernel]))
    operands = [x, weight]
    if model.pick(0, 1):
        shapes["b"] = [batch, kernels]
        operands.append(model.add("Reshape", "b", model.constant([-1])))
    conv = model.add("Conv", *operands, **attributes)
    flat = model.add("Reshape", conv, model.constant([batch, kernels, -1]))
    y = model.add("Softmax", flat, axis=2)
    return model.proto({name: (TensorProto.FLOAT, shape) for name, shape in shapes.items()}, [y])


def unpooled(seed: int) -> onnx.ModelProto:
    """The places of the maxima of a pool: returned, and where another image is filled."""
    model = _Model(seed)
    channels, size, form = model.pick(1, 3), model.pick(4, 5), seed % 3
    batch = 1 if form else model.pick(1, 2)
    window: dict[str, Any] = {
        "kernel_shape": [2, 2],
        "strides": [2, 2],
        "storage_order": model.pick(0, 1),
    }
    x = model.add("Relu", "x")
    y = model.add("MaxPool", x, outputs=2, **window)
    shape = [batch, channels, size + (size if form == 1 else 0), size]
    del window["storage_order"]
    z = model.add("MaxUnpool", y, f"{y}_1", model.constant(shape), **window)
    z = model.add("Reshape", z, model.constant([batch, -1]))
    outputs = [z, f"{y}_1"] if form == 2 else [z]
    return model.proto({"x": (TensorProto.FLOAT, [batch, channels, size, size])}, outputs)


MADE = (end_token, correlation, unpooled)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_sample_is_computed_by_itself(made: Any, seed: int) -> None:
    size: int | str = 4 if seed % 2 else "N"
    assert_each_by_itself(made(seed), size, label=f"{made.__name__} {seed}", rtol=1e-4)
