"""Folding scales: factors of a tensor, multiplied into the weights of its producer or consumers.

The rules of `backward_fold_scale_axis` and `forward_fold_scale_axis`: which operators commute with
a scale, and which absorb it. A weight with other consumers absorbs none. `scale_backward` finds the
way back to the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiered.graph.core.dtypes import float_info
from tiered.graph.queries.op_traits import AVERAGE_POOLS, MAX_POOLS, MOVES_FIRST
from tiered.rewriter.idioms.elementwise.affine import varying_axis
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value

Rescaled: TypeAlias = "dict[tuple[Node, int], NDArray[Any]]"
"""The new constants of nodes, by node and input slot."""

# f(s * x) = s * f(x): for every s > 0, or for any s.
_POSITIVE: Final = MAX_POOLS | {"LeakyRelu", "Relu"}
_LINEAR: Final = AVERAGE_POOLS | {"Identity", "Neg", "Transpose"}
# Of these, operators that combine elements of one channel; and operators that move elements, which
# only a single factor passes.
_POOL: Final = AVERAGE_POOLS | MAX_POOLS
# Identity and Transpose keep track of an axis; of a Split, each result has its own scale.
_MOVE: Final = MOVES_FIRST - {"Identity", "Split", "Transpose"}
_PASS: Final = _POSITIVE | _LINEAR | _MOVE

_CHANNELS: Final = 1


class Scale(NamedTuple):
    """The scale of a tensor: a factor for each index of one axis, or one for all elements.

    `factors` is float64 [dim of the axis], or [1] where `axis` is None.
    """

    factors: NDArray[np.float64]
    axis: int | None = None

    @property
    def is_positive(self) -> bool:
        return bool((self.factors > 0).all())

    def spread(self, rank: int, axis: int | None = None) -> NDArray[np.float64]:
        """Return the factors, reshaped to broadcast along an axis, by default their own."""
        along = self.axis if axis is None else axis
        if along is None:
            return self.factors.reshape([1] * rank)
        return self.factors.reshape([-1 if at == along else 1 for at in range(rank)])


def scaling_of(node: Node) -> tuple[Value, Scale] | Skip | None:
    """Return the input and the scale of a Mul or Div by a constant; None for other nodes."""
    if node.domain or node.op_type not in ("Mul", "Div"):
        return None
    x, s = node.given(0), node.given(1)
    if node.op_type == "Mul" and x.is_constant:
        x, s = s, x
    array = s.const
    if x.is_constant or array is None:
        return None
    along = broadcasts_along(node)
    if along is not None:
        return along
    if not s.is_float:
        return Skip("the dtype is not a float")
    factors = array.astype(np.float64)
    if node.op_type == "Div":
        # The inverse of 0 or of a subnormal double is infinite.
        with np.errstate(divide="ignore", over="ignore"):
            factors = 1 / factors
    if not np.isfinite(factors).all() or not factors.all():
        return Skip("a factor is 0 or not finite")
    axis = varying_axis(x, array)
    return axis if isinstance(axis, Skip) else (x, Scale(factors.ravel(), axis))


def broadcasts_along(node: Node) -> Skip | None:
    """Return why the axes of an operand are not the last ones of the result; None if they are."""
    if node.op_type == "Concat" or node.attr("axis", None) is None:
        return None
    return Skip("before opset 7, an attribute says along which axis operands broadcast")


# --- how a scale moves ----------------------------------------------------------------------------


def push_scale_forward(x: Value, scale: Scale) -> Rescaled | Skip:
    """Return the new constants with which all consumers of `x` apply its scale, or why not.

    Returns:
        The new constants, by node and slot.
    """
    if x.is_graph_output or x.is_captured or x.pins:
        return Skip("{} is used outside of the graph", x.name)
    plan: Rescaled = {}
    for node, slot in x.users:
        passed = pass_scale(node, scale, back=False) if slot == 0 else Skip("")
        if isinstance(passed, Skip):
            scaled = _absorb_before(node, slot, scale) or refusal(node, passed)
        else:
            scaled = push_scale_forward(node.output, passed)
        if isinstance(scaled, Skip):
            return scaled
        plan.update(scaled)
    return plan


def pass_scale(node: Node, scale: Scale, *, back: bool) -> Scale | Skip:
    """Return the scale on the other side of a node with one data operand: its first.

    Args:
        node: the node.
        scale: of its output (`back`), or of its first input.
        back: whether the scale moves from the output to the input.
    """
    kind, axis = node.op_type, scale.axis
    if node.has_references:
        return Skip("{}: {}", kind, node.parameter_reason)
    if node.domain or kind not in _PASS or len([*filter(None, node.outputs)]) != 1:
        return Skip("{} does not commute with a scale", kind)
    if kind in _POSITIVE and not scale.is_positive:
        return Skip("{} does not commute with negative factors", kind)
    if kind == "Reshape" and axis is not None:
        return _pass_reshape(node, scale, back=back)
    if kind in _MOVE and axis is not None:
        return Skip("{} moves elements across the scaled axis", kind)
    if kind in _POOL and axis not in (None, _CHANNELS):
        return Skip("{} combines elements across the scaled axis", kind)
    if kind == "Transpose" and axis is not None:
        perm = node.perm
        if perm is None:
            return Skip("the rank before Transpose is not known")
        return Scale(scale.factors, perm[axis] if back else perm.index(axis))
    return scale


def _pass_reshape(node: Node, scale: Scale, *, back: bool) -> Scale | Skip:
    """Return the scale of the last axis on the other side of a Reshape that keeps this axis."""
    x = node.given(0)
    here, there = (node.output, x) if back else (x, node.output)
    size = scale.factors.size
    if here.rank is None or there.rank is None:
        return Skip("a rank of Reshape is not known")
    if scale.axis != here.rank - 1 or not there.rank or not here.dim(-1) == there.dim(-1) == size:
        return Skip("Reshape moves elements across the scaled axis")
    return Scale(scale.factors, there.rank - 1)


def write_rescaled(graph: Graph, node: Node, x: Value, rescaled: Rescaled) -> None:
    """Write the new constants, and replace the node that scales `x` by `x`.

    Args:
        graph: the graph of all these nodes.
        node: the node that scales `x`.
        x: the value that it scales.
        rescaled: the new constants, by node and slot.
    """
    for (user, slot), array in rescaled.items():
        old = user.inputs[slot]
        graph.set_input(user, slot, graph.constant(array, old.name if old else ""))
    graph.replace(node, (x,))


# --- operators that absorb a scale ----------------------------------------------------------------


def absorb_after(node: Node, scale: Scale) -> Rescaled | Skip | None:
    """Return the constants with which a node computes its output scaled."""
    axis, weight = scale.axis, node.const(1)
    if node.domain or node.has_references:
        return None
    if node.op_type == "MatMul":
        return _matmul_after(node, scale)
    if weight is None or axis not in (None, _CHANNELS):
        return None
    match node.op_type:
        case "Conv":
            return scaled_constants(node, {1: scale.spread(weight.ndim, 0), 2: scale.factors})
        case "ConvTranspose":
            spread = _grouped(scale, weight, int(node.attr("group")))
            return scaled_constants(node, {1: spread, 2: scale.factors})
        case "Gemm":
            columns = 0 if node.attr("transB") else 1
            return scaled_constants(node, {1: scale.spread(2, columns), 2: scale.factors})
        # Before opset 9, `spatial=0` gives each element of a channel its own numbers.
        case "BatchNormalization" if axis is None or weight.ndim == 1:
            return scaled_constants(node, {1: scale.factors, 2: scale.factors})
    return None


def _absorb_before(node: Node, slot: int, scale: Scale) -> Rescaled | Skip | None:
    """Return the constants with which a node scales one of its inputs itself."""
    axis, weight = scale.axis, node.const(1)
    if node.domain or node.has_references:
        return None
    if node.op_type == "MatMul":
        return _matmul_before(node, slot, scale)
    if slot != 0 or weight is None:
        return None
    match node.op_type:
        case "Conv" if axis in (None, _CHANNELS):
            groups = int(node.attr("group"))
            if axis is not None and scale.factors.size != groups * weight.shape[1]:
                return None  # no runtime takes it
            return scaled_constants(node, {1: _grouped(scale, weight, groups)})
        case "ConvTranspose" if axis in (None, _CHANNELS):
            return scaled_constants(node, {1: scale.spread(weight.ndim, 0)})
        case "Gemm" if axis in (None, 0 if node.attr("transA") else 1):
            return scaled_constants(node, {1: scale.spread(2, 1 if node.attr("transB") else 0)})
    return None


def _matmul_after(node: Node, scale: Scale) -> Rescaled | Skip | None:
    rank = node.output.rank
    for slot, from_end in ((1, 1), (0, 2)):
        weight, other = node.const(slot), node.given(1 - slot)
        if weight is None or weight.ndim < 2:
            continue
        if scale.axis is None or (rank is not None and scale.axis == rank - from_end):
            is_of_rows = scale.axis is not None and slot == 0
            if is_of_rows and (other.rank is None or other.rank < 2):
                return Skip("the second factor may be a vector, and the axis one of batches")
            return scaled_constants(node, {slot: scale.spread(weight.ndim, weight.ndim - from_end)})
    return None


def _matmul_before(node: Node, slot: int, scale: Scale) -> Rescaled | Skip | None:
    x, weight = node.given(slot), node.const(1 - slot)
    if weight is None or weight.ndim < 2 or x.rank is None or x.rank < 2:
        return None
    # A product contracts the last axis of the left operand and the last but one of the right.
    here, there = (1, 2) if slot == 0 else (2, 1)
    if scale.axis not in (None, x.rank - here):
        return None
    return scaled_constants(node, {1 - slot: scale.spread(weight.ndim, weight.ndim - there)})


def _grouped(scale: Scale, weight: NDArray[Any], groups: int) -> NDArray[np.float64]:
    """Return the factors of the channels of all groups as [rows, channels / groups, ...]."""
    if scale.axis is None:
        return scale.factors
    rows, channels = weight.shape[0] // groups, weight.shape[1]
    spread = np.repeat(scale.factors.reshape(groups, channels), rows, axis=0)
    return spread.reshape(weight.shape[0], channels, *[1] * (weight.ndim - 2))


def refusal(node: Node, passed: Scale | Skip) -> Skip:
    if isinstance(passed, Skip) and not node.domain and node.op_type in _PASS:
        return passed
    return Skip("{} does not absorb a scale", node.op_type)


def loses_digits(
    before: NDArray[Any], after: NDArray[Any], exact: Callable[[], NDArray[Any]]
) -> bool:
    """Return whether scaled numbers lose digits because they are subnormal in their dtype.

    Args:
        before: the numbers before they were scaled, of any float dtype.
        after: the scaled numbers, in the dtype of the constant.
        exact: returns the scaled numbers before rounding; called only if numbers are small.
    """
    least = float(float_info(after.dtype).smallest_normal)
    is_small = (np.abs(after.astype(np.float64)) < least) & (before != 0)
    return bool(is_small.any()) and bool((exact()[is_small] != after[is_small]).any())


def scaled_constants(node: Node, factors: dict[int, NDArray[np.float64]]) -> Rescaled | Skip:
    """Return the constants of a node times factors; an absent one is zeros and stays absent."""
    plan: Rescaled = {}
    for slot, spread in factors.items():
        value = node.input(slot)
        if value is None:
            continue
        array = value.const
        if array is None:
            return Skip("{} is not a constant", value.name)
        if not value.has_one_user:
            return Skip("{} has other consumers", value.name)
        before = array.astype(np.float64)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            made = (before * spread).astype(array.dtype)
        after = made.astype(np.float64)
        if (np.isfinite(before) != np.isfinite(after)).any():
            return Skip("{} times the factors does not fit its dtype", value.name)
        if ((before == 0) != (after == 0)).any():
            return Skip("{} times the factors vanishes in its dtype", value.name)
        least = float(float_info(array.dtype).smallest_normal)
        is_subnormal = (after != 0) & (np.abs(after) < least)
        if (is_subnormal & (np.abs(after) < np.abs(before))).any():
            return Skip("{} times the factors becomes subnormal", value.name)
        plan[node, slot] = made
    return plan
