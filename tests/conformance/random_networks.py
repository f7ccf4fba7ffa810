"""Random transformers: layers as exporters write them, with all that late passes look for.

Random graphs have few projections side by side, heads, norms or Transposes that belong together;
these have little else. A number names a model.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

LINEAR: Final = ("matmul", "matmul", "transposed", "conv", "gemm")
ACTIVATIONS: Final = ("Relu", "Sigmoid", "Tanh", "gelu", "silu")


def random_network(number: int) -> ModelProto:
    """Return a network of one or two layers."""
    return _Network(Random(number)).model()


class _Network:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.numbers = np.random.default_rng(random.randrange(1 << 30))
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self.batch = random.choice((1, 2))
        self.width = random.choice((16, 32, 48))
        self.head = random.choice((8, 16))
        self.linear = random.choice(LINEAR)
        self.has_bias = random.random() < 0.6

    # --- nodes and constants ----------------------------------------------------------------------

    def constant(self, array: Any) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *dims: int) -> str:
        return self.constant(self.numbers.standard_normal(dims).astype(np.float32) / 4)

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    # --- layers -----------------------------------------------------------------------------------

    def project(self, x: str, rows: int, columns: int, *, has_bias: bool | None = None) -> str:
        bias = [self.weight(columns)] if (self.has_bias if has_bias is None else has_bias) else []
        if self.linear == "conv":
            turned = self.add("Transpose", x, perm=[0, 2, 1])
            made = self.add("Conv", turned, self.weight(columns, rows, 1), *bias)
            return self.add("Transpose", made, perm=[0, 2, 1])
        if self.linear == "gemm":
            flat = self.add("Reshape", x, self.ints(-1, rows))
            made = self.add("Gemm", flat, self.weight(columns, rows), *bias, transB=1)
            return self.add("Reshape", made, self.ints(self.batch, -1, columns))
        weight = self.weight(rows, columns)
        if self.linear == "transposed":
            weight = self.add("Transpose", self.weight(columns, rows), perm=[1, 0])
        made = self.add("MatMul", x, weight)
        return self.add("Add", made, *bias) if bias else made

    def activate(self, x: str) -> str:
        kind = self.random.choice(ACTIVATIONS)
        if kind == "silu":
            return self.add("Mul", x, self.add("Sigmoid", x))
        if kind == "gelu":
            erf = self.add("Erf", self.add("Div", x, self.number(2**0.5)))
            gate = self.add("Mul", x, self.add("Add", erf, self.number(1)))
            return self.add("Mul", gate, self.number(0.5))
        return self.add(kind, x)

    def norm(self, x: str) -> str:
        kind, width = self.random.choice(("layer", "root", "operator")), self.width
        if kind == "operator":
            scale, bias = self.weight(width), self.weight(width)
            return self.add("LayerNormalization", x, scale, bias, axis=-1)
        centred = x
        if kind == "layer":
            centred = self.add("Sub", x, self.add("ReduceMean", x, self.ints(-1)))
        square = self.add("Pow", centred, self.number(2))
        mean = self.add("ReduceMean", square, self.ints(-1))
        root = self.add("Sqrt", self.add("Add", mean, self.number(1e-5)))
        normed = self.add("Mul", self.add("Div", centred, root), self.weight(width))
        return self.add("Add", normed, self.weight(width)) if kind == "layer" else normed

    def attend(self, x: str, context: str, shared: bool, scale: str, steps: int) -> str:
        """Return attention over a context, whose keys and values all heads may share."""
        width, head = self.width, self.head
        heads = width // head
        groups = 1 if shared else heads
        queries = self.project(x, width, width)
        keys, values = (self.project(context, width, groups * head) for _ in range(2))
        if scale == "queries":
            queries = self.add("Mul", queries, self.number(head**-0.5))
        queries = self.split(queries, heads, [0, 2, 1, 3])
        values = self.split(values, groups, [0, 2, 1, 3])
        keys = self.split(keys, groups, [0, 2, 3, 1] if steps == 1 else [0, 2, 1, 3])
        if steps == 2:
            keys = self.add("Transpose", keys, perm=[0, 1, 3, 2])
        if groups < heads:
            values = self.repeat(values, heads, [self.batch, heads, -1, head])
            keys = self.repeat(keys, heads, [self.batch, heads, head, -1])
        scores = self.add("MatMul", queries, keys)
        if scale == "scores":
            scores = self.add("Div", scores, self.number(head**0.5))
        seen = self.add("MatMul", self.add("Softmax", scores, axis=-1), values)
        joined = self.add("Transpose", seen, perm=[0, 2, 1, 3])
        flat = self.add("Reshape", joined, self.ints(self.batch, -1, width))
        return self.project(flat, width, width)

    def split(self, x: str, heads: int, perm: list[int]) -> str:
        parts = self.add("Reshape", x, self.ints(self.batch, -1, heads, self.head))
        return self.add("Transpose", parts, perm=perm)

    def repeat(self, x: str, times: int, shape: list[int]) -> str:
        wide = self.add("Unsqueeze", x, self.ints(2))
        many = self.add("Expand", wide, self.ints(1, 1, times, 1, 1))
        return self.add("Reshape", many, self.ints(*shape))

    def feed_forward(self, x: str) -> str:
        width, kind = self.width, self.random.choice(("plain", "gated", "parallel"))
        if kind == "plain":
            return self.project(self.activate(self.project(x, width, 2 * width)), 2 * width, width)
        if kind == "gated":
            gate, up = (self.project(x, width, 2 * width, has_bias=False) for _ in range(2))
            return self.project(self.add("Mul", self.activate(gate), up), 2 * width, width)
        first, second, third = (self.activate(self.project(x, width, width)) for _ in range(3))
        return self.add("Add", self.add("Mul", first, second), third)

    def ends(self, x: str) -> list[str]:
        width, kind = self.width, self.random.choice(("pool", "turn", "heads", "turned heads", ""))
        if kind == "pool":
            return [self.add("ReduceMean", x, self.ints(1), keepdims=0)]
        if kind == "turn":
            return [self.add("Transpose", x, perm=[0, 2, 1])]
        if not kind:
            return [x]
        heads = [self.project(x, width, columns, has_bias=True) for columns in (2, 4, 3)]
        if kind == "heads":
            return heads
        return [self.add("Transpose", head, perm=[0, 2, 1]) for head in heads]

    def model(self) -> ModelProto:
        random, width = self.random, self.width
        inputs = {"x": [self.batch, random.choice(("S", 6)), width]}
        if random.random() < 0.3:
            inputs["context"] = [self.batch, random.choice(("M", 5)), width]
        shared, steps = random.random() < 0.3, random.choice((1, 2))
        scale, is_normed = random.choice(("queries", "scores", "")), random.random() < 0.7
        x = "x"
        if random.random() < 0.3:
            turned = self.add("Transpose", x, perm=[0, 2, 1])
            mixed = self.add("Conv", turned, self.weight(width, width, 3), pads=[1, 1])
            x = self.add("Transpose", mixed, perm=[0, 2, 1])
        for _ in range(random.choice((1, 2))):
            before = self.norm(x) if is_normed else x
            context = "context" if "context" in inputs else before
            x = self.add("Add", x, self.attend(before, context, shared, scale, steps))
            x = self.add("Add", x, self.feed_forward(self.norm(x)))
        outputs = self.ends(x)
        given = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
            for name, dims in inputs.items()
        ]
        made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "network", given, made, self.initializers)
        opset = helper.make_opsetid("", random.choice((18, 20, 21)))
        model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
        return onnx.shape_inference.infer_shapes(model)
