"""What operators take in each order of their axes: `python -m benchmarks.orders`.

Each operator runs many times in one model, so that the call of onnxruntime does not count, on the
same elements in shapes that differ in the place of the axis that it works along. The last column
is the time beyond that of the best shape, by what `tiered/analysis/layout/kernel_times.py` counts:
runs of
adjacent elements, or elements. That file holds what this prints, rounded.
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from onnx import helper, numpy_helper

from benchmarks.in_process import opened

ELEMENTS: Final = 1 << 15
REPEATS: Final = 40

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """An operator on given operands; those after the first are constants if they are integers.

    Attributes:
        family: the row of the table.
        divisor: of what one is priced: the runs, or the elements.
    """

    family: str
    divisor: int
    op_type: str
    operands: tuple[Array, ...]
    outputs: int = 1
    attributes: tuple[tuple[str, Any], ...] = ()


def nanoseconds(case: Case, seconds: float) -> float:
    """Return the median time of one run of the operator."""
    names = [f"operand_{at}" for at in range(len(case.operands))]
    fed = {name: each for name, each in zip(names, case.operands, strict=True) if each.dtype == "f"}
    weights = [
        numpy_helper.from_array(each, name)
        for name, each in zip(names, case.operands, strict=True)
        if name not in fed
    ]
    nodes = [
        helper.make_node(
            case.op_type,
            names,
            [f"result_{at}_{place}" for place in range(case.outputs)],
            **dict(case.attributes),
        )
        for at in range(REPEATS)
    ]
    inputs = [helper.make_tensor_value_info(name, 1, each.shape) for name, each in fed.items()]
    output = helper.make_empty_tensor_value_info(nodes[-1].output[0])
    graph = helper.make_graph(nodes, case.family, inputs, [output], weights)
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    run = opened(model.SerializeToString(), False).prepared(fed)
    run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return statistics.median(times) / REPEATS * 1e9


def _floats(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _integers(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def cases() -> Iterator[list[Case]]:
    """Yield groups of cases; in each group the first one has the best shape."""
    axis = 16
    shapes = [(ELEMENTS // (axis * inner), axis, inner) for inner in (256, 64, 16, 4)]
    yield [_slice(*shape) for shape in shapes]
    yield [
        Case("split", outer * axis, "Split", (_floats(outer, axis, inner),), axis,
             (("axis", 1), ("num_outputs", axis)))
        for outer, axis, inner in shapes
    ]  # fmt: skip
    yield [
        Case(
            "concat", outer * axis, "Concat", (_floats(outer, 1, inner),) * axis, 1, (("axis", 1),)
        )
        for outer, axis, inner in shapes
    ]
    yield [
        Case("gather", outer * axis, "Gather",
             (_floats(outer, axis, inner), np.arange(axis, dtype=np.int64)), 1, (("axis", 1),))
        for outer, axis, inner in shapes
    ]  # fmt: skip
    yield [
        Case("pad", outer * axis, "Pad", (_floats(outer, axis, inner), _integers(0, 0, 1, 0, 0, 1)))
        for outer, axis, inner in shapes
    ]
    yield [
        Case("expand", outer * axis, "Expand",
             (_floats(outer, axis, 1), _integers(outer, axis, inner)))
        for outer, axis, inner in shapes
    ]  # fmt: skip
    yield [
        Case(
            "tile", outer * axis * inner, "Tile", (_floats(outer, axis, 1), _integers(1, 1, inner))
        )
        for outer, axis, inner in shapes
    ]
    yield [
        Case("broadcast", outer * axis, "Mul", (_floats(outer, axis, inner), _floats(1, 1, inner)))
        for outer, axis, inner in shapes
    ]
    yield [_along("cumulative run", shape, "CumSum") for shape in (*shapes, (2048, 16, 1))]
    yield from _reductions()
    yield [_last("softmax", "Softmax", place) for place in (2, 1, 0)]
    yield [_last("norm", "LpNormalization", place) for place in (2, 1, 0)]
    yield [_transpose((8, 64, 64), perm) for perm in ((0, 2, 1), (2, 0, 1), (1, 0, 2), (2, 1, 0))]
    yield [_product(*sizes) for sizes in ((1, 64, 64, 64), (16, 4, 64, 64), (16, 64, 64, 4))]


def _slice(outer: int, axis: int, inner: int) -> Case:
    bounds = (_integers(0), _integers(1), _integers(1))
    return Case("slice", outer, "Slice", (_floats(outer, axis, inner), *bounds))


def _along(family: str, shape: Sequence[int], op_type: str) -> Case:
    outer, axis, _ = shape
    return Case(family, outer * axis, op_type, (_floats(*shape), np.array(1, np.int64)))


def _reductions() -> Iterator[list[Case]]:
    for op_type in ("ReduceSum", "ReduceMax"):
        yield [
            Case(f"{op_type} of {name}", count, op_type, (_floats(*shape), _integers(*axes)))
            for name, shape, axes, count in (
                ("last", (512, 64), (1,), ELEMENTS),
                ("first", (64, 512), (0,), ELEMENTS),
                ("middle", (8, 64, 64), (1,), 8),
                ("middle", (512, 4, 16), (1,), 512),
                ("ends", (8, 64, 64), (0, 2), ELEMENTS),
                ("any", (8, 16, 16, 16), (0, 2), ELEMENTS),
            )
        ]


def _last(family: str, op_type: str, axis: int) -> Case:
    return Case(family, ELEMENTS, op_type, (_floats(8, 64, 64),), 1, (("axis", axis),))


def _transpose(shape: Sequence[int], perm: Sequence[int]) -> Case:
    return Case("transpose", ELEMENTS, "Transpose", (_floats(*shape),), 1, (("perm", perm),))


def _product(batch: int, rows: int, inner: int, columns: int) -> Case:
    operands = _floats(batch, rows, inner), _floats(batch, inner, columns)
    return Case("product", batch * rows * inner * columns, "MatMul", operands)


def main(seconds: float = 0.2) -> None:
    """Print a line for each case."""
    print(f"{'family':22} {'shape':18} {'ns':>10} {'more by one':>12}")
    for group in cases():
        best = None
        for case in group:
            taken = nanoseconds(case, seconds)
            best = taken if best is None else best
            more = max(0.0, taken - best) / case.divisor
            shape = "x".join(map(str, case.operands[0].shape))
            print(f"{case.family:22} {shape:18} {taken:10.0f} {more:12.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.2, help="for each case")
    main(parser.parse_args().seconds)
