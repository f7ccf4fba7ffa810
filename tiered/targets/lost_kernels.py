"""Remarks about what a target lost: kernels of onnxruntime, weights in integers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import onnx

from tiered.support.amounts import counted

if TYPE_CHECKING:
    from tiered.graph import Model
    from tiered.targets.backend import Backend

_RUNTIME: Final = "onnxruntime_cpu"
_EIGHT_BITS: Final = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)


@contextmanager
def noting_lost_kernels(model: Model) -> Iterator[None]:
    """Note the operators that onnxruntime has a kernel for before a block, and none after it.

    A conversion to another opset or dtype is right by the standard, and a runtime may lack it.
    """
    from tiered.targets.known import get_backend

    runtime = get_backend(_RUNTIME)
    before = {gap.operator for gap in runtime.coverage(model).gaps}
    yield
    for gap in runtime.coverage(model).gaps:
        if gap.operator not in before:
            count = counted(len(gap.nodes), "node")
            reasons = "; ".join(gap.reasons)
            model.note(
                f"onnxruntime has no kernel for {gap.operator} now ({count}, as "
                f"{gap.nodes[0].label!r}): {reasons}"
            )


def note_float_weights(model: Model, backend: Backend) -> None:
    """Note that weights of 8 bits are floats now, for a target without DequantizeLinear."""
    if model.origin is None or backend.supports("DequantizeLinear"):
        return
    stored = model.origin.graph.initializer
    tensors = [value.tensor for graph in model.graphs() for value in graph.initializers]
    before = sum(math.prod(one.dims) for one in stored if one.data_type in _EIGHT_BITS)
    after = sum(one.size for one in tensors if one is not None and one.dtype in _EIGHT_BITS)
    if 2 * after < before:
        lost = counted(
            before - after, "weight of 8 bits is a float", "weights of 8 bits are floats"
        )
        model.note(
            f"{lost} now, in four times the bytes: "
            f"{backend} has no DequantizeLinear; `--disable lower_quantized_constant` and "
            "`--disable legalize` keep them"
        )
