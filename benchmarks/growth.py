"""Whether the time of a node depends on the size of the model: `python -m benchmarks.growth`.

The model is a stack of equal blocks as an exporter writes them: attention-like products, a Reshape
whose sizes are computed by nodes, Constants, and something to fold. `--shape regions` has blocks
with Transposes instead, for layouts; `--shape wide` has one value that most nodes read, `outputs`
as many outputs as nodes, `concatenated` one Concat of all. Without `--shape`, stacks and wide
models are measured. Processor time of `optimize`, ModelProto to ModelProto, or of what `--of`
names; the fastest run counts. The memory is the growth of the peak of the process, so that sizes
must rise. `--check` makes a growth of the time per node by more than `LIMIT` an error.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import tiered
from benchmarks.regions import blocks
from benchmarks.wide import concatenated, outputs, wide
from tiered import Model, get_pass
from tiered.extensions.memory import memory_plan

SIZES = {"stacked": (1_000, 10_000, 50_000), "wide": (4_000, 16_000)}
OTHER_SIZES = SIZES["stacked"]
LIMIT = 1.5
_WIDTH = 4


def stacked(nodes: int) -> onnx.ModelProto:
    """Return a model of about so many nodes."""
    protos: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    last, block = "x", 0
    while len(protos) < nodes:
        made = list(_block(last, f"/layer.{block}"))
        protos += made
        weight = np.full((_WIDTH, _WIDTH), block + 1, np.float32)
        weights.append(numpy_helper.from_array(weight, f"/layer.{block}/weight"))
        last, block = made[-1].output[0], block + 1
    x = helper.make_tensor_value_info("x", 1, ["batch", "sequence", _WIDTH])
    y = helper.make_tensor_value_info(last, 1, ["batch", "sequence", _WIDTH])
    graph = helper.make_graph(protos, "stacked", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _block(source: str, name: str) -> Iterator[onnx.NodeProto]:
    def node(op_type: str, *inputs: str, **attributes: Any) -> onnx.NodeProto:
        counted[0] += 1
        label = f"{name}/{op_type}_{counted[0]}"
        return helper.make_node(op_type, inputs, [f"{label}_output"], label, **attributes)

    def constant(numbers: object, dtype: type) -> onnx.NodeProto:
        return node("Constant", value=numpy_helper.from_array(np.array(numbers, dtype)))

    counted = [0]
    product = node("MatMul", source, f"{name}/weight")
    first, second = constant(0, np.int64), constant(1, np.int64)
    shape = node("Shape", product.output[0])
    rows = node("Gather", shape.output[0], first.output[0])
    columns = node("Gather", shape.output[0], second.output[0])
    axes = constant([0], np.int64)
    parts = [node("Unsqueeze", part.output[0], axes.output[0]) for part in (rows, columns)]
    width = constant([_WIDTH], np.int64)
    sizes = node("Concat", parts[0].output[0], parts[1].output[0], width.output[0], axis=0)
    shaped = node("Reshape", product.output[0], sizes.output[0])
    half, double = constant(0.5, np.float32), constant(2.0, np.float32)
    scale = node("Mul", half.output[0], double.output[0])
    scaled = node("Mul", shaped.output[0], scale.output[0])
    soft = node("Softmax", scaled.output[0], axis=-1)
    total = node("Add", soft.output[0], source)
    yield from (product, first, second, shape, rows, columns, axes, *parts, width, sizes, shaped)
    yield from (half, double, scale, scaled, soft, total)


def cut(model: onnx.ModelProto) -> None:
    """Cut a model behind its first node."""
    whole = Model.from_proto(model)
    first = model.graph.node[0].output[0]
    get_pass("extract", inputs=[first], outputs=[info.name for info in model.graph.output]).apply(
        whole
    )


RUNS: dict[str, Callable[[onnx.ModelProto], object]] = {
    "memory": lambda model: memory_plan(Model.from_proto(model)),
    "recompute": lambda model: get_pass("recompute").apply(Model.from_proto(model)),
    "schedule": lambda model: get_pass("schedule").apply(Model.from_proto(model)),
    "cut": cut,
}
"""What can be measured instead of `optimize`."""

SHAPES: dict[str, Callable[[int], onnx.ModelProto]] = {
    "stacked": stacked,
    "regions": blocks,
    "wide": wide,
    "outputs": outputs,
    "concatenated": concatenated,
}
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss: bytes on macOS, else KiB


def measured(shape: str, nodes: int, runs: int, level: int, of: str = "") -> tuple[float, float]:
    """Return the processor time of the fastest run and the memory, by node of the model."""
    model = SHAPES[shape](nodes)
    taken, before = [], _peak()
    for _ in range(runs):
        start = time.process_time()
        RUNS[of](model) if of else tiered.optimize(model, opt_level=level)
        taken.append(time.process_time() - start)
    count = len(model.graph.node)
    return min(taken) / count, (_peak() - before) / count


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT


def main(
    sizes: Sequence[int] = OTHER_SIZES,
    runs: int = 3,
    level: int = 3,
    shape: str = "stacked",
    of: str = "",
) -> float:
    """Print the time and memory per node at each size; return the largest time over the least."""
    measured(shape, 200, 1, level, of)  # loads code and fills caches
    found = []
    for size in sizes:
        seconds, memory = measured(shape, size, runs, level, of)
        found.append(seconds)
        shown = f"{seconds * 1e6:7.1f} µs and {memory:6,.0f} bytes a node"
        print(f"{size:>9,} nodes: {shown}", flush=True)
    growth = max(found) / min(found)
    print(f"{shape} {of or 'optimize'}, largest over smallest: {growth:.2f} (limit {LIMIT})")
    return growth


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--of", choices=RUNS, default="")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    growths = [
        main(given.sizes or SIZES.get(shape, OTHER_SIZES), given.runs, given.level, shape, given.of)
        for shape in ([given.shape] if given.shape else SIZES)
    ]
    if max(growths) > LIMIT and given.check:
        sys.exit(f"the time per node grows by more than {LIMIT}")
