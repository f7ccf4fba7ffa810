"""TVM's FastMath in ONNX: polynomials of elementwise operators against the runtime's kernels.

    python -m benchmarks.fast_math

TVM replaces Exp, Tanh, Erf and Softmax by polynomials, which its compiler makes one loop of. A
runtime of ONNX runs each Mul and Add by itself, over the whole tensor. Both forms run in turns on
onnxruntime, on one thread, with its optimisations on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import onnx
import onnxruntime

import tiered
from tiered.testing import parse

COLUMNS: Final = 1024
FAST: Final = {
    "Exp": "fast_exp",
    "Tanh": "fast_tanh",
    "Erf": "replace_erf_with_erfv2,fast_tanh",
    "Softmax": "fast_softmax",
}
"""The passes that write an operator by polynomials."""


class Row(NamedTuple):
    """The measurements of one function at one size: the least seconds, the largest difference."""

    name: str
    elements: int
    nodes: int
    kernel: float
    polynomial: float
    difference: float


def measured(rows: int, repeat: int) -> Iterator[Row]:
    """Yield the measurements of all functions, on tensors of so many rows."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    x = np.random.default_rng(0).standard_normal((rows, COLUMNS)).astype(np.float32) * 3
    for name, passes in FAST.items():
        text = f"(float[N,{COLUMNS}] x) => (float[N,{COLUMNS}] y) {{ y = {name}(x) }}"
        own = parse(text, opset=17)
        models: tuple[onnx.ModelProto, ...] = own, tiered.optimize(own, passes=passes)
        sessions = [
            onnxruntime.InferenceSession(each.SerializeToString(), options) for each in models
        ]
        kernel, polynomial = (session.run(None, {"x": x})[0] for session in sessions)
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(repeat):
            for session, taken in zip(sessions, times, strict=True):
                start = time.perf_counter()
                session.run(None, {"x": x})
                taken.append(time.perf_counter() - start)
        spread = np.abs(polynomial - kernel).max() / np.abs(kernel).max()
        least = min(times[0]), min(times[1])
        yield Row(name, x.size, len(models[1].graph.node), *least, float(spread))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[16, 1024])
    parser.add_argument("--repeat", type=int, default=30)
    arguments = parser.parse_args()
    print(
        "| operator | elements | nodes of the polynomial | kernel | polynomial | slower by |"
        " difference |"
    )
    print("|---|---|---|---|---|---|---|")
    for rows in arguments.rows:
        for row in measured(rows, arguments.repeat):
            print(
                f"| {row.name} | {row.elements:,} | {row.nodes} | {row.kernel * 1e3:.3g} ms | "
                f"{row.polynomial * 1e3:.3g} ms | {row.polynomial / row.kernel:.1f} | "
                f"{row.difference:.0e} |"
            )


if __name__ == "__main__":
    main()
