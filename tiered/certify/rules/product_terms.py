"""Sums of products: an element depends on its row and column alone, by an axiom of the runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tiered.certify.domains.terms import Array, Seed, listed, mix, ordered, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.values import Misfit, Unproved, broadcast_of, numpy_dtype
from tiered.certify.rules.kernel_windows import window_of

Rule = Callable[[EvaluatedCall], Results]


def dots(seed: Seed, rows: Array, columns: Array) -> Array:
    """Return the terms of the products of rows [..., m, k] with columns [..., k, n]."""
    seed_ = seed_of("products")
    left = listed(seed_, rows)[..., :, None]
    right = listed(seed_, np.swapaxes(columns, -1, -2))[..., None, :]
    return mix(seed, *ordered(left, right))


def matmul(call: EvaluatedCall) -> Results:
    x, y = call.operand(0), call.operand(1)
    if x.rank == 0 or y.rank == 0:
        raise Unproved("MatMul of a scalar")
    needs_runtime(call, "one-product-for-each-element")
    a = x.shape if x.rank > 1 else (1, *x.shape)
    b = y.shape if y.rank > 1 else (*y.shape, 1)
    if a[-1] != b[-2]:
        repairs = [(a[-1], b[-2]), (b[-2], a[-1])]
        raise Misfit("MatMul of shapes that do not fit", repairs)
    shape = [*broadcast_of([a[:-2], b[:-2]], "operands of MatMul"), a[-2], b[-1]]
    kept = shape[: -2 if x.rank == 1 and y.rank == 1 else None]
    if x.rank == 1 and y.rank > 1:
        kept = [*shape[:-2], shape[-1]]
    if y.rank == 1 and x.rank > 1:
        kept = shape[:-1]
    seed = seed_of("dot", x.dtype)
    return [
        call.made(
            x.dtype, kept, lambda: dots(seed, x.terms.reshape(a), y.terms.reshape(b)).reshape(kept)
        )
    ]


def gemm(call: EvaluatedCall) -> Results:
    x, y = call.operand(0), call.operand(1)
    needs_runtime(call, "one-product-for-each-element")
    scales = float(call.get("alpha", 1.0)), float(call.get("beta", 1.0))
    turned = [bool(call.get(name, 0)) for name in ("transA", "transB")]
    shapes = [t.shape[::-1] if turn else t.shape for t, turn in zip((x, y), turned, strict=True)]
    if x.rank != 2 or y.rank != 2 or shapes[0][1] != shapes[1][0]:
        raise Unproved("Gemm of shapes that do not fit")
    shape = (shapes[0][0], shapes[1][1])
    bias = call.operand(2) if call.has(2) else None

    def make() -> Array:
        a, b = (t.terms.T if turn else t.terms for t, turn in zip((x, y), turned, strict=True))
        made = dots(seed_of("dot", x.dtype), a, b)
        if bias is None and scales[0] == 1:
            return made
        seed = seed_of("Gemm", x.dtype, *scales, bias is None)
        return np.broadcast_to(mix(seed, made, *([] if bias is None else [bias.terms])), shape)

    return [call.made(x.dtype, shape, make)]


def conv(call: EvaluatedCall) -> Results:
    x, w = call.operand(0), call.operand(1)
    needs_runtime(call, "one-product-for-each-element")
    group = call.get("group", 1)
    windows = window_of(call, x.shape, w.shape[2:])
    zero = np.zeros((), numpy_dtype(x.dtype))
    n, m = x.shape[0], w.shape[0]
    shape = (n, m, *windows.counts)
    bias = call.operand(2) if call.has(2) else None
    if x.shape[1] != w.shape[1] * group or m % group:
        raise Unproved("Conv of shapes that do not fit")

    def make() -> Array:
        left = windows.rows(seed_of("products"), x.terms, call.domain.constant(zero), group)
        right = listed(seed_of("products"), w.terms.reshape(1, group, m // group, -1))
        made = mix(seed_of("conv", x.dtype), right[..., None], left[:, :, None])
        made = made.reshape(n, m, -1)
        if bias is not None:
            made = mix(seed_of("conv bias", x.dtype), made, bias.terms[:, None])
        return made.reshape(shape)

    return [call.made(x.dtype, shape, make)]


def needs_runtime(call: EvaluatedCall, axiom: str) -> None:
    """Note an axiom of the runtime.

    Raises:
        NoRule: none may be used; products of known operands are numbers that it computes.
    """
    if not call.scope.trusts_runtime or all(x is None or x.known is not None for x in call.inputs):
        raise NoRule
    call.axioms.add(axiom)


PRODUCTS: Final[dict[str, Rule]] = {"Conv": conv, "Gemm": gemm, "MatMul": matmul}
