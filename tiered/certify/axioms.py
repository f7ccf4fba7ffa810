"""The axioms: what the checker takes for true of numbers. Each has a test in `tests/certify`.

Those of IEEE 754 are tested for all values of float16, or for all pairs of a small format. Those of
a runtime are no part of the standard: a certificate that used one names it, and
`docs/certificates.md` has the measurement behind it.
"""

from __future__ import annotations

from typing import Final

IEEE: Final = {
    "add-commutes": "x + y and y + x are the same bits",
    "mul-commutes": "x * y and y * x are the same bits",
    "sub-adds-negative": "x - y and x + (-y) are the same bits",
    "add-negative-zero": "x + (-0.0) is x",
    "mul-one": "x * 1 is x, and x * -1 is -x",
    "sign-of-product": "(-x) * y and (-x) / y are -(x * y) and -(x / y)",
    "neg-neg": "-(-x) is x",
    "div-power-of-two": "x / y and x * (1 / y) are the same bits if 1 / y is exact",
    "cast-wider": "a Cast to a dtype with all values keeps the number, and one back restores it",
    "less-is-greater": "x > y is y < x, and x >= y is y <= x",
    "equal-commutes": "x == y and y == x are the same",
    "logic-commutes": "And, Or and Xor do not depend on the order of operands",
    "less-or-equal": "x <= y is x < y or x == y",
    "not-not": "Not(Not(x)) is x",
    "where-same": "Where(c, x, x) is x",
    "idempotent": "Abs, Ceil, Floor, Round and Sign of their own results are these",
    "extremum-of-integers": "Max and Min of integers do not depend on the order",
    "sum-of-integers": "sums and products of integers, which wrap, are the same in any order",
}
"""Axioms that hold on every machine that follows IEEE 754, and laws of integers and bools."""

RUNTIME: Final = {
    "constants-by-runtime": "what has constant operands alone was computed by onnxruntime",
    "no-zeros-meet": "Max and Min of floats do not depend on the order where no zeros are equal",
    "clip-keeps-equals": "Clip, Relu, Max, Min by numbers keep NaN and what is equal to a bound; "
    "an absent bound of Clip is the furthest finite number",
    "quantized-again": "DequantizeLinear and QuantizeLinear round as their definitions in float32",
    "pow-is-product": "x to the power of 1, 2 or 3 is x, x * x, (x * x) * x",
    "zero-sign-unread": "Abs, Cos, Cosh, Exp, HardSigmoid, Sigmoid and Softplus are the same of "
    "-0.0 and 0.0",
    "one-product-for-each-element": "an element of MatMul, Gemm or Conv depends on its row of the "
    "first operand and its column of the second alone, not on where it is",
    "one-list-for-each-element": "an element of a reduction, pooling or normalization depends on "
    "the list of elements that it reads alone, not on where they are",
}
"""Axioms that a runtime grants: they are measured, not proved."""

STANDARD: Final = {
    "definition": "an operator computes what its function body in the standard does",
    "finite": "all numbers are finite: infinite constants count as unknown numbers",
}
"""Readings of the standard over the real numbers."""

AXIOMS: Final = {**IEEE, **RUNTIME, **STANDARD}
