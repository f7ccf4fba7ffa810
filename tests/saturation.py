"""Products of 8 bits by onnx.reference instead of onnxruntime: exact, or of sums that saturate.

onnxruntime's own depend on the processor. Here both kinds run on any: products of uint8 and int8
are exact, or are added in pairs, in 16 bits that saturate, as on x86-64 without VNNI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from tiered.graph.io.protos import nodes_of
from tiered.runtime.byte_products import ByteProducts, byte_products
from tiered.runtime.reference_ops import OPERATORS
from tiered.runtime.session import Runner, as_proto
from tiered.runtime.worker.client import Worker
from tiered.support.errors import RuntimeFailure

Array = np.ndarray[Any, Any]

_QUANTISED = "tests.quantised"


def exact_product(a: Array, b: Array) -> Array:
    """Return the product of matrices of integers, as int32."""
    product: Array = a.astype(np.int32) @ b.astype(np.int32)
    return product


def saturating_product(a: Array, b: Array) -> Array:
    """Return the same where products of neighbours along K are added in 16 bits that saturate."""
    if (a.dtype, b.dtype) != (np.uint8, np.int8):
        return exact_product(a, b)
    rows, columns = a.astype(np.int32), b.astype(np.int32)
    if rows.shape[-1] % 2:
        rows = np.concatenate([rows, np.zeros_like(rows[..., :1])], -1)
        columns = np.concatenate([columns, np.zeros_like(columns[:1])], 0)
    wide = rows[..., :, None] * columns
    limits = np.iinfo(np.int16)
    pairs = np.clip(wide[..., 0::2, :] + wide[..., 1::2, :], limits.min, limits.max)
    summed: Array = pairs.sum(-2, dtype=np.int32)
    return summed


@contextmanager
def products_that(answer: ByteProducts) -> Iterator[None]:
    """Let products of 8 bits be exact, saturate, or not run, in all models of a worker.

    With onnxruntime's optimisations, where Q/DQ become such products, all models run on
    onnx.reference: exact ones as they are, saturating ones with each MatMul of two DequantizeLinear
    in integers.
    """
    open_really = Worker.open

    def opened(self: Worker, model: Any, **how: Any) -> Runner:
        proto = as_proto(model)
        is_integer = any(node.op_type == "MatMulInteger" for node in nodes_of(proto))
        is_optimised = how.get("setting") == "default"
        if how.get("reference") or not (is_integer or is_optimised):
            return open_really(self, model, **how)
        if is_integer and answer == "unknown":
            raise RuntimeFailure("onnxruntime has no MatMulInteger")
        return _Session(proto, answer, is_optimised=is_optimised)

    byte_products.cache_clear()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Worker, "open", opened)
            yield
    finally:
        byte_products.cache_clear()


class _Session:
    """A model that is open; it is used like a `WorkerSession`."""

    def __init__(self, proto: onnx.ModelProto, answer: ByteProducts, *, is_optimised: bool) -> None:
        own = onnx.ModelProto()
        own.CopyFrom(proto)
        multiply = saturating_product if answer == "saturate" else exact_product
        if is_optimised and answer == "saturate":
            _fuse(own)
        operators = [_matmul_integer(multiply), _quantised_matmul(multiply), *OPERATORS]
        self._evaluator = ReferenceEvaluator(own, new_ops=operators)
        self.inputs = tuple(map(str, self._evaluator.input_names))
        self.outputs = tuple(map(str, self._evaluator.output_names))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        names = self.outputs if outputs is None else tuple(outputs)
        results: Any = self._evaluator.run(list(names), dict(feeds))
        return dict(zip(names, results, strict=True))

    def close(self) -> None:
        """Nothing is open anywhere else."""


def _fuse(proto: onnx.ModelProto) -> None:
    """Let a MatMul of two DequantizeLinear read the integers, as onnxruntime's optimiser does."""
    makers = {name: node for node in proto.graph.node for name in node.output}
    for node in proto.graph.node:
        operands = [makers.get(name) for name in node.input]
        readers = [each for each in operands if each and each.op_type == "DequantizeLinear"]
        if node.op_type == "MatMul" and len(readers) == len(node.input):
            node.domain = _QUANTISED
            node.input[:] = [name for each in readers for name in each.input]
    proto.opset_import.append(onnx.helper.make_opsetid(_QUANTISED, 1))


def _sums(
    multiply: Callable[[Array, Array], Array], a: Array, b: Array, a_zero: Any, b_zero: Any
) -> Array:
    """Return the product of matrices less their zero points, which kernels take off afterwards."""
    below, beside = (0 if zero is None else zero.astype(np.int32) for zero in (a_zero, b_zero))
    columns, rows = b.sum(0, dtype=np.int32), a.sum(-1, dtype=np.int32, keepdims=True)
    sums: Array = multiply(a, b) - below * columns - rows * beside + len(b) * below * beside
    return sums


def _matmul_integer(multiply: Callable[[Array, Array], Array]) -> type[OpRun]:
    class MatMulInteger(OpRun):
        def _run(self, a: Array, b: Array, a_zero: Any = None, b_zero: Any = None) -> tuple[Array]:
            return (_sums(multiply, a, b, a_zero, b_zero),)

    return MatMulInteger


def _quantised_matmul(multiply: Callable[[Array, Array], Array]) -> type[OpRun]:
    class MatMul(OpRun):
        op_domain = _QUANTISED

        def _run(
            self, a: Array, a_scale: Any, a_zero: Any, b: Array, b_scale: Any, b_zero: Any
        ) -> tuple[Array]:
            sums = _sums(multiply, a, b, a_zero, b_zero)
            return ((sums * (a_scale * b_scale)).astype(np.float32),)

    return MatMul
