"""f(f(x))  =>  f(x) for Abs, Relu, Sign and any two roundings;  x for Neg, Not, BitwiseNot"""

import functools
import itertools
import operator
from typing import Final

from tiered import Graph, Node, Value, op, rewrite, var
from tiered.graph.queries.op_traits import ROUNDINGS

_IDEMPOTENT: Final = ("Abs", "Relu", "Sign")
_INVOLUTIONS: Final = ("BitwiseNot", "Neg", "Not")

_pattern = functools.reduce(
    operator.or_,
    (
        getattr(op, f)(getattr(op, g)(var.x).shared().bind("inner"))
        for f, g in (
            *((f, f) for f in (*_IDEMPOTENT, *_INVOLUTIONS)),
            *itertools.product(ROUNDINGS, repeat=2),
        )
    ),
)


@rewrite(_pattern, opt_level=2)
def eliminate_idempotent(graph: Graph, x: Value, inner: Node) -> Value:
    """Apply an idempotent operator once, and an operator that is its own inverse not at all.

    A rounding of whole numbers changes none of them.
    """
    return x if inner.op_type in _INVOLUTIONS else inner.output
