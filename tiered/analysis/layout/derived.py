"""Propagations that follow from axis maps: axes with one iterator are permuted together.

What computes each element from the elements at the same index has any order of axes, and nothing
more is known of it than its map. Of all others a rule says how the operator is written in another
order: which attributes and operands name axes, and which axes have a fixed place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from tiered.analysis.axes.axis_map import OWN_DOMAINS, Axes, AxisMap, map_of
from tiered.analysis.axes.rules import AXES
from tiered.analysis.layout.axis_propagation import (
    FIXED,
    LAYOUTS,
    AxisPropagation,
    KernelAccess,
    Labels,
    Permuted,
    Rule,
    any_order,
)
from tiered.graph import Node, Value, is_deterministic
from tiered.graph.opset.newest_form import newest_attribute
from tiered.graph.queries.op_traits import ELEMENTWISE
from tiered.rewriter import Skip

Write = Callable[[Permuted], Sequence[Value]]
Allows = Callable[[Labels], bool]


class Written(NamedTuple):
    """The layout rule of operators that follow their axis maps: how they are written.

    Attributes:
        write: builds the operator in another order and returns its outputs.
        slots: the operands that are permuted; None for all that have iterators.
        allows: which orders it has.
        family: the kind of its kernel; None if it takes as long in every order.
        walked: returns the axes that the time depends on; None for those that are not parallel.
    """

    write: Write
    slots: tuple[int, ...] | None = None
    allows: Allows = any_order
    family: str | None = None
    walked: Callable[[Node], Labels] | None = None

    def __call__(self, node: Node) -> AxisPropagation:
        write, slots, allows, family, walked = self
        axes = None if walked is None else walked(node)
        return derived(node, write, slots=slots, allows=allows, family=family, walked=axes)


def written(
    *op_types: str,
    domain: str = "",
    slots: tuple[int, ...] | None = None,
    allows: Allows = any_order,
    family: str | None = None,
    walked: Callable[[Node], Labels] | None = None,
) -> Callable[[Write], Write]:
    """Register the decorated function as how operators are written in another order.

    Args:
        op_types: the operators.
        domain: their domain.
        slots, allows, family, walked: as of `Written`.
    """

    def register(write: Write) -> Write:
        # A tuple, so that the registry knows where `write` is; mypy sees no function in it.
        LAYOUTS.put(op_types, domain, cast("Rule", Written(write, slots, allows, family, walked)))
        return write

    return register


def derived(
    node: Node,
    write: Write,
    axes: AxisMap | None = None,
    *,
    slots: Sequence[int] | None = None,
    allows: Allows = any_order,
    family: str | None = None,
    walked: Labels | None = None,
) -> AxisPropagation:
    """Return the propagation that follows from the axis map of an operator.

    Args:
        node: the operator.
        axes: its map, if it is known already.
        write, slots, allows, family: as of `Written`.
        walked: the axes that the time depends on; None for those that are not parallel.

    Raises:
        NoMap: what decides its map is not known.
    """
    axes = axes or map_of(node)
    count, given = len(node.inputs), axes.inputs
    if slots is not None:
        given = tuple([own if slot in slots else None for slot, own in enumerate(given)])
    if len(given) != count:
        # Operands that were attributes are no inputs.
        given = (*given[:count], *(None,) * (count - len(given)))
    if walked is None:
        walked = combined(axes) if family is not None else ()
    return _propagation(given, axes.outputs, write, allows, family, walked)


def combined(axes: AxisMap) -> Labels:
    """Return the labels of the first operand that are not parallel."""
    own, kinds, windows = axes.inputs[0] or (), axes.kinds, axes.windows
    return tuple([
        label for label in own if label is not None and (label in kinds or label in windows)
    ])  # fmt: skip


@lru_cache(maxsize=4096)
def _propagation(
    inputs: Sequence[Axes | None],
    outputs: Sequence[Axes | None],
    write: Write,
    allows: Allows,
    family: str | None,
    walked: Labels,
) -> AxisPropagation:
    kernel = None if family is None else KernelAccess(family, walked)
    return AxisPropagation(named(inputs), named(outputs, -1000), write, allows, kernel=kernel)


def named(ports: Sequence[Axes | None], start: int = 0) -> tuple[Labels | None, ...]:
    """Return the labels of operands or outputs; axes without an iterator get one of their own.

    Args:
        ports: the iterators of each.
        start: new labels are less than this number, which is not positive.
    """
    found: list[Labels | None] = []
    for own in ports:
        labels: list[int] = []
        for label in own or ():
            start -= label is None
            labels.append(start if label is None else label)
        found.append(None if own is None else tuple(labels))
    return tuple(found)


# --- elementwise ----------------------------------------------------------------------------------


def may_be_elementwise(node: Node) -> bool:
    """Return whether a map may say that an operator computes element by element."""
    if not node.domain:
        # Of ONNX's operators the traits say it at once.
        return node.op_type in ELEMENTWISE
    if AXES.of(node) is None:
        return False
    # What draws random numbers gives each element another one in another order.
    return node.domain in OWN_DOMAINS or is_deterministic(node)


def elementwise(node: Node) -> AxisPropagation | Skip:
    """Return the propagation of an operator whose map is all that is known.

    It has any order if each of its elements is computed from the elements at the same index of its
    operands; operands may broadcast.

    Raises:
        NoMap: what decides its map is not known.
    """
    axes = map_of(node)
    if axes.kinds or axes.windows or axes.groups or axes.has_shape:
        return FIXED
    return _elementwise(axes.inputs, axes.outputs, axes.broadcasts, len(node.inputs))


@lru_cache(maxsize=4096)
def _elementwise(
    inputs: tuple[Axes | None, ...],
    outputs: tuple[Axes | None, ...],
    broadcasts: tuple[int, ...],
    count: int,
) -> AxisPropagation | Skip:
    result = outputs[0]
    if result is None or None in result or any(own != result for own in outputs):
        return FIXED
    for slot, own in enumerate(inputs):
        if own is None or own == result:
            continue
        if slot not in broadcasts or own != result[len(result) - len(own) :]:
            return FIXED
    kernel = KernelAccess("broadcast") if broadcasts else None
    ports = named((*inputs[:count], *(None,) * (count - len(inputs))))
    return AxisPropagation(ports, named(outputs), _write_elementwise, kernel=kernel)


def _write_elementwise(op: Permuted) -> Sequence[Value]:
    target = op.propagation.result
    return op.emit({slot: op.aligned(slot, target) for slot in op.permuted_slots})


# --- how operators are written in another order ---------------------------------------------------


def write_as_it_is(op: Permuted) -> Sequence[Value]:
    """Write an operator that says nothing of axes."""
    return op.emit(op.permuted())


def write_axis(op: Permuted) -> Sequence[Value]:
    """Write an operator whose attribute `axis` names an axis of its first operand."""
    axis = op.moved(op.propagation.own(0), newest_attribute(op.node, "axis"))
    return op.emit(op.permuted(), axis=axis)


def write_vector(op: Permuted) -> Sequence[Value]:
    """Write an operator whose second operand has a number for each axis."""
    return op.emit({0: op.operand(0), 1: op.vector(1, op.propagation.own(0))})
