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
    """Return x * gate / 2, whatever is multiplied first."""
    return _half(op.Mul(var.x, gate)) | op.Mul(_half(var.x), gate) | op.Mul(var.x, _half(gate))


_ROOT, _SCALE, _CUBIC = math.sqrt(2), math.sqrt(2 / math.pi), 0.044715

# 1 + erf(x / sqrt(2)), also as the complement of the other side.
_erf_gate = op.Add(
    op.Erf(op.Div(var.x, _number(_ROOT)) | op.Mul(var.x, _number(1 / _ROOT))), 1.0
) | op.Sub(
    1.0, op.Erf(op.Mul(op.Neg(var.x), _number(1 / _ROOT)) | op.Mul(var.x, _number(-1 / _ROOT)))
)

_square = op.Mul(var.x, var.x) | op.Pow(var.x, 2.0)
_cube = op.Mul(op.Mul(var.x, var.x) | op.Pow(var.x, 2.0), var.x) | op.Pow(var.x, 3.0)
# x + 0.044715 x^3, with x in front of it all or not, and with the scale multiplied out.
_inner = (
    op.Mul(
        op.Add(
            var.x,
            op.Mul(_cube, _number(_CUBIC))
            | op.Mul(op.Mul(op.Mul(var.x, _number(_CUBIC)), var.x), var.x)
            | op.Mul(op.Mul(_square, _number(_CUBIC)), var.x)
            | op.Mul(op.Mul(var.x, _number(_CUBIC)), _square),
        ),
        _number(_SCALE),
    )
    | op.Mul(op.Mul(var.x, _number(_SCALE)), op.Add(op.Mul(_square, _number(_CUBIC)), 1.0))
    | op.Mul(
        op.Mul(var.x, op.Add(op.Mul(_square, _number(_CUBIC)), 1.0)), _number(_SCALE)
    )
    | op.Mul(
        op.Mul(var.x, _number(_SCALE)),
        op.Add(op.Mul(op.Mul(var.x, _number(_CUBIC)), var.x), 1.0),
    )
    | op.Mul(
        var.x, op.Add(op.Mul(_square, _number(_SCALE * _CUBIC)), _number(_SCALE))
    )
)
_tanh = op.Tanh(_inner).bind("tanh")
_tanh_forms = _gated(op.Add(_tanh, 1.0)) | op.Mul(var.x, op.Add(op.Mul(_tanh, 0.5), 0.5))


@rewrite(
    _gated(_erf_gate) | _tanh_forms,
    opt_level=3,
    offers=["com.microsoft::Gelu", "com.microsoft::FastGelu"],
    numerics="reassociating",
)
def fuse_gelu(graph: Graph, x: Value, tanh: Node | None, node: Node) -> Value | Skip:
    """Compute the Gaussian error linear unit at once, in the form that the model has.

    Where the chain overflows, above 1.7e38, the operator stays finite. Before opset 20 it is one of
    onnxruntime's own, for the backends that have it.
    """
    if not x.has_rank_of(node.output):
        return Skip("a constant may give x more dims")
    if x.dtype == DataType.DOUBLE:
        return Skip("for doubles the operator has constants of 32 bits")
    if graph.opset() < _FIRST_OPSET:
        contrib = graph.op("com.microsoft")
        return contrib.Gelu(x) if tanh is None else contrib.FastGelu(x)
    return graph.op.Gelu(x, approximate="none" if tanh is None else "tanh")
