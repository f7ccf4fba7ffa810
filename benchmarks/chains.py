"""Chains of slices, products and concatenations between Transposes, and what tiered makes of them.

    python -m benchmarks.chains --check

Exporters that unroll a scan write such models: each step slices one position of the time axis, and
the results are concatenated. Moving a Transpose through such a chain changes the axis along which
each of its operators works, and with it how long they take. Each model runs before and after -O3,
in turns, with onnxruntime's own optimisations off and on; `--check` makes it an error if one is
slower by more than `LIMIT`, or a random one by more than `RANDOM_LIMIT`.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

import tiered
from benchmarks.in_process import opened, seconds_in_turn
from tiered.extensions.measurement.medians import median_interval
from tiered.runtime import make_inputs

LIMIT: Final = 1.02

RANDOM_LIMIT: Final = 1.05
"""onnxruntime moves the Transposes of a random chain once more, and not always well."""

Shape = tuple[int, ...]


class Chain:
    """A model that is written operator by operator; values are their names."""

    def __init__(self, shape: Shape) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.input_shape = shape
        self._numbers = np.random.default_rng(0)

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one output and return it."""
        return self.split(op_type, 1, *inputs, **attributes)[0]

    def split(self, op_type: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add an operator and return its outputs."""
        name = f"/{op_type}_{len(self.nodes)}"
        names = [f"{name}_output_{at}" for at in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, name, **attributes))
        return names

    def constant(self, numbers: Any) -> str:
        """Add an initializer and return its name."""
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(numbers), name))
        return name

    def weight(self, *shape: int) -> str:
        """Add an initializer of small random floats and return its name."""
        numbers = (
            np.asarray(self._numbers.standard_normal(shape)) / (shape[0] if shape else 1) ** 0.5
        )
        return self.constant(numbers.astype(np.float32))

    def slice(self, value: str, axis: int, start: int, end: int, step: int = 1) -> str:
        """Add a Slice along one axis."""
        bounds = [self.constant(np.array([each], np.int64)) for each in (start, end, axis, step)]
        return self.node("Slice", value, *bounds)

    def transpose(self, value: str, *perm: int) -> str:
        """Add a Transpose."""
        return self.node("Transpose", value, perm=perm)

    def model(self, *outputs: str) -> onnx.ModelProto:
        """Return the model with these outputs."""
        x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, self.input_shape)
        made = [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs
        ]
        graph = helper.make_graph(self.nodes, "chain", [x], made, self.weights)
        opsets = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def unrolled_scan(
    perm: Shape, axis: int, shape: Shape, steps: int, *, product: bool
) -> onnx.ModelProto:
    """Return a scan of so many steps: slice, product, sum, and a concatenation of all states.

    Args:
        perm: the Transpose before the scan; its inverse follows the scan.
        axis: the time axis, after the Transpose.
        shape: the shape of the input.
        steps: the positions of the time axis that are scanned.
        product: whether each step multiplies its state by a matrix.
    """
    chain = Chain(shape)
    moved = tuple(shape[each] for each in perm)
    source = chain.transpose("x", *perm)
    state_shape = tuple(1 if at == axis else dim for at, dim in enumerate(moved))
    decay = chain.weight(*(1 if at in (0, axis) else dim for at, dim in enumerate(moved)))
    matrix = chain.weight(moved[-1], moved[-1]) if product else ""
    state, states = chain.constant(np.zeros(state_shape, np.float32)), []
    for step in range(steps):
        kept = chain.node("MatMul", state, matrix) if product else chain.node("Mul", state, decay)
        state = chain.node("Add", kept, chain.slice(source, axis, step, step + 1))
        states.append(state)
    joined = chain.node("Concat", *states, axis=axis)
    gate = chain.node("Sigmoid", chain.slice(source, axis, 0, steps))
    gated = chain.node("Mul", joined, gate)
    return chain.model(chain.transpose(gated, *sorted(range(len(perm)), key=perm.__getitem__)))


def state_space(steps: int, width: int = 32, states: int = 16) -> onnx.ModelProto:
    """Return a selective state-space block as exporters unroll it, with a Gather for each step.

    Args:
        steps: the positions of the time axis.
        width: the channels.
        states: the states of each channel.
    """
    chain = Chain((1, steps, width))

    def sizes(*numbers: int) -> str:
        return chain.constant(np.array(numbers, np.int64))

    def swapped(value: str) -> str:
        return chain.transpose(value, 0, 2, 1)

    def entry(value: str, axis: int, at: int) -> str:
        return chain.node("Gather", value, chain.constant(np.int64(at)), axis=axis)

    inner = swapped(chain.node("MatMul", "x", chain.weight(width, 2 * width)))
    hidden, gate = chain.split("Split", 2, inner, sizes(width, width), axis=1)
    active = chain.node("Mul", hidden, chain.node("Sigmoid", hidden))
    projected = chain.node("MatMul", swapped(active), chain.weight(width, 2 * states + 4))
    parts = chain.split("Split", 3, projected, sizes(4, states, states), axis=2)
    rate, into, out_of = parts
    rate = swapped(chain.node("Softplus", chain.node("MatMul", rate, chain.weight(4, width))))
    rate = chain.node("Unsqueeze", rate, sizes(3))
    decay = chain.node("Exp", chain.node("Mul", rate, chain.weight(1, width, 1, states)))
    added = chain.node("Mul", rate, chain.node("Unsqueeze", into, sizes(1)))
    added = chain.node("Mul", added, chain.node("Unsqueeze", active, sizes(3)))
    state, made = chain.constant(np.zeros((1, width, states), np.float32)), []
    for step in range(steps):
        kept = chain.node("Mul", entry(decay, 2, step), state)
        state = chain.node("Add", kept, entry(added, 2, step))
        row = chain.node("Unsqueeze", entry(out_of, 1, step), sizes(-1))
        result = entry(chain.node("MatMul", state, row), 2, 0)
        made.append(chain.node("Unsqueeze", result, sizes(-1)))
    gated = chain.node("Mul", chain.node("Concat", *made, axis=-1), gate)
    product = chain.node("MatMul", swapped(gated), chain.weight(width, width))
    return chain.model(chain.node("Add", "x", product))


def prefix_sums(perm: Shape, axis: int, shape: Shape) -> onnx.ModelProto:
    """Return a scan in a logarithmic number of steps, each of which shifts the whole tensor."""
    chain = Chain(shape)
    moved = tuple(shape[each] for each in perm)
    value, shift = chain.transpose("x", *perm), 1
    while shift < moved[axis]:
        head = chain.slice(value, axis, 0, shift)
        tail = chain.slice(value, axis, shift, moved[axis])
        shifted = chain.slice(value, axis, 0, moved[axis] - shift)
        scale = chain.weight(*moved[-1:]) if axis != len(moved) - 1 else chain.weight()
        scaled = chain.node("Mul", shifted, scale)
        value = chain.node("Concat", head, chain.node("Add", tail, scaled), axis=axis)
        shift *= 2
    return chain.model(chain.transpose(value, *sorted(range(len(perm)), key=perm.__getitem__)))


def windows(batch: int, time: int, heads: int, width: int, size: int) -> onnx.ModelProto:
    """Return attention within windows of the time axis, one after the other."""
    chain = Chain((batch, time, heads, width))
    query, key = (chain.transpose("x", 0, 2, 1, 3) for _ in range(2))
    value = chain.transpose(chain.node("Tanh", "x"), 0, 2, 1, 3)
    made = []
    for start in range(0, time, size):
        q, k, v = (chain.slice(each, 2, start, start + size) for each in (query, key, value))
        scores = chain.node("MatMul", q, chain.transpose(k, 0, 1, 3, 2))
        weights = chain.node("Softmax", scores, axis=-1)
        made.append(chain.node("MatMul", weights, v))
    return chain.model(chain.transpose(chain.node("Concat", *made, axis=2), 0, 2, 1, 3))


# --- random chains --------------------------------------------------------------------------------


def random_chain(seed: int) -> onnx.ModelProto:
    """Return a chain of random sections, with a Transpose before most of them."""
    random = Random(seed)
    rank = random.choice((3, 3, 4))
    shape = tuple(random.choice((4, 6, 8, 12, 16, 32, 48)) for _ in range(rank))
    chain = Chain(shape)
    writer = _Sections(chain, random, "x", shape)
    for _ in range(random.randint(4, 10)):
        if random.random() < 0.7:
            writer.transposed()
        random.choice(writer.SECTIONS)(writer)
    writer.transposed()
    return chain.model(writer.value)


class _Sections:
    """Writes random sections behind each other."""

    def __init__(self, chain: Chain, random: Random, value: str, shape: Shape) -> None:
        self.chain, self.random, self.value, self.shape = chain, random, value, shape

    def _axis(self) -> int:
        return self.random.randrange(len(self.shape))

    def _then(self, op_type: str, *others: str, **attributes: Any) -> None:
        self.value = self.chain.node(op_type, self.value, *others, **attributes)

    def transposed(self) -> None:
        perm = list(range(len(self.shape)))
        self.random.shuffle(perm)
        self.value = self.chain.transpose(self.value, *perm)
        self.shape = tuple(self.shape[axis] for axis in perm)

    def scanned(self) -> None:
        """Slice every position of an axis, combine each with the one before, concatenate."""
        axis, chain = self._axis(), self.chain
        parts, state = [], ""
        scale = chain.weight(*self.shape[-1:]) if axis != len(self.shape) - 1 else chain.weight()
        for at in range(self.shape[axis]):
            part = chain.node("Mul", chain.slice(self.value, axis, at, at + 1), scale)
            state = chain.node("Add", state, part) if state else part
            parts.append(state)
        self.value = chain.node("Concat", *parts, axis=axis)

    def halves(self) -> None:
        """Split an axis, change one part, and concatenate in the other order."""
        axis = self._axis()
        middle = max(1, self.shape[axis] // 2)
        sizes = self.chain.constant(np.array([middle, self.shape[axis] - middle], np.int64))
        one, other = self.chain.split("Split", 2, self.value, sizes, axis=axis)
        self.value = self.chain.node("Concat", self.chain.node("Neg", other), one, axis=axis)

    def reduced(self) -> None:
        """Divide by a mean over one or two axes."""
        count = self.random.randint(1, 2)
        axes = sorted(self.random.sample(range(len(self.shape)), count))
        mean = self.chain.node("ReduceMean", self.value, axes=axes)
        self._then("Sub", mean)

    def biased(self) -> None:
        """Multiply by a vector along the last axis."""
        self._then("Mul", self.chain.weight(self.shape[-1]))

    def multiplied(self) -> None:
        """Multiply by a matrix."""
        self._then("MatMul", self.chain.weight(self.shape[-1], self.shape[-1]))

    def softened(self) -> None:
        self._then("Softmax", axis=self._axis())

    def activated(self) -> None:
        self._then(self.random.choice(("Relu", "Tanh", "Sigmoid")))

    def gathered(self) -> None:
        """Reverse an axis by Gather."""
        axis = self._axis()
        index = np.arange(self.shape[axis])[::-1].astype(np.int64)
        self._then("Gather", self.chain.constant(index), axis=axis)

    def residual(self) -> None:
        """Add an activation to itself."""
        self._then("Add", self.chain.node("Tanh", self.value))

    SECTIONS: Sequence[Callable[["_Sections"], None]] = (
        scanned, scanned, halves, reduced, biased, multiplied, softened, activated, gathered,
        residual,
    )  # fmt: skip


def models(seeds: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield the chains with their names."""
    for name, perm, axis, shape in SCANS:
        yield f"scan {name}", unrolled_scan(perm, axis, shape, 500, product=False)
        if axis != len(shape) - 1:
            yield f"scan {name} matmul", unrolled_scan(perm, axis, shape, 100, product=True)
        yield f"prefix {name}", prefix_sums(perm, axis, shape)
    yield "windows", windows(2, 512, 4, 32, 32)
    yield "state space", state_space(100)
    for seed in range(seeds):
        yield f"random {seed}", random_chain(seed)


SCANS: Final = (
    ("time first", (1, 0, 2), 0, (4, 500, 64)),
    ("time last", (0, 2, 1), 2, (4, 500, 32)),
    ("time inside", (0, 2, 1), 1, (4, 32, 500)),
    ("batch of one", (1, 0, 2), 0, (1, 500, 64)),
    ("four axes", (2, 0, 1, 3), 0, (2, 4, 500, 16)),
)
"""The Transpose before the scan, the time axis after it, and the shape of the input."""


# --- before and after -----------------------------------------------------------------------------


class Row(NamedTuple):
    """What became of a chain: its Transposes and nodes, and the time after by the time before.

    Attributes:
        off, on: the median of the turns between the ends of its 95 % interval, with onnxruntime's
            own optimisations off and on.
    """

    name: str
    nodes: tuple[int, int]
    transposes: tuple[int, int]
    off: tuple[float, float, float]
    on: tuple[float, float, float]

    @property
    def is_slower(self) -> bool:
        """Return whether it became slower by more than the limit, whatever the turns vary."""
        limit = RANDOM_LIMIT if self.name.startswith("random") else LIMIT
        return max(self.off[0], self.on[0]) > limit

    def __str__(self) -> str:
        nodes, transposes = (f"{was} -> {now}" for was, now in (self.nodes, self.transposes))
        ratios = (f"{middle:.3f} ({low:.3f}-{high:.3f})" for low, middle, high in self[3:])
        return f"{self.name:26} {nodes:14} {transposes:10} {'  '.join(ratios)}"


def measured(name: str, model: onnx.ModelProto, turns: int, disabled: Sequence[str] = ()) -> Row:
    """Return what -O3 makes of a model, and what onnxruntime takes for it."""
    after = tiered.optimize(model, opt_level=3, disabled=disabled)
    counted = [
        (len(each.graph.node), sum(node.op_type == "Transpose" for node in each.graph.node))
        for each in (model, after)
    ]
    feeds = make_inputs(model).feeds
    found = []
    for is_on in (False, True):
        sessions = [opened(each.SerializeToString(), is_on) for each in (model, after)]
        for _ in range(WARM_UP):
            for session in sessions:
                session.run(feeds)
        first, second = seconds_in_turn(sessions[0], sessions[1], feeds, turns)
        ratios = [b / a for a, b in zip(first, second, strict=True)]
        found.append(median_interval(ratios, CONFIDENCE)[:3])
    nodes, transposes = zip(*counted, strict=True)
    return Row(name, nodes, transposes, *found)


WARM_UP: Final = 5
CONFIDENCE: Final = 0.95
"""Of the intervals of a ratio."""


def main(seeds: int, turns: int, disabled: Sequence[str] = ()) -> list[str]:
    """Print a line for each chain; return those that became slower."""
    print(f"{'chain':26} {'nodes':14} {'Transposes':10} optimisations off; on")
    slower = []
    for name, model in models(seeds):
        row = measured(name, model, turns, disabled)
        print(row, flush=True)
        if row.is_slower:
            slower.append(str(row))
    return slower


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=30, help="how many random chains")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--disabled", default="", help="passes that do not run, by comma")
    parser.add_argument("--check", action="store_true", help="fail if one is slower")
    given = parser.parse_args()
    passes = [name for name in given.disabled.split(",") if name]
    found_slower = main(given.seeds, given.turns, passes)
    if given.check and found_slower:
        sys.exit("\n".join(found_slower))
