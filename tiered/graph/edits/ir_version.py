"""The IR version: which one an opset goes with, and which one a model needs at least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import onnx
from onnx import TensorProto

from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState

_IMPORTS, _INITIALIZERS, _FUNCTIONS, _OVERLOADS = 3, 4, 8, 10
_DTYPES: Final[Mapping[int, int]] = {
    **dict.fromkeys(
        (
            TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ,
            TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ,
        ), 9,
    ),
    **dict.fromkeys((TensorProto.INT4, TensorProto.UINT4), 10),
    TensorProto.FLOAT4E2M1: 11,
    TensorProto.FLOAT8E8M0: 12,
    **dict.fromkeys((TensorProto.INT2, TensorProto.UINT2), 13),
}  # fmt: skip
"""The IR version that brought a dtype."""


def ir_version_for(opset: int) -> int:
    """Return the IR version that came with an opset of the default domain, or before it."""
    versions: dict[tuple[str, int], int] = onnx.helper.OP_SET_ID_VERSION_MAP
    known: int = versions.get(("ai.onnx", opset), onnx.IR_VERSION)
    return known


def convert_ir(model: ModelState, version: int) -> None:
    """Set the IR version.

    Raises:
        UsageError: onnx does not know it, or the model has what it does not.
    """
    if version == model.ir_version:
        return
    if version > onnx.IR_VERSION:
        raise UsageError(f"no IR version {version}: onnx {onnx.__version__} has {onnx.IR_VERSION}")
    least, why = max(_needs(model))
    if version < least:
        raise UsageError(f"IR version {version} has no {why}; the model needs {least} or more")
    model.set_ir_version(version)


def _needs(model: ModelState) -> Iterator[tuple[int, str]]:
    """Yield IR versions that something in the model needs, and what."""
    yield _IMPORTS, "opset imports"
    if model.functions:
        yield _FUNCTIONS, "local functions"
    if any(function.overload for function in model.functions):
        yield _OVERLOADS, "overloaded functions"
    for graph in model.graphs():
        for value in graph.initializers:
            if not value.is_graph_input:
                yield _INITIALIZERS, "initializers that are no inputs"
        for value in graph.values.values():
            dtype = value.dtype
            if dtype is not None and dtype in _DTYPES:
                yield _DTYPES[dtype], onnx.TensorProto.DataType.Name(dtype).lower()
