"""Pow(x, 0.5)  =>  Sqrt(x), Pow(x, -1)  =>  1 / x, Pow(x, 4)  =>  (x * x) * (x * x)"""

from tiered import Constant, DataType, Graph, Skip, Value, broadcasts_into, const, op, rewrite, var
from tiered.rewriter.idioms.signs import is_never_negative


@rewrite(
    op.Pow(var.x, const(name="exponent")),
    opt_level=4,
    followed_by=("eliminate_cast_before_shape",),
    numerics="approximate",
)
def replace_pow_with_roots(graph: Graph, x: Value, exponent: Constant) -> Value | Skip:
    """Replace powers by roots, reciprocals and squares; off by one or two ulps.

    For -Inf, Sqrt returns NaN, but Pow Inf: roots are only of what is never negative.
    """
    if exponent.const.size != 1 or not broadcasts_into(exponent.tensor.shape, x.shape):
        return Skip("the exponent is not a scalar")
    if x.dtype not in (DataType.FLOAT16, DataType.FLOAT, DataType.DOUBLE):
        return Skip("the float dtype of x may be unsupported")
    power, ops = float(exponent.const.item()), graph.op
    # 1 / Sqrt(-0.0) is -Inf, but Pow(-0.0, -0.5) Inf.
    if abs(power) == 0.5 and not is_never_negative(x, no_minus_zero=power == -0.5):
        return Skip("x may be -Inf or -0.0")
    result: Value
    if power == 0.5:
        result = ops.Sqrt(x)
    elif power == -1:
        result = ops.Reciprocal(x)
    elif power == -0.5:
        result = ops.Reciprocal(ops.Sqrt(x))
    elif power == 4:
        square = ops.Mul(x, x)
        result = ops.Mul(square, square)
    else:
        return Skip("the exponent is {}", power)
    return result
