"""MatMul, Gemm and Conv over the reals: scales and offsets of rows meet columns of numbers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tiered.certify.domains.affine_elements import Affine, by_channel, finite
from tiered.certify.domains.bits import RULES as ON_BITS
from tiered.certify.domains.element_arrays import affine, atoms_of, of_atoms
from tiered.certify.domains.terms import Array, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.forms import SumsToOne
from tiered.certify.evaluation.values import (
    CheckedTensor,
    Misfit,
    Unproved,
    broadcast_of,
    class_of,
    numpy_dtype,
)
from tiered.certify.reals.lifting import Rule, domain_of, lifted
from tiered.certify.reals.real_arithmetic import total
from tiered.certify.rules.kernel_windows import KernelWindows, window_of


def _products(
    call: EvaluatedCall, x: CheckedTensor, y: CheckedTensor, a: tuple[int, ...], b: tuple[int, ...]
) -> Array:
    """Return the elements of a product of stacks of matrices."""
    domain = domain_of(call)
    if y.known is not None:
        return domain.dots(x.terms.reshape(a), y.terms.reshape(b), y.known.reshape(b))
    if x.known is not None:
        sides = (y.terms.reshape(b), x.terms.reshape(a), x.known.reshape(a))
        left, right, numbers = (np.swapaxes(side, -1, -2) for side in sides)
        return np.swapaxes(domain.dots(left, right, numbers), -1, -2)
    return domain.dots(x.terms.reshape(a), y.terms.reshape(b), None)


def matmul(call: EvaluatedCall) -> Results:
    x, y = call.operand(0), call.operand(1)
    if class_of(x.dtype) != "float" or x.rank < 1 or y.rank < 1:
        raise NoRule
    a = x.shape if x.rank > 1 else (1, *x.shape)
    b = y.shape if y.rank > 1 else (*y.shape, 1)
    if a[-1] != b[-2]:
        repairs = [(a[-1], b[-2]), (b[-2], a[-1])]
        raise Misfit("MatMul of shapes that do not fit", repairs)
    if x.rank > 1 and y.rank > 1 and x.known is None and y.known is None:
        return [_of_unknowns(call, x, y)]
    shape = [*broadcast_of([a[:-2], b[:-2]], "operands of MatMul")]
    shape += [a[-2]] if x.rank > 1 else []
    shape += [b[-1]] if y.rank > 1 else []
    return [call.made(x.dtype, shape, lambda: _products(call, x, y, a, b).reshape(shape))]


def _of_unknowns(call: EvaluatedCall, x: CheckedTensor, y: CheckedTensor) -> CheckedTensor:
    """Return x y; what constant numbers in y add to it is a summand of its own.

    With b the same in all columns, x (y + b) is x y + x b. With one number b for each column, and
    rows of x that sum to 1, x (y + b) is x y + b.
    """
    domain = domain_of(call)
    outer = broadcast_of([x.shape[:-2], y.shape[:-2]], "operands of MatMul")
    shape, rows = (*outer, x.shape[-2], y.shape[-1]), (*outer, x.shape[-2], 1)

    @lru_cache(maxsize=1)
    def parts() -> tuple[Array, Array]:
        columns = y.terms
        added = domain.constant(np.zeros(rows))
        if not columns["o"].any():
            return domain.dots(x.terms, columns, None), added
        bare = affine(columns["a"], columns["b"], columns["s"], 0.0)
        offsets = columns["o"]
        if isinstance(x.form, SumsToOne) and (offsets == offsets[..., :1, :]).all():
            numbers = domain.constant(offsets[..., :1, :])
            return domain.add(domain.dots(x.terms, bare, None), numbers), added
        if (offsets == offsets[..., :1]).all():
            made = domain.dots(x.terms, bare, offsets[..., :1])
            return domain.dots(x.terms, bare, None), np.broadcast_to(made, rows)
        return domain.dots(x.terms, columns, None), added

    product = call.made(x.dtype, shape, lambda: np.broadcast_to(parts()[0], shape))
    addend = call.made(x.dtype, rows, lambda: parts()[1])
    (made,) = total(call, [product, addend])
    assert made is not None
    return made


def gemm(call: EvaluatedCall) -> Results:
    x, y, domain = call.operand(0), call.operand(1), domain_of(call)
    if class_of(x.dtype) != "float":
        raise NoRule
    if x.rank != 2 or y.rank != 2:
        raise Unproved("Gemm of operands that are no matrices")
    x, y = (
        call.moved(each, np.transpose, each.shape[::-1]) if call.get(name, 0) else each
        for each, name in ((x, "transA"), (y, "transB"))
    )
    shape = (x.shape[0], y.shape[1])
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    bias = call.operand(2) if call.has(2) else None

    def make() -> Array:
        made = domain.scaled(_products(call, x, y, x.shape, y.shape), alpha)
        return made if bias is None else domain.add(made, domain.scaled(bias.terms, beta))

    return [call.made(x.dtype, shape, make)]


def conv(call: EvaluatedCall) -> Results:
    x, w, domain = call.operand(0), call.operand(1), domain_of(call)
    if x.rank > 2 and x.shape[1] == 0:
        return _with_bias(call, _of_no_channels)
    if class_of(x.dtype) != "float" or w.known is None:
        return _with_bias(call, lifted(ON_BITS["Conv"]))
    group, n, m = call.get("group", 1), x.shape[0], w.shape[0]
    windows = window_of(call, x.shape, w.shape[2:])
    shape = (n, m, *windows.counts)
    numbers = w.numbers("the weight of Conv").astype(np.float64)
    weights = finite(numbers.reshape(group, m // group, -1))
    bias = call.operand(2) if call.has(2) else None

    def make() -> Array:
        made = _windows_of(domain, windows, x.terms, weights).reshape(n, m, -1)
        if bias is not None:
            made = domain.add(made, bias.terms[:, None])
        return made.reshape(shape)

    return [call.made(x.dtype, shape, make)]


def _of_no_channels(call: EvaluatedCall) -> Results:
    x, w = call.operand(0), call.operand(1)
    windows = window_of(call, (x.shape[0], 1, *x.shape[2:]), w.shape[2:])
    shape = (x.shape[0], w.shape[0], *windows.counts)
    return [call.constant(np.zeros(shape, numpy_dtype(x.dtype)), x.dtype)]


def _with_bias(call: EvaluatedCall, rule: Rule) -> Results:
    """Return the result of a rule of Conv without its bias, plus the bias."""
    if not call.has(2) or class_of(call.operand(0).dtype) != "float":
        return rule(call)
    bare = EvaluatedCall(call.node, call.inputs[:2], call.opset, call.domain, call.scope)
    bare.axioms = call.axioms
    (made,) = rule(bare)
    assert made is not None
    bias, domain, product = call.operand(2), domain_of(call), made
    shape = (-1, *[1] * (product.rank - 2))
    return [
        call.made(
            product.dtype,
            product.shape,
            lambda: domain.add(product.terms, bias.terms.reshape(shape)),
        )
    ]


def _windows_of(domain: Affine, windows: KernelWindows, x: Array, weights: Array) -> Array:
    """Return the products of windows and weights, [n, group, outputs, places].

    Args:
        domain: the domain.
        windows: where the kernel reads.
        x: elements [n, channels, *sizes].
        weights: numbers [group, outputs, channels / group * kernel].
    """
    group, kernel = len(weights), windows.places.shape[1]
    scale, offset = by_channel(x, has_pads=bool((windows.places < 0).any()))
    zero = domain.constant(np.zeros(()))
    if scale is None:
        x, zero, scale = of_atoms(domain.plain(x)), domain.plain(zero), np.ones(x.shape[1])
        offset = np.zeros(x.shape[1])
    assert offset is not None
    rows = windows.rows(seed_of("row"), atoms_of(x), atoms_of(zero), group)
    scales, offsets = (np.repeat(each, kernel).reshape(group, 1, -1) for each in (scale, offset))
    columns = np.moveaxis(scales * weights, -1, 0)[..., None]
    return domain.products(rows[:, :, None], columns, (offsets * weights).sum(-1)[..., None])
