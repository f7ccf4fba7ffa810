"""Pow(x, 2)  =>  x * x, Pow(x, 3)  =>  x * x * x, Pow(x, 1)  =>  x"""

from typing import Final

from tiered import (
    Constant,
    DataType,
    Graph,
    Node,
    Skip,
    Value,
    broadcasts_into,
    const,
    op,
    rewrite,
    var,
)

_ROUNDED_TWICE: Final = (DataType.FLOAT16, DataType.BFLOAT16)


@rewrite(op.Pow(var.x, const(name="exponent")), opt_level=2, legalizes=True)
def replace_pow(
    graph: Graph, node: Node, x: Value, exponent: Constant, *, cubes: bool = True
) -> Value | Skip:
    """Multiply if the products have the same bits.

    A square with a mean as consumer stays: exporters write normalisations this way, and runtimes
    match it for their fused kernels.

    Args:
        cubes: also replace Pow(x, 3) by two Muls.
    """
    if exponent.const.size != 1:
        return Skip("the exponent is not one number")
    if not broadcasts_into(exponent.tensor.shape, x.shape):
        return Skip("the exponent may give x more dims")
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    power = float(exponent.const.item())
    if power not in (1, 2, 3) or (power == 3 and not cubes):
        return Skip("the exponent is {}", power)
    if power == 1 and x.dtype == DataType.INT64:
        return Skip("Pow rounds 64-bit integers to floats")
    if power == 1:
        return x
    readers = {user.op_type for user, _ in node.output.users}
    if power == 2 and readers == {"ReduceMean"} and not node.output.is_graph_output:
        return Skip("runtimes recognise its mean as a normalisation")
    if not isinstance(x.dim(-1), int) or x.dim(-1) == 1:
        return Skip("Pow is approximate for a last dim 1")
    if power == 3 and x.dtype in _ROUNDED_TWICE:
        return Skip("two products of 16 bits are rounded twice")
    square: Value = graph.op.Mul(x, x)
    return square if power == 2 else graph.op.Mul(square, x)
