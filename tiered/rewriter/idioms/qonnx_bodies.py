"""The operators of QONNX, what they compute, and that as function bodies.

`Quant` is `(round(clip(x / scale + zero, low, high)) - zero) * scale`, all in float32. Unlike
QuantizeLinear it adds the zero point before it rounds, keeps NaN, and keeps the sign of zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import onnx
import onnx.parser

from tiered.graph.core.dtypes import DataType
from tiered.rewriter.skip import Skip
from tiered.support.amounts import counted

if TYPE_CHECKING:
    from tiered.graph import Node, Value

DOMAINS: Final = ("qonnx.custom_op.general", "onnx.brevitas")
"""The domains of the operators: QONNX's own, and the one of older exports."""

DEFAULTS: Final[Mapping[str, Mapping[str, int | float | str]]] = {
    "BipolarQuant": {},
    "MultiThreshold": {
        "out_dtype": "", "out_scale": 1.0, "out_bias": 0.0, "data_layout": "NCHW",
    },
    "Quant": {"signed": 1, "narrow": 1, "rounding_mode": "ROUND"},
    "Trunc": {"signed": 1, "narrow": 0, "rounding_mode": "FLOOR"},
}  # fmt: skip
"""The operators, and the attributes that they have where a node does not write them."""

_BITS: Final[Mapping[tuple[str, int], tuple[int, ...]]] = {
    ("BipolarQuant", 2): (),
    ("MultiThreshold", 2): (),
    ("Quant", 4): (3,),
    ("Trunc", 5): (3, 4),
    ("Trunc", 7): (3, 6),
}
"""The operators by their numbers of operands, and the operands that are numbers of bits."""

_BY_SCALE: Final = ("Trunc", 7)
"""The second version of Trunc, which takes the number of dropped bits from two scales."""

_ROUNDINGS: Final[Mapping[str, str]] = {
    "ROUND": "r = Round (v)",
    "CEIL": "r = Ceil (v)",
    "FLOOR": "r = Floor (v)",
    "DOWN": "lower = Floor (v) upper = Ceil (v) r = Where (is_positive, lower, upper)",
    "UP": "size = Abs (v) whole = Ceil (size) r = Mul (sign, whole)",
    "HALF_UP": "size = Abs (v) past = Add (size, half) whole = Floor (past) r = Mul (sign, whole)",
    "HALF_DOWN": "size = Abs (v) past = Sub (size, half) whole = Ceil (past) r = Mul (sign, whole)",
}
"""The rounding modes as nodes from v to r; the last four round the distance from zero.

onnxruntime's Where makes 0.0 of a -0.0 that it takes from its second operand: in all bodies here,
only the third one may have it.
"""

_SAME: Final = {"HALF_EVEN": "ROUND", "ROUND_TO_ZERO": "DOWN"}
"""Other names of rounding modes."""

_SIGN: Final = """
    is_negative = Less (v, zero) is_positive = Greater (v, zero) is_zero = Equal (v, zero)
    half = Constant <value_float = 0.5> ()
    zero_or_nan = Where (is_zero, zero, v)
    below = Where (is_negative, minus, zero_or_nan)
    sign = Where (is_positive, one, below)
"""

_NUMBERS: Final = """
    zero = Constant <value_float = 0.0> ()
    one = Constant <value_float = 1.0> ()
    minus = Constant <value_float = -1.0> ()
    two = Constant <value_float = 2.0> ()
"""

_LIMITS: Final = """
    signed_number = Constant <value_int: int = @signed> ()
    narrow_number = Constant <value_int: int = @narrow> ()
    is_signed = Cast <to = 9> (signed_number)
    is_narrow = Cast <to = 9> (narrow_number)
    narrowed = Cast <to = 1> (is_narrow)
    sign_bit = Where (is_signed, one, zero)
    value_bits = Sub (bits, sign_bit)
    span = Pow (two, value_bits)
    unsigned_top = Add (one, narrowed)
    top = Where (is_signed, one, unsigned_top)
    high = Sub (span, top)
    signed_low = Sub (narrowed, span)
    low = Where (is_signed, signed_low, zero)
    is_above = Greater (raw, high)
    capped = Where (is_above, high, raw)
    is_below = Less (capped, low)
    v = Where (is_below, low, capped)
"""
"""From raw and bits to v: Clip, but NaN stays NaN and -0.0 stays -0.0 on every runtime."""

_QUANT: Final = f"""
    bits = Squeeze (bitwidth)
    scaled = Div (x, scale)
    raw = Add (scaled, zeropt)
    {_LIMITS}
    %ROUND%
    is_single = Equal (bits, one)
    is_bipolar = And (is_signed, is_single)
    is_upper = GreaterOrEqual (raw, zero)
    side = Where (is_upper, one, minus)
    q = Where (is_bipolar, side, r)
    centred = Sub (q, zeropt)
    y = Mul (centred, scale)
"""

_BIPOLAR: Final = """
    is_upper = GreaterOrEqual (x, zero)
    side = Where (is_upper, one, minus)
    y = Mul (side, scale)
"""

_TRUNC_BY_BITS: Final = """
    before = Squeeze (in_bitwidth)
    after = Squeeze (out_bitwidth)
    dropped = Sub (before, after)
    step = Pow (two, dropped)
    scaled = Div (x, scale)
    shifted = Add (scaled, zeropt)
    integers = Round (shifted)
    v = Div (integers, step)
    %ROUND%
    centred = Sub (r, zeropt)
    y = Mul (centred, scale)
"""

_TRUNC_BY_SCALE: Final = f"""
    bits = Squeeze (out_bitwidth)
    ratio = Div (out_scale, scale)
    logarithm = Log (ratio)
    unit = Log (two)
    exponent = Div (logarithm, unit)
    dropped = Round (exponent)
    step = Pow (two, dropped)
    scaled = Div (x, scale)
    shifted = Add (scaled, zeropt)
    integers = Round (shifted)
    raw = Div (integers, step)
    {_LIMITS}
    %ROUND%
    out_zero = Div (zeropt, step)
    centred = Sub (r, out_zero)
    y = Mul (centred, out_scale)
"""

_ALIGNED: Final[Mapping[str, str]] = {
    # Channels are the axis 1 of images, and the last one of all other ranks.
    "NCHW": """
    dims = Shape (x)
    rank = Shape (dims)
    four = Constant <value_ints = [4]> ()
    is_image = Equal (rank, four)
    start = Constant <value_ints = [0]> ()
    spatial = Constant <value_ints = [1, 2]> ()
    inner = Constant <value_ints = [2]> ()
    count = Where (is_image, inner, start)
    axes = Slice (spatial, start, count)
    aligned = Unsqueeze (thresholds, axes)
""",
    "NHWC": "aligned = Identity (thresholds)",
}

_THRESHOLD: Final = """
    last = Constant <value_ints = [-1]> ()
    columns = Unsqueeze (x, last)
    %ALIGN%
    is_reached = GreaterOrEqual (columns, aligned)
    ones = Cast <to = 7> (is_reached)
    steps = ReduceSum <keepdims = 0> (ones, last)
    exact_steps = Cast <to = 11> (steps)
    factor = Constant <value_float: float = @out_scale> ()
    bias = Constant <value_float: float = @out_bias> ()
    exact_factor = Cast <to = 11> (factor)
    exact_bias = Cast <to = 11> (bias)
    product = Mul (exact_factor, exact_steps)
    moved = Add (product, exact_bias)
    y = Cast <to = 1> (moved)
"""

_BODIES: Final[Mapping[tuple[str, int], tuple[str, str]]] = {
    ("BipolarQuant", 2): ("x, scale", _BIPOLAR),
    ("MultiThreshold", 2): ("x, thresholds", _THRESHOLD),
    ("Quant", 4): ("x, scale, zeropt, bitwidth", _QUANT),
    ("Trunc", 5): ("x, scale, zeropt, in_bitwidth, out_bitwidth", _TRUNC_BY_BITS),
    ("Trunc", 7): (
        "x, scale, zeropt, in_bitwidth, out_scale, out_zeropt, out_bitwidth", _TRUNC_BY_SCALE,
    ),
}  # fmt: skip
"""The operators by their numbers of operands: the names of the operands, and the nodes."""


class BodyForm(NamedTuple):
    """What one function body can compute: its attributes are 0 or 1, numbers, or these strings.

    Attributes:
        op_type: the operator.
        n_inputs: the number of operands, which tells the versions of Trunc apart.
        mode: the rounding mode or the data layout; empty for an operator without one.
    """

    op_type: str
    n_inputs: int
    mode: str

    @property
    def name(self) -> str:
        """The name of its function if the operator's own name has another form."""
        version = str(self.n_inputs) if self.op_type == "Trunc" else ""
        return "_".join(filter(None, (self.op_type, version, self.mode)))

    def function(self, domain: str, name: str, opset: int) -> onnx.FunctionProto:
        """Return the body as a function of the operator's operands and attributes."""
        operands, nodes = _BODIES[self.op_type, self.n_inputs]
        if "%ROUND%" in nodes:
            sign = "" if self.mode in {"ROUND", "CEIL", "FLOOR"} else _SIGN
            nodes = nodes.replace("%ROUND%", sign + _ROUNDINGS[self.mode])
        numbers = "" if self.op_type == "MultiThreshold" else _NUMBERS
        nodes = numbers + nodes.replace("%ALIGN%", _ALIGNED.get(self.mode, ""))
        attributes = ", ".join(DEFAULTS[self.op_type])
        header = f'<domain: "{domain}", opset_import: ["": {opset}]>'
        declared = f"<{attributes}>" if attributes else ""
        return onnx.parser.parse_function(
            f"{header} {name} {declared} ({operands}) => (y) {{ {nodes} }}"
        )


def form_of(node: Node) -> BodyForm | Skip:
    """Return the form of the body of a QONNX operator, or why the node has none."""
    op_type, operands = node.op_type, node.inputs
    key = (op_type, len(operands))
    if key not in _BITS or len(node.outputs) != 1:
        return Skip("{} does not take {}", op_type, counted(len(operands), "operand"))
    if node.parameter_reason:
        return Skip("{}", node.parameter_reason)
    if any(value is None or value.dtype != DataType.FLOAT for value in operands):
        return Skip("an operand is not float32")
    reasons = [_why_no_width(node.input(slot)) for slot in _BITS[key]]
    if key == _BY_SCALE:
        reasons.append(_why_no_power(node))
    mode = ""
    if op_type == "MultiThreshold":
        mode = attribute(node, "data_layout")
        reasons.append(_why_no_channels(node, mode))
    elif "rounding_mode" in DEFAULTS[op_type]:
        mode = rounding_of(node)
        if mode not in _ROUNDINGS:
            reasons.append(Skip("the rounding mode {} is not known", mode))
    return next(filter(None, reasons), None) or BodyForm(*key, mode)


def attribute(node: Node, name: str) -> str:
    """Return an attribute that is text, or its default."""
    found = node.attr(name, DEFAULTS[node.op_type][name])
    return found.decode() if isinstance(found, bytes) else str(found)


def channel_axis(layout: str, rank: int | None) -> int | None:
    """Return the axis that the rows of thresholds are along; None if the rank is not known."""
    if rank is None:
        return None
    return 1 if layout == "NCHW" and rank == 4 else rank - 1


def rounding_of(node: Node) -> str:
    """Return the rounding mode of a node by its first name, in capitals."""
    mode = attribute(node, "rounding_mode").upper()
    return _SAME.get(mode, mode)


def _why_no_width(value: Value | None) -> Skip | None:
    """Return why an operand is not the number of bits of all elements."""
    assert value is not None
    if value.shape is None or any(dim != 1 for dim in value.shape):
        return Skip("the bit width is not one number")
    number = value.number
    if number is not None and not (number >= 1 and float(number).is_integer()):
        return Skip("the bit width is {}", number)
    return None


def _why_no_channels(node: Node, layout: str) -> Skip | None:
    """Return why the axis of the channels of a MultiThreshold is not known."""
    x = node.given(0)
    if layout not in _ALIGNED:
        return Skip("the data layout {!r} is not known", layout)
    if layout == "NHWC" and x.rank not in (None, 2, 4):
        return Skip("NHWC data has rank {}", x.rank)
    return Skip("the data has no channels") if x.rank == 0 else None


def _why_no_power(node: Node) -> Skip | None:
    """Return why the scales of a Trunc do not differ by a power of two."""
    scale, out_scale = (node.input(slot) for slot in (1, 4))
    assert scale is not None
    assert out_scale is not None
    if scale.const is None or out_scale.const is None:
        return Skip("a scale is not constant")
    with np.errstate(all="ignore"):
        exponent = np.log2(out_scale.const.astype(np.float64) / scale.const.astype(np.float64))
    # Within this distance, every runtime rounds the logarithm alike.
    if not (np.abs(exponent - np.rint(exponent)) < 0.25).all():
        return Skip("the scales differ by no power of two")
    return None
