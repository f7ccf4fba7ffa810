"""Gradients of matrix products and Einsum."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

import numpy as np

from tiered.extensions.gradients.broadcast import reduced_to
from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, gradient_rule

_MATRIX = 2


def _swapped(x: Expr) -> Expr:
    """Return a stack of matrices, each transposed."""
    rank = x.rank
    return x.transpose([*range(rank - 2), rank - 1, rank - 2])


@gradient_rule("MatMul")
def matmul(step: Step) -> Sequence[Expr | None]:
    """dA = G B^T, dB = A^T G, summed over the stacks that were repeated"""
    a, b, g = step.x, step.operand(1), step.g
    # A vector is a matrix with one row (a) or one column (b).
    rows, columns = a.rank == 1, b.rank == 1
    matrix_a, matrix_b = (a.unsqueeze([0]) if rows else a), (b.unsqueeze([1]) if columns else b)
    if columns:
        g = g.unsqueeze([-1])
    if rows:
        g = g.unsqueeze([-2])
    da = db = None
    if step.wants(0):
        da = reduced_to(g @ _swapped(matrix_b), matrix_a)
        da = da.squeeze([0]) if rows else da
    if step.wants(1):
        if matrix_b.rank == _MATRIX and matrix_a.rank > _MATRIX:
            # One product of long matrices instead of a stack of products and its sum.
            db = _swapped(_rows(matrix_a)) @ _rows(g)
        else:
            db = reduced_to(_swapped(matrix_a) @ g, matrix_b)
        db = db.squeeze([1]) if columns else db
    return da, db


def _rows(x: Expr) -> Expr:
    """Return a stack of matrices as one matrix of all rows."""
    last = x.value.dim(-1)
    if isinstance(last, int) and last:
        return x.reshape([-1, last])
    if last != 0:
        return x.reshape(x.call("Concat", x.integers([-1]), x.dim(-1), axis=0))
    sizes = x.call("ReduceProd", x.sizes(0, -1), keepdims=1)
    shape = x.call("Concat", sizes, x.integers([0]), axis=0)
    return x.call("Reshape", x, shape, allowzero=1)


@gradient_rule("Gemm")
def gemm(step: Step) -> Sequence[Expr | None]:
    """dA = alpha G B^T, dB = alpha A^T G, dC = beta G, with each transposed as A and B are"""
    a, b, g = step.x, step.operand(1), step.g
    node = step.node
    alpha, beta = float(node.attr("alpha")), float(node.attr("beta"))
    trans_a, trans_b = bool(node.attr("transA")), bool(node.attr("transB"))

    def product(left: Expr, right: Expr, swap_left: bool, swap_right: bool) -> Expr:
        attributes = {"transA": int(swap_left), "transB": int(swap_right)}
        return left.call("Gemm", left, right, alpha=alpha, **attributes)

    da = db = dc = None
    if step.wants(0):
        da = product(b, g, trans_b, True) if trans_a else product(g, b, False, not trans_b)
    if step.wants(1):
        db = product(g, a, True, trans_a) if trans_b else product(a, g, not trans_a, False)
    if step.wants(2):
        scaled = g if beta == 1 else g * beta
        dc = reduced_to(scaled, step.operand(2))
    return da, db, dc


@gradient_rule("Det")
def det(step: Step) -> Sequence[Expr | None]:
    """dx = g times the cofactors of x: determinants too, so that it holds where y = 0

    There are n^2 cofactors of n - 1 rows each: the rule is for small matrices.
    """
    x, size = step.x, step.x.value.dim(-1)
    if not isinstance(size, int):
        raise step.error("the size of its matrix is unknown")
    outer = step.g.unsqueeze([x.rank - 2, x.rank - 1])
    if size <= 1:
        return (outer.call("Expand", outer, x.shape()),)
    others = np.array([[at for at in range(size) if at != left] for left in range(size)], np.int64)
    # [..., row left out, column left out, rows, columns]
    minors = x.call("Gather", x, others, axis=x.rank - 2)
    minors = minors.call("Gather", minors, others, axis=x.rank)
    last = x.rank - 2
    minors = minors.transpose([*range(last), last, last + 2, last + 1, last + 3])
    signs = (-1.0) ** np.add.outer(np.arange(size), np.arange(size))
    cofactors = x.call("Mul", minors.call("Det", minors), signs.astype(x.dtype.numpy))
    return (outer * cofactors,)


@gradient_rule("Einsum")
def einsum(step: Step) -> Sequence[Expr | None]:
    """dx = the Einsum of g and the other operands, with the labels of x

    Labels that only x has are summed in y: g is repeated along them. A label that an operand has
    twice is that of a diagonal: the second becomes a label of its own, times an identity matrix.
    """
    terms, result = _labels(step)
    operands = [step.operand(at) for at in range(len(terms))]
    _apart(step, terms, operands)
    found: list[Expr | None] = []
    for at, own in enumerate(terms[: len(step.operands)]):
        if not step.wants(at):
            found.append(None)
            continue
        others = [place for place in range(len(terms)) if place != at]
        there = set(result).union(*(terms[place] for place in others))
        kept = "".join(label for label in own if label in there)
        equation = ",".join([result, *(terms[place] for place in others)]) + "->" + kept
        factors = [step.g, *(operands[place] for place in others)]
        part = step.g.call("Einsum", *factors, equation=equation)
        x = operands[at]
        lacking = [place for place, label in enumerate(own) if label not in there]
        part = part.unsqueeze(lacking)
        found.append(part.call("Expand", part, x.shape()) if lacking else part)
    return found


def _apart(step: Step, terms: list[str], operands: list[Expr]) -> None:
    """Append an identity matrix for each label that an operand has twice.

    Raises:
        NoGradient: there are more labels than letters.
    """
    free = [each for each in ascii_letters if not any(each in term for term in terms)]
    for at in range(len(terms)):
        x = operands[at]
        for place, label in enumerate(terms[at]):
            if label not in terms[at][:place]:
                continue
            if not free:
                raise step.error("its equation has too many labels")
            other = free.pop()
            terms[at] = terms[at][:place] + other + terms[at][place + 1 :]
            square = x.call("Concat", x.dim(place), x.dim(place), axis=0).full(0, x.dtype)
            operands.append(square.call("EyeLike", square))
            terms.append(label + other)


def _labels(step: Step) -> tuple[list[str], str]:
    """Return the labels of each operand and of the output, with letters for an ellipsis.

    Raises:
        NoGradient: a dim of size 1 may be broadcast, or there are more labels than letters.
    """
    equation = str(step.node.attr("equation")).replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if not arrow:
        once = [each for each in sorted(set(left) - set(",.")) if left.count(each) == 1]
        result = ("..." if "..." in left else "") + "".join(once)
    letters = [each for each in ascii_letters if each not in equation]
    widths = [
        step.operand(at).rank - len(term.replace("...", ""))
        for at, term in enumerate(terms)
        if "..." in term
    ]
    widest = max(widths, default=0)
    if widest > len(letters):
        raise step.error("its equation has too many labels")
    filled = []
    for at, term in enumerate(terms):
        own = step.operand(at).rank - len(term.replace("...", ""))
        filled.append(term.replace("...", "".join(letters[widest - own : widest])))
    result = result.replace("...", "".join(letters[:widest]))
    _check_sizes(step, filled)
    return filled, result


def _check_sizes(step: Step, terms: Sequence[str]) -> None:
    sizes: dict[str, object] = {}
    for at, term in enumerate(terms):
        for place, label in enumerate(term):
            size = step.operand(at).value.dim(place)
            known = sizes.setdefault(label, size)
            if known != size and 1 in (known, size):
                raise step.error(f"label {label!r} is broadcast")
