"""How the installed onnxruntime multiplies uint8 by int8 on this processor: exactly, or not.

On x86-64 without VNNI its kernels of MatMul, Gemm and Conv add products in pairs, in 16 bits that
saturate: 255 * 127 + 255 * 127 becomes 32767. Those of int8 by int8, of uint8 by uint8, and of
weights of 7 bits are exact everywhere, as no pair of these exceeds 16 bits or none is added.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal

import numpy as np
import onnx

from tiered.runtime.worker.client import shared_worker
from tiered.support.errors import HelperError, RuntimeFailure

ByteProducts = Literal["exact", "saturate", "unknown"]

WORDS: Final[dict[ByteProducts, str]] = {
    "exact": "exact",
    "saturate": "saturate (no VNNI)",
    "unknown": "unknown, as onnxruntime did not run any",
}
"""Each answer, as commands print it."""

_ROWS, _DEPTH, _COLUMNS = 4, 64, 32
"""Large enough for the kernels of whole blocks."""


@cache
def byte_products() -> ByteProducts:
    """Return how products of uint8 and int8 are added; a model is run, once a process."""
    data = np.full((_ROWS, _DEPTH), 255, np.uint8)
    weight = np.full((_DEPTH, _COLUMNS), 127, np.int8)
    try:
        found = shared_worker().run(_product(), {"a": data, "b": weight})["y"]
    except (RuntimeFailure, HelperError):
        return "unknown"
    exact = data.astype(np.int32) @ weight.astype(np.int32)
    return "exact" if np.array_equal(found, exact) else "saturate"


def _product() -> onnx.ModelProto:
    types = onnx.TensorProto
    operands = [
        onnx.helper.make_tensor_value_info("a", types.UINT8, (_ROWS, _DEPTH)),
        onnx.helper.make_tensor_value_info("b", types.INT8, (_DEPTH, _COLUMNS)),
    ]
    result = onnx.helper.make_tensor_value_info("y", types.INT32, (_ROWS, _COLUMNS))
    node = onnx.helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    graph = onnx.helper.make_graph([node], "byte_products", operands, [result])
    versions = [onnx.helper.make_opsetid("", 10)]
    return onnx.helper.make_model(graph, opset_imports=versions, ir_version=4)
