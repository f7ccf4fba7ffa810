"""f(f(x))  =>  f(x) for Abs, Ceil, Floor, Relu, Round, Sign;  x for Neg, Not, BitwiseNot"""

import functools
import operator
from typing import Final

from tiered import Graph, Node, Value, op, rewrite, var

_IDEMPOTENT: Final = ("Abs", "Ceil", "Floor", "Relu", "Round", "Sign")
_INVOLUTIONS: Final = ("BitwiseNot", "Neg", "Not")

_pattern = functools.reduce(
    operator.or_,
    (
        getattr(op, f)(getattr(op, f)(var.x).shared().bind("inner"))
        for f in (*_IDEMPOTENT, *_INVOLUTIONS)
    ),
)


@rewrite(_pattern, opt_level=2)
def eliminate_idempotent(graph: Graph, x: Value, inner: Node) -> Value:
    """Apply an idempotent operator once, and an operator that is its own inverse not at all."""
    return x if inner.op_type in _INVOLUTIONS else inner.output
