"""Normalizations: how exporters write them, and their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.schema import EARLY_OPERATORS
from tiered.graph.core.types import non_negative_axes
from tiered.rewriter.language import const, op, var
from tiered.rewriter.skip import Skip
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value

Vector: TypeAlias = NDArray[np.float64]

# --- batch norms ----------------------------------------------------------------------------------


def batch_norm_pattern(x: Any) -> Any:
    """Return the pattern of a batch norm of `x` in its inference form."""
    return op.BatchNormalization(
        x,
        var.scale,
        var.shift,
        var.mean,
        var.variance,
        epsilon=var.epsilon,
        momentum=var.momentum,
    )


class BatchNorm(Record):
    """The numbers of a batch norm, y = factor * (x - mean) + shift, each float64 [channels].

    `factor` is scale / sqrt(variance + epsilon).
    """

    factor: Vector
    mean: Vector
    shift: Vector

    def of(self, x: Vector | float) -> Vector:
        """Return the batch norm of one number for each channel, or of one for all."""
        return self.factor * (x - self.mean) + self.shift

    def as_product_and_sum(self, dtype: int) -> tuple[NDArray[Any], NDArray[Any]] | Skip:
        """Return (a, b) of a dtype, each [channels]: the batch norm of x is a * x + b."""
        with np.errstate(over="ignore"):
            made = [each.astype(DataType(dtype).numpy) for each in (self.factor, self.of(0.0))]
        if not all(np.isfinite(vector.astype(np.float64)).all() for vector in made):
            return Skip("a factor or an offset is not finite")
        return made[0], made[1]


def batch_norm_of(node: Node) -> BatchNorm | Skip:
    """Return the constants of a BatchNormalization, or why they are not known.

    Source: ONNX BatchNormalization-15, inference form; Ioffe & Szegedy 2015, algorithm 2, step 11.
    """
    if any(value is not None for value in node.outputs[1:]):
        return Skip("further outputs mean training mode")
    arrays = [node.const(slot) for slot in range(1, 5)]
    vectors = [array.astype(np.float64) for array in arrays if array is not None]
    if len(vectors) < len(arrays):
        return Skip("a parameter of the batch norm is not a constant")
    scale, shift, mean, variance = vectors
    if len({vector.shape for vector in vectors}) > 1 or scale.ndim != 1:
        return Skip("the parameters of the batch norm are not one number a channel")
    epsilon = node.attr("epsilon")
    assert isinstance(epsilon, float)
    spread = variance + epsilon
    if not (spread > 0).all():
        return Skip("var + epsilon is not positive")
    return BatchNorm(scale / np.sqrt(spread), mean, shift)


def layer_norm(graph: Graph, x: Value, *operands: Value | None, **attributes: Any) -> Value:
    """Return a LayerNormalization, also at an opset before 17 (`Node.is_early`).

    A pass that makes one from other operators declares `may_make=["LayerNormalization"]`, so that
    only targets with that kernel get it.
    """
    if graph.opset() >= EARLY_OPERATORS["LayerNormalization"]:
        normed: Value = graph.op.LayerNormalization(x, *operands, **attributes)
        return normed
    node = graph.add_node(
        "LayerNormalization", (x, *operands), 1, attributes, name=graph.model.hint
    )
    return node.output


# --- norms over some axes -------------------------------------------------------------------------


def rms_norm_pattern(x: Any) -> Any:
    """Return the pattern of x / sqrt(mean(x * x) + epsilon), which binds `axes` and `epsilon`."""
    shifted = op.Add(op.ReduceMean(op.Pow(x, 2.0) | op.Mul(x, x), var.axes), const(name="epsilon"))
    root = op.Sqrt(shifted)
    inverse = op.Reciprocal(root) | op.Div(1.0, root) | op.Pow(shifted, -0.5)
    return op.Div(x, root) | op.Mul(x, inverse)


def layer_norm_pattern() -> Any:
    """Return the pattern of the RMS norm of x - mean(x), which binds `x` and `axes_of_mean` too."""
    return rms_norm_pattern(op.Sub(var.x, op.ReduceMean(var.x, var.axes_of_mean)))


def fits_float_attribute(number: float, dtype: int | None) -> bool:
    """Return whether a float attribute, which has 32 bits, holds a number of a dtype exactly."""
    return dtype != DataType.DOUBLE or float(np.float32(number)) == number


def norm_epsilon(epsilon: Value | None) -> float | Skip:
    """Return the epsilon of a norm, or why no attribute holds it."""
    array = None if epsilon is None else epsilon.const
    if array is None or array.size != 1 or not 0 < array.item() < np.inf:
        return Skip("epsilon is not one positive number")
    if epsilon is not None and not fits_float_attribute(array.item(), epsilon.dtype):
        return Skip("epsilon is a double that no attribute holds")
    return float(array.item())


class NormOverLastDims(Record):
    """The parameters of a norm over the last dims of a tensor."""

    sizes: tuple[int, ...]
    dtype: int
    epsilon: float

    @property
    def axis(self) -> int:
        """The first of the dims, counted from the end."""
        return -len(self.sizes)

    def ones(self, graph: Graph) -> Value:
        """Return ones, as the scale of a norm without one."""
        return graph.constant(np.ones(self.sizes, DataType(self.dtype).numpy), "scale")


def norm_over_last_dims(
    node: Node, x: Value, axes: Value | None, epsilon: Value | None
) -> NormOverLastDims | Skip:
    """Return the parameters of a norm, or why it is not one over the last dims.

    Args:
        node: the last node of the norm.
        x: its input.
        axes: the axes that are normalised.
        epsilon: the constant that is added to the variance.
    """
    if axes is None or axes.const is None:
        return Skip("the axes are not constant")
    if x.shape is None or not x.has_rank_of(node.output):
        return Skip("the rank of x is not known, or grows")
    rank = len(x.shape)
    over = non_negative_axes(axes.const.ravel(), rank)
    if not over or sorted(over) != list(range(rank - len(over), rank)):
        return Skip("the axes are not the last dims")
    added = norm_epsilon(epsilon)
    if isinstance(added, Skip):
        return added
    if x.dtype is None or not x.is_float:
        return Skip("x is no float")
    sizes = tuple(size for size in x.shape[-len(over) :] if isinstance(size, int))
    if len(sizes) < len(over):
        return Skip("the size of the normalised dims is not known")
    if 0 in sizes:
        return Skip("there is nothing to normalise")
    return NormOverLastDims(sizes, x.dtype, added)


def split_bias(x: Value) -> tuple[Value, Value | None]:
    """Split x = y + bias into (y, bias), a constant along the last dim; (x, None) without one."""
    node = x.producer
    if node is None or not node.is_op("Add") or not x.has_one_user:
        return x, None
    first, second = node.given(0), node.given(1)
    for data, bias in ((first, second), (second, first)):
        if bias.const is None or data.shape != x.shape:
            continue
        if x.shape and bias.shape == x.shape[-1:] and None not in x.shape:
            return data, bias
    return x, None
