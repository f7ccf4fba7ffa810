"""The adjoint of broadcasting: sums over the axes along which an operand was repeated."""

from __future__ import annotations

from tiered.extensions.gradients.expression import Expr


def reduced_to(grad: Expr, operand: Expr) -> Expr:
    """Return the sums of a gradient that has been broadcast, in the shape of the operand.

    Axes of sizes that are known at run time only are chosen there: those of size 1.

    Args:
        grad: the gradient, in a shape into which the operand's broadcasts.
        operand: the operand.
    """
    here, there = grad.value.shape, operand.value.shape
    if here is None or there is None:
        return _reduced_at_run_time(grad, operand)
    extra = len(here) - len(there)
    axes = []
    for at, (size, own) in enumerate(zip(here[extra:], there, strict=True), extra):
        if size == 1 or (size is not None and size == own):
            continue
        if own == 1:
            axes.append(at)
        elif not isinstance(own, int):
            return _reduced_at_run_time(grad, operand)
    return grad.sum(axes).sum(range(extra), keepdims=False)


def _reduced_at_run_time(grad: Expr, operand: Expr) -> Expr:
    """Sum over the axes that are absent or of size 1 in the operand, as its shape says."""
    shape = operand.call("Shape", operand)
    missing = grad.call("Shape", grad).call("Size", grad.call("Shape", grad)) - operand.call(
        "Size", shape
    )
    ones = missing.unsqueeze([0]).full(1, shape.dtype)
    sizes = shape.call("Concat", ones, shape, axis=0)
    axes = sizes.call("NonZero", sizes.equals(1)).reshape([-1])
    reduced = grad.call("ReduceSum", grad, axes, noop_with_empty_axes=1)
    return reduced.reshape_as(operand)
