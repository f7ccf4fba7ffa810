"""QONNX's operators in plain numpy, comparisons, and models with the operators."""

from collections.abc import Callable

import numpy as np
import onnx
import onnx.parser
from numpy.typing import ArrayLike, NDArray
from onnx import numpy_helper

from tiered import Model, PassContext, get_pass

DOMAIN = "qonnx.custom_op.general"

Array = NDArray[np.float32]

SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-42, -1e-42, 0.49999997, 1.4999999]
"""Numbers that a quantiser may treat otherwise than the rest."""

ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "ROUND": np.round,
    "HALF_EVEN": np.round,
    "CEIL": np.ceil,
    "FLOOR": np.floor,
    "DOWN": np.trunc,
    "ROUND_TO_ZERO": np.trunc,
    "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)),
    "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + np.float32(0.5)),
    "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - np.float32(0.5)),
}


def floats(values: ArrayLike) -> Array:
    return np.array(values, np.float32)


def quant(
    x: Array,
    scale: Array | np.float32,
    zero: Array | np.float32,
    bits: int,
    signed: int = 1,
    narrow: int = 1,
    rounding_mode: str = "ROUND",
) -> Array:
    shifted = x / scale + zero
    if bits == 1 and signed:
        integers = np.where(shifted >= 0, np.float32(1), np.float32(-1))
    else:
        integers = ROUNDINGS[rounding_mode](_clipped(shifted, bits, signed, narrow))
    return np.asarray((integers - zero) * scale, np.float32)


def bipolar(x: Array, scale: Array) -> Array:
    return np.asarray(np.where(x >= 0, np.float32(1), np.float32(-1)) * scale, np.float32)


def trunc_by_bits(
    x: Array, scale: Array, zero: np.float32, before: int, after: int, rounding_mode: str = "FLOOR"
) -> Array:
    integers = floats(np.round(x / scale + zero) / np.float32(2.0 ** (before - after)))
    return np.asarray((ROUNDINGS[rounding_mode](integers) - zero) * scale, np.float32)


def trunc_by_scale(
    x: Array,
    scale: Array,
    zero: np.float32,
    out_scale: Array,
    bits: int,
    signed: int = 1,
    narrow: int = 0,
    rounding_mode: str = "FLOOR",
) -> Array:
    step = np.float32(2) ** np.round(np.log2(out_scale / scale))
    integers = _clipped(np.round(x / scale + zero) / step, bits, signed, narrow)
    whole = ROUNDINGS[rounding_mode](integers)
    return np.asarray((whole - zero / step) * out_scale, np.float32)


def multi_threshold(
    x: Array, thresholds: Array, out_scale: float = 1.0, out_bias: float = 0.0, axis: int = 1
) -> Array:
    moved = np.moveaxis(x, axis, -1)[..., None]
    counts = np.moveaxis((moved >= thresholds).sum(-1), -1, axis)
    factor, bias = float(np.float32(out_scale)), float(np.float32(out_bias))
    return floats(factor * counts + bias)


def same_bits(one: Array, other: Array) -> bool:
    """Return whether arrays have the same dtype, dims and bits; every NaN equals every NaN."""
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    plain = [np.where(np.isnan(each), np.float32(np.nan), each) for each in (one, other)]
    return bool(plain[0].tobytes() == plain[1].tobytes())


def equal(one: Array, other: Array) -> bool:
    """Return whether all numbers are the same; 0.0 and -0.0 are one number."""
    return same_bits(one + np.float32(0), other + np.float32(0))


def parsed(text: str, opset: int = 17, **weights: np.ndarray) -> onnx.ModelProto:
    header = f'<ir_version: 8, opset_import: ["": {opset}, "{DOMAIN}": 1]>'
    proto = onnx.parser.parse_model(f"{header} g {text}".replace("q.", DOMAIN + "."))
    proto.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()
    )
    return proto


def applied(name: str, proto: onnx.ModelProto) -> tuple[onnx.ModelProto, list[str]]:
    """Return the model after a pass, valid and at rest, and the reasons of the nodes that stay."""
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(name).apply(model, ctx)
    model.check_view(types=True)
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    again = Model.from_proto(made)
    get_pass(name).apply(again, PassContext.isolated())
    assert again.to_proto() == made
    return made, [each.reason for each in ctx.remarks if each.kind == "missed"]


def operators(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]


def defining(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with another definition of Quant."""
    header = f'<domain: "{DOMAIN}", opset_import: ["": 17]>'
    text = f"{header} Quant <narrow> (x, s, z, b) => (y) {{ y = Neg (x) }}"
    proto.functions.append(onnx.parser.parse_function(text))
    return proto


def _clipped(x: Array, bits: int, signed: int, narrow: int) -> Array:
    high = 2 ** (bits - 1) - 1 if signed else 2**bits - 1 - narrow
    low = -(2 ** (bits - 1)) + narrow if signed else 0
    x = np.where(x > np.float32(high), np.float32(high), x)
    return np.where(x < np.float32(low), np.float32(low), x)
