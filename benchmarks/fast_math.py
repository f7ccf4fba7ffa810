"""TVM's FastMath in ONNX: polynomials of elementwise operators against the runtime's kernels.

    python -m benchmarks.fast_math

TVM replaces Exp, Tanh, Erf and Softmax by polynomials, which its compiler makes one loop of. A
runtime of ONNX runs each Mul and Add by itself, over the whole tensor. Both forms run in turns on
onnxruntime, on one thread, with its optimisations on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from typing import Final, NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

# The coefficients are those of TVM's topi (fast_exp, fast_tanh_float, fast_erf_float32), the
# highest power first; those of tanh and erf are of Eigen.
EXP: Final = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1,
)  # fmt: skip
TANH: Final = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
    1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
TANH_DIVISOR: Final = (
    1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03,
)  # fmt: skip
ERF: Final = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
ERF_DIVISOR: Final = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
    -1.42647390514189e-02,
)  # fmt: skip
LOG2_E: Final = 1.44269504088896341
LN_2: Final = 0.6931471805599453
COLUMNS: Final = 1024


class Chain:
    """A model that is written operator by operator; values are their names."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def op(self, op_type: str, *inputs: str, **attributes: int | list[int]) -> str:
        """Add an operator and return its output."""
        output = f"{op_type}_{len(self._nodes)}"
        node = helper.make_node(op_type, inputs, [output])
        node.attribute.extend(starmap(helper.make_attribute, attributes.items()))
        self._nodes.append(node)
        return output

    def number(self, number: float) -> str:
        """Return a constant of no dims."""
        return self.constant(np.array(number, np.float32))

    def constant(self, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
        """Return a constant."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def clip(self, x: str, most: float) -> str:
        """Return a value between two limits of the same size."""
        return self.op("Clip", x, self.number(-most), self.number(most))

    def horner(self, x: str, coefficients: Sequence[float]) -> str:
        """Return a polynomial, the coefficient of the highest power first."""
        sum_ = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            sum_ = self.op("Add", self.op("Mul", sum_, x), self.number(coefficient))
        return sum_

    def model(self, output: str) -> onnx.ModelProto:
        """Return the model."""
        graph = helper.make_graph(
            self._nodes,
            "fast_math",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", COLUMNS])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["N", COLUMNS])],
            self._constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def fast_exp(chain: Chain, x: str) -> str:
    """Return 2^n * p(r), x = n ln 2 + r; ONNX shifts no bits into floats, so 2^n is looked up."""
    x = chain.clip(x, 88.0)
    n = chain.op("Floor", chain.op("Add", chain.op("Mul", x, chain.number(LOG2_E)),
                                   chain.number(0.5)))
    r = chain.op("Sub", x, chain.op("Mul", n, chain.number(LN_2)))
    square = chain.op("Mul", r, r)
    tail = chain.op("Add", chain.op("Mul", chain.horner(r, EXP), square), r)
    powers = chain.constant((2.0 ** np.arange(-127, 128)).astype(np.float32))
    index = chain.op("Cast", chain.op("Add", n, chain.number(127.0)), to=TensorProto.INT32)
    power = chain.op("Gather", powers, index)
    return chain.op("Mul", chain.op("Add", tail, chain.number(1.0)), power)


def _rational(
    chain: Chain, x: str, above: Sequence[float], below: Sequence[float], most: float
) -> str:
    x = chain.clip(x, most)
    square = chain.op("Mul", x, x)
    return chain.op(
        "Div", chain.op("Mul", x, chain.horner(square, above)), chain.horner(square, below)
    )


def fast_tanh(chain: Chain, x: str) -> str:
    """Return x * p(x^2) / q(x^2)."""
    return _rational(chain, x, TANH, TANH_DIVISOR, 9.0)


def fast_erf(chain: Chain, x: str) -> str:
    """Return x * p(x^2) / q(x^2)."""
    return _rational(chain, x, ERF, ERF_DIVISOR, 4.0)


def fast_softmax(chain: Chain, x: str) -> str:
    """Return Softmax over the last axis, with `fast_exp`."""
    raised = fast_exp(chain, chain.op("Sub", x, chain.op("ReduceMax", x, axes=[1])))
    return chain.op("Div", raised, chain.op("ReduceSum", raised, chain.constant(np.array([1]))))


FAST: Final[dict[str, Callable[[Chain, str], str]]] = {
    "Exp": fast_exp,
    "Tanh": fast_tanh,
    "Erf": fast_erf,
    "Softmax": fast_softmax,
}


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
    for name, write in FAST.items():
        own, fast = Chain(), Chain()
        models = own.model(own.op(name, "x")), fast.model(write(fast, "x"))
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
    print("| operator | elements | nodes of the polynomial | kernel | polynomial | slower by |"
          " difference |")
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
