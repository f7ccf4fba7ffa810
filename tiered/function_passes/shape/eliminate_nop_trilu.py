"""Trilu(x)  =>  x, if no element is outside of the triangle;  Trilu(Trilu(x))  =>  Trilu(x)"""

from tiered import Constant, Graph, Skip, Value, const, op, rewrite, var


@rewrite(
    op.Trilu(var.x, upper=var.upper) | op.Trilu(var.x, const(name="k"), upper=var.upper),
    opt_level=2,
    required=("infer_shapes",),
)
def eliminate_nop_trilu(
    graph: Graph, x: Value, upper: int | None, k: Constant | None
) -> Value | Skip:
    """Drop a Trilu that sets no element to 0: of one row, of one column, or after the same one."""
    is_upper = upper != 0
    diagonal = 0 if k is None else int(k.const.item())
    producer = x.producer
    if producer is not None and producer.is_op("Trilu") and not producer.has_references:
        other = producer.input(1)
        if (producer.attr("upper") != 0) is is_upper and _number(other) == diagonal:
            return x
    rows, columns = x.dim(-2), x.dim(-1)
    if is_upper:
        if not isinstance(rows, int):
            return Skip("the number of rows is not known")
        return x if diagonal <= 1 - rows else Skip("it sets elements below the diagonal to 0")
    if not isinstance(columns, int):
        return Skip("the number of columns is not known")
    return x if diagonal >= columns - 1 else Skip("it sets elements above the diagonal to 0")


def _number(value: Value | None) -> int | None:
    """Return the diagonal of a Trilu; None if it is not known."""
    if value is None:
        return 0
    return None if value.const is None else int(value.const.item())
