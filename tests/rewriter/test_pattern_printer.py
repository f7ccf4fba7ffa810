"""A pattern prints as it was written, and its text evaluates to an equal pattern."""

from collections.abc import Sequence

import numpy as np
import pytest

from tiered.rewriter import (
    Pattern,
    chain,
    const,
    op,
    opt,
    rest,
    var,
)

shared = op.Relu(var.x)
two_outputs = op.Split(var.x, axis=var.axis, num_outputs=2).bind("cut")
is_small = np.isscalar

WRITTEN: Sequence[Pattern] = (
    op.Reshape(op.Reshape(var.x, ...), var.shape),
    op.Conv(var.x, const(name="w"), opt.bias, group=1, attrs=...).shared().bind("conv"),
    op.Mul(var.x, 0.5) | op.Div(var.x, 2),
    op.Mul(var.x, const(2**0.5, rtol=1e-6)),
    op.Mul(var.x, const([1, 2], name="k")),
    op.Mul(var.x, const(np.array([1, 2], np.float16))),
    op.Mul(var.x, const(is_small)),
    op.Concat(rest.inputs, axis=-1),
    op.Transpose(var.x, perm=[1, 0]),
    op.Cast(var.x, to=..., saturate=1),
    op.Conv(var.x, ..., attrs=...),
    op.Cast(var.x, attrs="ignored"),
    op("com.microsoft").Gelu(var.x),
    op.Add(shared, op.Neg(shared)),
    op.Add(two_outputs.out(1), two_outputs),
    op.Relu(chain(op.Cast | op("d").Twist, var.x).shared().bind("links")),
    op.Relu(var.x.having(rank=(1, 2), dtype=1, shape=(..., None, "N"))),
    op.Relu(var.x).where(callable),
    op.Relu(var.x) & op.Neg(var.x),
    (op.Relu(var.x) & op.Neg(var.x)) | op.Abs(var.x),
)


@pytest.mark.parametrize("pattern", WRITTEN, ids=str)
def test_a_pattern_prints_as_it_was_written(pattern: Pattern) -> None:
    again = eval(str(pattern).replace("isscalar", "is_small"))
    assert again == pattern
    assert str(again) == str(pattern)


def test_what_is_shared_is_written_once() -> None:
    assert str(op.Mul(shared, shared)) == "op.Mul((h := op.Relu(var.x)), h)"
    taken = op.Add(var.h, var.h2)
    assert str(op.Mul(taken, taken)) == "op.Mul((h3 := op.Add(var.h, var.h2)), h3)"
    assert str(op.Add(two_outputs.out(1), two_outputs)) == (
        "op.Add((cut := op.Split(var.x, axis=var.axis, num_outputs=2).bind('cut')).out(1), cut)"
    )
