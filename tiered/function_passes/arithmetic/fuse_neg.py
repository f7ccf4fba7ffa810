"""Neg(x * c)  =>  x * -c,  Add(y, Neg(x))  =>  Sub(y, x),  Neg(x) * Neg(y)  =>  x * y, ..."""

from typing import Final

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Value, function_pass
from tiered.graph.queries.op_traits import ARITHMETIC

_MAY_NEGATE: Final = ("Div", "Mul", "Neg", "Sub")
_OLDEST: Final = 7
"""Before this opset, operands broadcast only if an attribute is set."""

_MOST: Final = 1024
"""Larger constants are left alone: others may read them, and would keep them alive."""


@function_pass(opt_level=2, matches=("Neg", *ARITHMETIC))
def fuse_neg(graph: Graph, ctx: PassContext) -> None:
    """Take a minus into the constant or the operator beside it: the sign of a product is exact.

    Mul(x, -1), Div(x, -1) and Sub(-0.0, x) are minus x too; the minus of a minus is x.
    """
    if graph.opset() < _OLDEST:
        return
    for node in _near_a_minus(graph):
        if not node.is_live or node.output.dtype is None:
            continue
        found = _fused(graph, node)
        if isinstance(found, Skip):
            ctx.skip(node, found)
        elif found is not None:
            law, new_op, operands = found
            with graph.rewrite(law, node):
                made = graph.op.named(new_op)(*operands) if new_op else operands[0]
                assert isinstance(made, Value)
                graph.replace(node, (made,))


def _near_a_minus(graph: Graph) -> list[Node]:
    """Return the nodes that compute minus something, and those that read it: most do neither."""
    found: dict[Node, None] = {}
    for op_type in _MAY_NEGATE:
        for node in graph.nodes_of(op_type):
            if _operand_of_neg(node) is not None:
                found |= dict.fromkeys((node, *node.output.readers))
    order = ("Neg", *ARITHMETIC)
    known = [node for node in found if node.op_type in order and not node.domain]
    return sorted(known, key=lambda node: order.index(node.op_type))


_Fused = tuple[str, str, tuple[Value | np.ndarray[tuple[int, ...], np.dtype[np.generic]], ...]]


def _fused(graph: Graph, node: Node) -> _Fused | Skip | None:
    """Return the law, and the operator and the operands that replace a node; "" for none."""
    inner = _operand_of_neg(node)
    if inner is not None:
        x = _negated(inner)
        if x is not None:
            return "Neg(Neg(x)) => x", "", (x,)
        if node.op_type == "Sub":
            return "Sub(-0.0, x) => Neg(x)", "Neg", (inner,)
        return _into_producer(node, inner)
    first, second = node.given(0), node.given(1)
    x, y = _negated(first), _negated(second)
    if node.op_type in ("Mul", "Div"):
        return _product(node, (first, second), (x, y))
    if y is not None:
        other = "Sub" if node.op_type == "Add" else "Add"
        return f"{node.op_type}(x, Neg(y)) => {other}(x, y)", other, (first, y)
    if x is None:
        return None
    if node.op_type == "Add":
        return "Add(Neg(x), y) => Sub(y, x)", "Sub", (second, x)
    flipped = _flipped(second)
    if flipped is None or not flipped.all():
        # Of zeros, `eliminate_nop_arithmetic` drops those that change nothing.
        return None
    return "Sub(Neg(x), c) => Sub(-c, x)", "Sub", (flipped, x)


def _product(
    node: Node, operands: tuple[Value, Value], negated: tuple[Value | None, Value | None]
) -> _Fused | Skip | None:
    """Return a product or quotient without the minuses of its operands."""
    law = f"{node.op_type} of Neg(x) => {node.op_type} without Neg"
    if negated == (None, None):
        return None
    if node.op_type == "Div" and not node.output.is_float:
        return Skip("a quotient of integers may overflow")
    if negated[0] is not None and negated[1] is not None:
        return law, node.op_type, (negated[0], negated[1])
    at = 0 if negated[0] is not None else 1
    bare, other = negated[at], operands[1 - at]
    assert bare is not None
    flipped = _flipped(other)
    if flipped is None:
        return Skip("the other operand is no small constant")
    return law, node.op_type, (bare, flipped) if at == 0 else (flipped, bare)


def _into_producer(node: Node, inner: Value) -> _Fused | Skip | None:
    """Return a product or quotient whose constant has the minus of a consumer."""
    producer = inner.producer
    if producer is None or producer.domain or producer.op_type not in ("Mul", "Div"):
        return None
    law = f"Neg({producer.op_type}(x, c)) => {producer.op_type}(x, -c)"
    first, second = producer.given(0), producer.given(1)
    if not inner.is_only_read_by(node):
        return Skip("the product has other consumers")
    if producer.op_type == "Div" and not node.output.is_float:
        return Skip("the negative of a quotient of integers may overflow")
    for at, value in enumerate((first, second)):
        flipped = _flipped(value)
        if flipped is not None:
            return law, producer.op_type, (flipped, second) if at == 0 else (first, flipped)
    return Skip("no operand of the product is a small constant")


def _flipped(value: Value) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None:
    """Return the negative of a constant; None for a large one, and for no constant."""
    tensor = value.tensor
    array = None if tensor is None or tensor.size > _MOST else value.const
    return None if array is None else np.asarray(np.negative(array))


def _negated(value: Value) -> Value | None:
    """Return what a value is minus of."""
    node = value.producer
    return None if node is None else _operand_of_neg(node)


def _operand_of_neg(node: Node) -> Value | None:
    """Return the operand of a node that computes minus it."""
    if node.domain or node.op_type not in _MAY_NEGATE:
        return None
    first = node.given(0)
    if node.op_type == "Neg":
        return first
    second = node.given(1)
    if node.output.shape is None:
        return None
    if node.op_type in ("Mul", "Div") and _is(second, -1) and first.shape == node.output.shape:
        return first
    if node.op_type == "Mul" and _is(first, -1) and second.shape == node.output.shape:
        return second
    is_minus_zero = node.op_type == "Sub" and _is(first, -0.0)
    return second if is_minus_zero and second.shape == node.output.shape else None


def _is(value: Value, number: float) -> bool:
    """Return whether a constant is one number, of that sign if it is zero."""
    array = value.const
    if array is None or array.size != 1 or array.dtype.kind not in "if":
        return False
    same_sign = number != 0 or array.dtype.kind == "i" or bool(np.signbit(array).all())
    return bool((array == number).all()) and same_sign
