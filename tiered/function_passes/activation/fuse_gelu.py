"""x * (1 + Erf(x / sqrt(2))) / 2  =>  Gelu(x), and with Tanh  =>  Gelu(x, approximate="tanh")"""

import math
from typing import Any

from tiered import DataType, Graph, Node, Skip, Value, const, op, rewrite, var

_RTOL = 1e-6
_FIRST_OPSET = 20


def _number(value: float) -> Any:
    return const(value, rtol=_RTOL)


def _half(product: Any) -> Any:
    return op.Mul(product, 0.5) | op.Div(product, 2.0)


def _gated(gate: Any) -> Any:
    """Return the patterns of x * gate / 2 for each order of the factors."""
    return _half(op.Mul(var.x, gate)) | op.Mul(_half(var.x), gate) | op.Mul(var.x, _half(gate))


_ROOT, _SCALE, _CUBIC = math.sqrt(2), math.sqrt(2 / math.pi), 0.044715

# 1 + erf(x / sqrt(2)), also as 1 - erf(-x / sqrt(2)).
_erf_gate = op.Add(
    op.Erf(op.Div(var.x, _number(_ROOT)) | op.Mul(var.x, _number(1 / _ROOT))), 1.0
) | op.Sub(
    1.0, op.Erf(op.Mul(op.Neg(var.x), _number(1 / _ROOT)) | op.Mul(var.x, _number(-1 / _ROOT)))
)

_square = op.Mul(var.x, var.x) | op.Pow(var.x, 2.0)
_cube = op.Mul(_square, var.x) | op.Pow(var.x, 3.0)
_cubic_x = op.Mul(var.x, _number(_CUBIC))
# 0.044715 x^3
_cubic_term = (
    op.Mul(_cube, _number(_CUBIC))
    | op.Mul(op.Mul(_cubic_x, var.x), var.x)
    | op.Mul(op.Mul(_square, _number(_CUBIC)), var.x)
    | op.Mul(_cubic_x, _square)
)
# 1 + 0.044715 x^2, from the square or factor by factor.
_of_square = op.Add(op.Mul(_square, _number(_CUBIC)), 1.0)
_of_factors = op.Add(op.Mul(_cubic_x, var.x), 1.0)
_scaled_x = op.Mul(var.x, _number(_SCALE))

# sqrt(2 / pi) * (x + 0.044715 x^3)
_plain = op.Mul(op.Add(var.x, _cubic_term), _number(_SCALE))
_x_scaled_first = op.Mul(_scaled_x, _of_square)
_x_factored_out = op.Mul(op.Mul(var.x, _of_square), _number(_SCALE))
_by_factors = op.Mul(_scaled_x, _of_factors)
_scale_expanded = op.Mul(var.x, op.Add(op.Mul(_square, _number(_SCALE * _CUBIC)), _number(_SCALE)))
_inner = _plain | _x_scaled_first | _x_factored_out | _by_factors | _scale_expanded
_tanh = op.Tanh(_inner).bind("tanh")
_tanh_forms = _gated(op.Add(_tanh, 1.0)) | op.Mul(var.x, op.Add(op.Mul(_tanh, 0.5), 0.5))


@rewrite(
    _gated(_erf_gate) | _tanh_forms,
    opt_level=3,
    may_make=["com.microsoft::Gelu", "com.microsoft::FastGelu"],
    numerics="reassociating",
)
def fuse_gelu(graph: Graph, x: Value, tanh: Node | None, node: Node) -> Value | Skip:
    """Compute the Gaussian error linear unit by one operator, exact or with tanh as in the model.

    Above 1.7e38 the chain overflows, the operator does not. Before opset 20 the operator is
    onnxruntime's Gelu or FastGelu, for backends that have it.
    """
    if not x.has_rank_of(node.output):
        return Skip("a constant may give x more dims")
    if x.dtype == DataType.DOUBLE:
        return Skip("the operator's constants are float32")
    if graph.opset() < _FIRST_OPSET:
        refused = graph.refusal("Gelu" if tanh is None else "FastGelu", "com.microsoft")
        if refused is not None:
            return Skip("{}", refused)
        contrib = graph.op("com.microsoft")
        return contrib.Gelu(x) if tanh is None else contrib.FastGelu(x)
    return graph.op.Gelu(x, approximate="none" if tanh is None else "tanh")
