"""Four bits: the output error of each layer beside that of onnxruntime's quantiser.

    python -m benchmarks.four_bits --models examples/models

A layer is a MatMul or Gemm with a constant weight of at least 1,024 numbers. Its inputs are those
of eight samples in the model of floats; tiered rounds for other eight, or to nearest with
`--nearest`. Both quantisers have blocks of 32 numbers; onnxruntime's (MatMulNBits) is asymmetric
unless it is asked to be symmetric. With `--outputs` it is the signal to noise ratio of the outputs
on four other samples, and the bytes of all weights: by default, with tables, kernels and heads in 8
bits, and where the weights of MatMul alone have four bits, as onnxruntime stores them. The tables
are printed in Markdown.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quantize import samples_of
from tiered import Model, Node, Tensor, Value
from tiered.numerics.calibration.calibrate import SampledModel
from tiered.numerics.precision.few_bits.codes import four_bit_codes
from tiered.numerics.precision.few_bits.compensation import four_bit_encoder
from tiered.numerics.precision.few_bits.sampled_operands import Operands, Sampling, WeightOperand

Array = np.ndarray[Any, Any]

BLOCK = 32
LEAST = 1024
MATMUL_ONLY: dict[str, object] = {
    "sensitive": "int4", "skip_op_types": ("Conv", "ConvTranspose", "Gather", "Gemm")
}  # fmt: skip
OPSET = 21
"""The first one of four bits."""
ROWS = 256
"""Rows of the operand of a layer that are taken of a sample."""


class Layer(NamedTuple):
    """The output error of a layer, in parts of that of onnxruntime's quantiser."""

    asymmetric: float
    symmetric: float


def onnxruntime_weight(weight: Array, *, symmetric: bool) -> Array:
    """Return what onnxruntime's codes of a weight [K, N] stand for."""
    from onnxruntime.capi._pybind_state import quantize_matmul_4bits

    rows, columns = weight.shape
    blocks = -(-rows // BLOCK)
    packed = np.zeros((columns, blocks, BLOCK // 2), np.uint8)
    scales = np.zeros(columns * blocks, np.float32)
    zeros = np.zeros((columns, (blocks + 1) // 2), np.uint8)
    contiguous = np.ascontiguousarray(weight)
    quantize_matmul_4bits(
        packed, contiguous, scales, zeros.ravel(), BLOCK, columns, rows, symmetric
    )
    codes = _halves(packed)
    points = np.full((columns, blocks), 8.0) if symmetric else _halves(zeros)[:, :blocks]
    found = (codes - points[..., None]) * scales.reshape(columns, blocks, 1)
    unpacked: Array = found.reshape(columns, -1)[:, :rows].T.astype(np.float32)
    return unpacked


def _halves(packed: Array) -> Array:
    """Return the two numbers of four bits of each byte."""
    pairs = np.stack([packed & 15, packed >> 4], axis=-1).astype(np.float32)
    return pairs.reshape(*packed.shape[:-1], -1)


def tiered_weight(weight: Array, operand: WeightOperand | None) -> Array:
    """Return what tiered's codes of a weight [K, N] stand for."""
    rows, dtype = np.ascontiguousarray(weight.T), np.dtype(np.float32)
    encode = operand and four_bit_encoder(rows, BLOCK, dtype, operand)
    return (encode or four_bit_codes)(rows, BLOCK, dtype).numbers(BLOCK).T


class _Product(NamedTuple):
    """A layer: the name of its operand, its weight as a value, and as numbers [K, N]."""

    operand: str
    value: Value
    weight: Array


def layers_of(model: Model, samples: int = 8, *, nearest: bool = False) -> Iterator[Layer]:
    """Yield the errors of each layer of a model."""
    products = list(_products(model))
    seen: dict[str, list[Array]] = {product.operand: [] for product in products}
    known = dict[Value, WeightOperand | None]()
    if not nearest:
        with Operands(model, Sampling(samples=samples)) as operands:
            operands.plan({each.value: _readers(each.value) for each in products})
            known = {each.value: operands.of(each.value) for each in products}
    with SampledModel.of(model) as running:
        for feeds in running.samples(count=samples):
            for name, array in running.stream(feeds, seen):
                seen[name].append(array.reshape(-1, array.shape[-1])[:ROWS])
    for name, value, weight in products:
        operand = np.concatenate(seen[name])
        made = (
            tiered_weight(weight, known.get(value)),
            *(onnxruntime_weight(weight, symmetric=each) for each in (False, True)),
        )
        own, asymmetric, symmetric = (
            float(np.linalg.norm(operand @ (each - weight))) for each in made
        )
        yield Layer(own / asymmetric, own / symmetric)


def _products(model: Model, op_types: Sequence[str] = ("MatMul", "Gemm")) -> Iterator[_Product]:
    """Yield the layers of the main graph."""
    for node in model.main.topological_order():
        if node.domain or node.op_type not in op_types or node.attr("transA", 0):
            continue
        operand, weight = node.inputs[:2]
        if operand is None or weight is None or weight.tensor is None or operand.is_constant:
            continue
        if len(weight.tensor.shape) == 2 and weight.tensor.size >= LEAST:
            array = weight.tensor.numpy().astype(np.float32)
            yield _Product(operand.name, weight, array.T if node.attr("transB", 0) else array)


def _readers(weight: Value) -> list[Node]:
    return list(dict.fromkeys(use.node for use in weight.users))


def row_of(name: str, layers: Sequence[Layer]) -> str:
    """Return the row of a model, or of all of them."""
    if not layers:
        return f"| {name} | 0 | | | | |"
    asymmetric, symmetric = zip(*layers, strict=True)
    shares = [sum(each <= 1 for each in kind) / len(layers) for kind in (asymmetric, symmetric)]
    cells = [str(len(layers)), *(f"{share:.0%}" for share in shares)]
    cells += [f"{statistics.median(asymmetric):.3f}", f"{max(asymmetric):.3f}"]
    return f"| {name} | {' | '.join(cells)} |"


# --- the outputs of whole models ------------------------------------------------------------------


class Stored(NamedTuple):
    """The ratio of the outputs of a model in dB, and the bytes of its weights."""

    decibels: float
    nbytes: int

    def __str__(self) -> str:
        return f"{self.decibels:.1f} | {self.nbytes:,}"


def outputs_of(file: Path) -> list[Stored]:
    """Return what tiered makes of a model, by default and of MatMul only, and onnxruntime."""
    from tiered import get_pass
    from tiered.numerics.precision.noise import FloatReference

    model = Model.load(str(file))
    if model.opset() < OPSET:
        get_pass("convert_opset").with_options(to=OPSET).apply(model)
    exact = model.to_proto()
    reference = FloatReference(exact, "", [dict(each) for each in samples_of(file, 100)[:4]])
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number, sample in enumerate(samples_of(file, 1)):
            np.savez(Path(folder) / f"{number}.npz", **sample)
        for options in ({}, MATMUL_ONLY):
            own = Model.from_proto(exact)
            convert = get_pass("weights_to_int4").with_options(inputs=[folder], **options)
            convert.apply(own)
            found.append(Stored(_ratio(reference.decibels(own.to_proto())), own.nbytes))
    for symmetric in (False, True):
        own, saved = Model.from_proto(exact), 0
        for _, value, weight in _products(own, ("MatMul",)):
            array = onnxruntime_weight(weight, symmetric=symmetric)
            own.main.set_constant(value, Tensor.of(array))
            blocks = weight.shape[1] * -(-weight.shape[0] // BLOCK)
            stored = weight.size // 2 + 4 * blocks + (0 if symmetric else blocks // 2)
            saved += 4 * weight.size - stored
        made = own.to_proto()
        found.append(Stored(_ratio(reference.decibels(made)), own.nbytes - saved))
    return found


def _ratio(found: float | None) -> float:
    return math.nan if found is None else found


def print_outputs(models: Path) -> None:
    """Print a row for each model."""
    kinds = ("tiered", "tiered, MatMul only", "onnxruntime", "symmetric")
    print("| model | " + " | ".join(f"{kind}, dB | bytes" for kind in kinds) + " |")
    print("|---|" + "---:|---:|" * len(kinds))
    for file in sorted(models.glob("*.onnx")):
        print(f"| {file.stem} | {' | '.join(map(str, outputs_of(file)))} |", flush=True)


def main(models: Path, *, nearest: bool = False) -> list[Layer]:
    """Print a row for each model, and return all layers."""
    print("| model | layers | at most asymmetric | at most symmetric | median ratio | largest |")
    print("|---|---:|---:|---:|---:|---:|")
    found = list[Layer]()
    for file in sorted(models.glob("*.onnx")):
        layers = list(layers_of(Model.load(str(file)), nearest=nearest))
        print(row_of(file.stem, layers), flush=True)
        found += layers
    print(row_of("all", found))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=Path("examples/models"))
    parser.add_argument("--nearest", action="store_true")
    parser.add_argument("--outputs", action="store_true", help="of whole models")
    options = parser.parse_args()
    if options.outputs:
        print_outputs(options.models)
    else:
        main(options.models, nearest=options.nearest)
