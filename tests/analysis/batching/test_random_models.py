"""Random small models: each sample is computed as by itself, or an operator is refused by name."""

import math
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.analysis.batching.by_sample import assert_each_by_itself
from tiered import ShapeError

SEEDS = range(20)
MOST_REFUSED = 0.5


class RandomModel:
    """A chain of random operators on a batch, with its sizes baked into constants.

    Args:
        seed: of the random numbers.
        batch: the size of the batch.
    """

    def __init__(self, seed: int, batch: int) -> None:
        self.random = np.random.default_rng(seed)
        self.batch = batch
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.shape = [batch, *(int(self.random.choice([1, 2, 3, 4])) for _ in range(3))]
        self.info = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        self.name = "x"
        self.seen = [("x", list(self.shape))]
        steps = [
            self.unary, self.reshape, self.merge, self.transpose, self.softmax, self.add, self.matmul,
            self.token, self.reduce, self.gather, self.part, self.squeeze, self.earlier, self.expand,
            self.branch,
        ]  # fmt: skip
        for _ in range(int(self.random.integers(3, 9))):
            steps[int(self.random.integers(len(steps)))]()
        self.node("Identity", [self.name])

    def proto(self) -> onnx.ModelProto:
        output = helper.make_tensor_value_info(self.name, TensorProto.FLOAT, self.shape)
        graph = helper.make_graph(self.nodes, "g", [self.info], [output], self.constants)
        imports = [helper.make_opsetid("", 21)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op_type: str, inputs: list[str], **attributes: Any) -> None:
        self.name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [self.name], **attributes))
        self.seen.append((self.name, list(self.shape)))

    def axis(self) -> int:
        return int(self.random.integers(len(self.shape)))

    def floats(self, shape: list[int]) -> str:
        return self.constant(self.random.standard_normal(shape).astype(np.float32))

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    # --- operators --------------------------------------------------------------------------

    def unary(self) -> None:
        self.node(str(self.random.choice(["Relu", "Sigmoid", "Neg"])), [self.name])

    def reshape(self) -> None:
        """Split an axis in two."""
        at = self.axis()
        factors = [size for size in (1, 2, 3) if self.shape[at] % size == 0]
        one = int(self.random.choice(factors))
        self.shape[at : at + 1] = [one, self.shape[at] // one]
        self.target()

    def merge(self) -> None:
        """Merge two axes."""
        if len(self.shape) > 1:
            at = int(self.random.integers(len(self.shape) - 1))
            self.shape[at : at + 2] = [self.shape[at] * self.shape[at + 1]]
            self.target()

    def target(self) -> None:
        target = list(self.shape)
        if self.random.random() < 0.4:
            target[self.axis()] = -1
        self.node("Reshape", [self.name, self.ints(*target)])

    def transpose(self) -> None:
        perm = [int(at) for at in self.random.permutation(len(self.shape))]
        self.shape = [self.shape[at] for at in perm]
        self.node("Transpose", [self.name], perm=perm)

    def softmax(self) -> None:
        self.node("Softmax", [self.name], axis=int(self.random.integers(1, 4)) % len(self.shape))

    def add(self) -> None:
        shape = [size if self.random.random() < 0.5 else 1 for size in self.shape]
        shape = shape[int(self.random.integers(len(shape))) :]
        self.node("Add", [self.name, self.floats(shape)])

    def matmul(self) -> None:
        if len(self.shape) > 1:
            width = int(self.random.choice([1, 2, 3]))
            weight = self.floats([self.shape[-1], width])
            self.shape[-1] = width
            self.node("MatMul", [self.name, weight])

    def token(self) -> None:
        if len(self.shape) > 1:
            shape = [1 if self.batch == 1 or at else size for at, size in enumerate(self.shape)]
            shape[2:], shape[1] = self.shape[2:], 1
            values = self.random.standard_normal([1, *shape[1:]]).astype(np.float32)
            array = np.repeat(values, self.shape[0], axis=0)
            self.shape[1] += 1
            self.node("Concat", [self.constant(array), self.name], axis=1)

    def reduce(self) -> None:
        if len(self.shape) > 2:
            at, keeps = self.axis(), int(self.random.integers(2))
            self.shape[at : at + 1] = [1] * keeps
            self.node("ReduceMax", [self.name, self.ints(at)], keepdims=keeps)

    def gather(self) -> None:
        at = self.axis()
        count = int(self.random.choice([1, 2]))
        places = self.random.integers(0, self.shape[at], count)
        self.shape[at] = count
        self.node("Gather", [self.name, self.ints(*map(int, places))], axis=at)

    def part(self) -> None:
        at = self.axis()
        end = int(self.random.integers(1, self.shape[at] + 1))
        self.shape[at] = end
        bounds = [self.ints(0), self.ints(end), self.ints(at)]
        self.node("Slice", [self.name, *bounds])

    def squeeze(self) -> None:
        ones = [at for at, size in enumerate(self.shape) if size == 1]
        if ones and len(self.shape) > 1:
            at = int(self.random.choice(ones))
            del self.shape[at]
            self.node("Squeeze", [self.name, self.ints(at)])
        else:
            at = int(self.random.integers(len(self.shape) + 1))
            self.shape.insert(at, 1)
            self.node("Unsqueeze", [self.name, self.ints(at)])

    def earlier(self) -> None:
        """Add an earlier value of the same shape, or of the same number of elements."""
        others = [
            (name, shape) for name, shape in self.seen if math.prod(shape) == math.prod(self.shape)
        ]
        name, shape = others[int(self.random.integers(len(others)))]
        here = self.name
        if shape != self.shape:
            wanted = list(self.shape)
            self.node("Reshape", [name, self.ints(*wanted)])
            name = self.name
        self.node("Add", [here, name])

    def expand(self) -> None:
        at = self.axis()
        if self.shape[at] == 1 and at:
            self.shape[at] = 2
            self.node("Expand", [self.name, self.ints(*self.shape)])

    def branch(self) -> None:
        """An If with a constant condition; one branch reshapes the value."""
        bodies = []
        for op_type in ("Neg", "Reshape"):
            inputs = [self.name]
            nodes = []
            if op_type == "Reshape":
                array = numpy_helper.from_array(np.array(self.shape, np.int64))
                target = f"t{len(self.nodes)}"
                nodes.append(helper.make_node("Constant", [], [target], value=array))
                inputs.append(target)
            made = f"b{len(self.nodes)}_{op_type}"
            nodes.append(helper.make_node(op_type, inputs, [made]))
            info = helper.make_tensor_value_info(made, TensorProto.FLOAT, self.shape)
            bodies.append(helper.make_graph(nodes, op_type, [], [info]))
        condition = self.constant(np.array(bool(self.random.integers(2))))
        self.node("If", [condition], then_branch=bodies[0], else_branch=bodies[1])


@pytest.mark.parametrize("batch", [1, 2])
def test_random_models(batch: int) -> None:
    refused = 0
    for seed in SEEDS:
        proto = RandomModel(seed, batch).proto()
        size: int | str = "N" if seed % 2 else 2 * batch
        try:
            assert_each_by_itself(proto, size, label=f"seed {seed}")
        except ShapeError as error:
            refused += 1
            is_named = str(error).startswith("change_batch: ")
        else:
            is_named = True
        assert is_named, f"seed {seed}"
    assert refused <= MOST_REFUSED * len(SEEDS)
