"""Steps for dtypes that few operators take: bfloat16, float8, float4, int4, text, ...

They are exact on every runtime, as onnx.reference runs what onnxruntime has no kernel for.
"""

from __future__ import annotations

import numpy as np

from tests.conformance.generator.scope import Scope, is_integer, numbers, numpy_type, onnx_type
from tests.conformance.generator.values import other

SINCE = {
    "int16": 8, "uint16": 8, "uint32": 8, "uint64": 8, "object": 8, "complex64": 8,
    "bfloat16": 13, "float8_e4m3fn": 19, "float8_e5m2": 19, "float8_e4m3fnuz": 19,
    "float8_e5m2fnuz": 19, "int4": 21, "uint4": 21, "float4_e2m1fn": 23,
}  # fmt: skip
"""Rare dtypes, and the opset from which casts know them."""

_NO_NUMBERS = ("bool", "object", "complex64")


def rare_dtypes(opset: int) -> tuple[str, ...]:
    return tuple(dtype for dtype, since in SINCE.items() if since <= opset)


def identity(scope: Scope) -> None:
    x = scope.some(scope.dtypes)
    scope.add("Identity", [x], x.dtype, x.shape)


def cast(scope: Scope) -> None:
    """Cast there, and sometimes back: between floats, or from an integer to anything."""
    x = scope.some([dtype for dtype in scope.dtypes if dtype not in _NO_NUMBERS])
    if is_integer(x.dtype):
        into = [d for d in scope.dtypes if d not in _NO_NUMBERS and "e4m3fnuz" not in d]
    else:
        # What a float too large becomes as an integer is not defined.
        into = [d for d in scope.dtypes if d not in _NO_NUMBERS and not is_integer(d)]
    to = scope.random.choice(into)
    saturate = {"saturate": 0} if to.startswith("float8") and scope.random.random() < 0.3 else {}
    made = scope.add("Cast", [x], to, x.shape, to=onnx_type(to), **saturate)
    if scope.random.random() < 0.5 and is_integer(x.dtype) <= is_integer(to):
        scope.add("Cast", [made], x.dtype, x.shape, to=onnx_type(x.dtype))


def quantize(scope: Scope) -> None:
    """Write the pairs that keep weights small: 16, 8 and 4 bits."""
    kinds = [d for d in ("int4", "uint4", "int16", "uint16") if scope.opset >= 21]
    kinds += [d for d in ("float8_e4m3fn", "float8_e5m2") if scope.opset >= 19]
    if not kinds:
        return
    x = scope.some(["float32"])
    kind = scope.random.choice(kinds)
    scale = scope.constant(np.array(0.5, np.float32))
    zero = scope.constant(np.array(0).astype(numpy_type(kind)))
    q = scope.add("QuantizeLinear", [x, scale, zero], kind, x.shape)
    scope.add("DequantizeLinear", [q, scale, zero], "float32", x.shape)


def weight(scope: Scope) -> None:
    """Add a quantised constant that is read as floats."""
    if scope.opset < 21:
        return
    kind = scope.random.choice(("int4", "uint4"))
    shape = tuple(scope.random.randint(1, 3) for _ in range(2))
    packed = scope.constant(numbers(scope.random, kind, shape))
    scale = scope.constant(np.array(0.5, np.float32))
    scope.add("DequantizeLinear", [packed, scale], "float32", shape)


def arithmetic(scope: Scope) -> None:
    """Add what rounds to the same bits wherever it is computed."""
    kinds = [d for d in ("bfloat16", "float32", "int16", "uint32") if d in scope.dtypes]
    if scope.opset < 14:
        kinds = ["float32"]
    x = scope.some(kinds)
    if scope.random.random() < 0.3 and x.dtype in ("bfloat16", "float32"):
        scope.add(scope.random.choice(("Neg", "Abs", "Relu")), [x], x.dtype, x.shape)
        return
    second, shape = other(scope, x)
    scope.add(scope.random.choice(("Add", "Mul", "Sub")), [x, second], x.dtype, tuple(shape))
