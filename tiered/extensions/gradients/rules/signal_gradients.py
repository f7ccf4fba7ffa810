"""Gradients of Fourier transforms: each is another Fourier transform."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, expansion, gradient_rule
from tiered.graph import DataType


class _Transform:
    """What a DFT does.

    Attributes:
        axis: the transformed axis, a number; it may be known at run time only.
        length: the number of samples, int64 [1].
        is_inverse, is_onesided: its attributes.
    """

    def __init__(self, step: Step) -> None:
        node, x = step.node, step.x
        self.axis = step.operand(2) if step.has(2) else x.integers([-2]).reshape([])
        self.is_inverse, self.is_onesided = bool(node.attr("inverse")), bool(node.attr("onesided"))
        size = self.size(x)
        if step.has(1):
            self.length = step.operand(1).cast(DataType.INT64).reshape([1])
        else:
            self.length = (size - 1) * 2 if self.is_inverse and self.is_onesided else size

    def size(self, x: Expr) -> Expr:
        """Return the size of the transformed axis, int64 [1]."""
        axis = self.axis.value.const
        if axis is not None:
            return x.dim(int(axis))
        return x.call("Gather", x.shape(), self.axis.reshape([1]), axis=0)

    def among(self, others: Sequence[int], number: Expr) -> Expr:
        """Return a number for the axis among those of the other axes."""
        rest = number.integers(others)
        return rest.call("ScatterElements", rest, self.axis.reshape([1]), number, axis=0)


@gradient_rule("DFT")
def dft(step: Step) -> Sequence[Expr | None]:
    """dx = n IDFT(g); of the inverse dx = DFT(g) / n; for n samples

    The adjoint of a matrix of roots of unity is its conjugate. Real and imaginary parts are
    operands of their own: a real operand gets the real part. Of a onesided transform the absent
    half of g is 0, and the inverse reads each inner element twice.
    """
    found = _Transform(step)
    x, g = step.x, step.g
    count = found.length.cast(x.dtype)
    onesided = int(found.is_inverse and found.is_onesided)
    dx = g.call(
        "DFT", g, found.length.squeeze([0]), found.axis,
        inverse=int(not found.is_inverse), onesided=onesided,
    )  # fmt: skip
    dx = dx / count if found.is_inverse else dx * count
    if onesided:
        dx = dx * _multiplicities(dx, x.rank, found)
    if x.value.dim(-1) != 2:
        dx = dx.call("Slice", dx, [0], x.dim(x.rank - 1), [-1])
    return (_with_size(dx, x, found),)


def _multiplicities(dx: Expr, rank: int, found: _Transform) -> Expr:
    """Return how often the inverse reads each element: the first and the middle one once."""
    size = found.size(dx).squeeze([0])
    number = dx.call("Range", np.int64(0), size, np.int64(1))
    is_single = number.equals(0).either((number + number).equals(found.length))
    times = 2 - is_single.cast(dx.dtype)
    return times.reshape(found.among([1] * rank, times.integers([-1])))


def _with_size(dx: Expr, x: Expr, found: _Transform) -> Expr:
    """Return dx with zeros appended, or cropped, to the size of x along the axis."""
    dx = dx.call("Slice", dx, [0], found.size(x), found.axis.reshape([1]))
    after = found.among([0] * x.rank, found.size(x) - found.size(dx))
    return dx.call("Pad", dx, dx.call("Concat", [0] * x.rank, after, axis=0))


@expansion("STFT")
def stft(step: Step) -> Sequence[Expr | None]:
    """y = the DFT of the frames, each times the window"""
    signal, hop = step.x, step.operand(1).cast(DataType.INT64)
    if signal.rank == 2:
        signal = signal.unsqueeze([2])
    if step.has(3):
        length = step.operand(3).cast(DataType.INT64).reshape([])
    elif step.has(2):
        length = step.operand(2).dim(0).squeeze([0])
    else:
        length = signal.dim(1).squeeze([0])
    hop = hop.reshape([])
    frames = (signal.dim(1).squeeze([0]) - length) / hop + 1
    starts = signal.call("Range", np.int64(0), frames, np.int64(1)) * hop
    within = signal.call("Range", np.int64(0), length, np.int64(1))
    parts = signal.call("Gather", signal, starts.unsqueeze([1]) + within, axis=1)
    if step.has(2):
        parts = parts * step.operand(2).unsqueeze([1])
    onesided = int(step.node.attr("onesided"))
    return (parts.call("DFT", parts, None, np.int64(2), onesided=onesided),)
