"""Random encoders that take sequences of tokens: what `packed_transformer` packs into rows."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
MOST = 9
"""The length of the longest sequence."""


class Encoder:
    """One or two layers of attention over embedded tokens, with or without masks and positions.

    Args:
        random: of all choices.
    """

    def __init__(self, random: Random) -> None:
        self.random, self.numbers = random, np.random.default_rng(random.randrange(1 << 30))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.heads, self.head = random.choice((1, 2)), random.choice((2, 4))
        self.width = self.heads * self.head
        self.takes_ids = random.random() < 0.5
        self.has_mask = random.random() < 0.5
        self.is_causal = random.random() < 0.3
        self.has_positions = random.random() < 0.5
        self.pools = random.random() < 0.5

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int) -> str:
        return self.constant(self.numbers.normal(size=shape).astype(np.float32))

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, [*inputs], [name], **attributes))
        return name

    def proto(self) -> onnx.ModelProto:
        """Return the model; its inputs have a batch and a length."""
        infos = []
        if self.takes_ids:
            infos.append(helper.make_tensor_value_info("ids", TensorProto.INT64, ["B", "S"]))
            x = self.node("Gather", self.weight(11, self.width), "ids")
        else:
            shape: list[int | str | None] = ["B", "S", self.width]
            infos.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
            x = "x"
        if self.has_mask:
            infos.append(helper.make_tensor_value_info("mask", TensorProto.INT64, ["B", "S"]))
        if self.has_positions:
            x = self.node("Add", x, self.positions(x))
        for _ in range(self.random.choice((1, 2))):
            x = self.layer(x)
        y = self.node("Identity", x)
        self.nodes[-1].output[0] = "y"
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", "S", self.width])]
        if self.pools:
            first = self.node("Gather", x, self.constant(np.array(0, np.int64)), axis=1)
            self.node("Tanh", first)
            self.nodes[-1].output[0] = "pooled"
            info = helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["B", self.width])
            outputs.append(info)
        assert y
        graph = helper.make_graph(self.nodes, "g", infos, outputs, self.constants)
        imports = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)

    def sequences(self) -> list[dict[str, Array]]:
        """Return the inputs of some sequences, each without a batch."""
        made = []
        for _ in range(self.random.randint(1, 6)):
            length = self.random.randint(1, MOST)
            each: dict[str, Array] = {}
            if self.takes_ids:
                each["ids"] = self.numbers.integers(0, 11, length)
            else:
                scale = self.random.choice((0.1, 1.0, 3.0))
                numbers = self.numbers.normal(size=(length, self.width)) * scale
                each["x"] = numbers.astype(np.float32)
            if self.has_mask:
                mask = (self.numbers.random(length) < 0.8).astype(np.int64)
                mask[0] = 1
                each["mask"] = mask
            made.append(each)
        return made

    def length(self, x: str) -> str:
        """Return the number of tokens of a row."""
        return self.node("Gather", self.node("Shape", x), self.ints(1), axis=0)

    def positions(self, x: str) -> str:
        table = self.weight(64, self.width)
        if self.random.random() < 0.5:
            part = self.node("Slice", table, self.ints(0), self.length(x), self.ints(0))
            return self.node("Unsqueeze", part, self.ints(0))
        limit = self.node("Squeeze", self.length(x))
        places = self.node("Range", self.constant(np.array(0, np.int64)), limit,
                           self.constant(np.array(1, np.int64)))  # fmt: skip
        return self.node("Gather", table, places)

    def layer(self, x: str) -> str:
        q, k, v = (self.heads_of(self.node("MatMul", x, self.weight(self.width, self.width)))
                   for _ in range(3))  # fmt: skip
        scores = self.node("MatMul", q, self.node("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.node("Mul", scores, self.constant(np.array(self.head**-0.5, np.float32)))
        if self.has_mask:
            scores = self.node("Add", scores, self.mask())
        if self.is_causal:
            scores = self.causal(x, scores)
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        mixed = self.node("Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = self.node("Reshape", mixed, self.ints(0, 0, self.width))
        x = self.node("Add", x, self.node("MatMul", mixed, self.weight(self.width, self.width)))
        x = self.node("LayerNormalization", x, self.weight(self.width), self.weight(self.width))
        wide = self.node("Relu", self.node("MatMul", x, self.weight(self.width, 2 * self.width)))
        narrow = self.node("MatMul", wide, self.weight(2 * self.width, self.width))
        return self.node("Add", x, narrow)

    def heads_of(self, x: str) -> str:
        split = self.node("Reshape", x, self.ints(0, 0, self.heads, self.head))
        return self.node("Transpose", split, perm=[0, 2, 1, 3])

    def mask(self) -> str:
        kept = self.node("Cast", self.node("Unsqueeze", "mask", self.ints(1, 2)), to=1)
        dropped = self.node("Sub", self.constant(np.array(1, np.float32)), kept)
        return self.node("Mul", dropped, self.constant(np.array(-1e9, np.float32)))

    def causal(self, x: str, scores: str) -> str:
        length = self.length(x)
        shape = self.node("Concat", length, length, axis=0)
        fill = numpy_helper.from_array(np.array([1], np.float32))
        ones = self.node("ConstantOfShape", shape, value=fill)
        kept = self.node("Cast", self.node("Trilu", ones, upper=0), to=9)
        return self.node("Where", kept, scores, self.constant(np.array(-1e9, np.float32)))
