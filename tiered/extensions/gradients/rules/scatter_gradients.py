"""Gradients of operators that write at indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.factors import without_each
from tiered.extensions.gradients.rule_registry import Step, gradient_rule
from tiered.graph import DataType


class _Scatter:
    """A ScatterElements or ScatterND, and the operator that reads where it writes."""

    def __init__(self, step: Step) -> None:
        node = step.node
        self._indices, self._op_type = step.operand(1), node.op_type
        by_elements = node.op_type == "ScatterElements"
        self._reading = "GatherElements" if by_elements else "GatherND"
        self._settings: dict[str, Any] = {"axis": int(node.attr("axis"))} if by_elements else {}

    def written(self, x: Expr, updates: Expr, reduction: str = "none") -> Expr:
        """Return x with updates at the indices."""
        settings = self._settings if reduction == "none" else {
            **self._settings, "reduction": reduction,
        }  # fmt: skip
        return x.call(self._op_type, x, self._indices, updates, **settings)

    def read(self, x: Expr) -> Expr:
        """Return the elements at the indices."""
        return x.call(self._reading, x, self._indices, **self._settings)


@gradient_rule("ScatterElements", "ScatterND")
def scatter(step: Step) -> Sequence[Expr | None]:
    """dx = g, with zeros where x was overwritten; dupdates = g at the indices

    With reduction="add" nothing is overwritten. Indices that occur twice are undefined without.
    """
    reduction, updates = str(step.node.attr("reduction") or "none"), step.operand(2)
    where = _Scatter(step)
    if reduction == "mul":
        return _of_product(step, where)
    if reduction in ("max", "min"):
        return _of_extreme(step, where)
    dx = step.g
    if reduction == "none" and step.wants(0):
        dx = where.written(dx, updates.zeros())
    return dx, None, where.read(step.g) if step.wants(2) else None


def _of_product(step: Step, where: _Scatter) -> Sequence[Expr | None]:
    """Each factor gets g times the product of the others, also where some are 0."""
    of_x, of_updates = without_each(
        [step.x, step.operand(2)],
        lambda x, updates: where.written(x, updates, "mul"),
        lambda x, updates: where.written(x, updates, "add"),
        [lambda product: product, where.read],
    )
    return step.g * of_x, None, where.read(step.g) * of_updates


def _of_extreme(step: Step, where: _Scatter) -> Sequence[Expr | None]:
    """The elements that are equal to the result share g in equal parts."""
    x, updates, y = step.x, step.operand(2), step.y
    own = x.equals(y).cast(x.dtype)
    written = updates.equals(where.read(y)).cast(x.dtype)
    number = where.written(own, written, "add")
    share = step.g / number.call("Max", number, 1.0)
    return own * share, None, written * where.read(share)


@gradient_rule("Scatter")
def scatter_before_11(step: Step) -> Sequence[Expr | None]:
    """dx = g, with zeros where x was overwritten; dupdates = g at the indices

    There is no GatherElements before opset 11: the indices become those of the flat tensor.
    """
    x, indices, updates = step.x, step.operand(1), step.operand(2)
    axis = int(step.node.attr("axis", 0)) % x.rank
    dx = x.call("Scatter", step.g, indices, updates.zeros(), axis=axis)
    shape, count = x.value.static_shape, indices.value.static_shape
    if not step.wants(2):
        return dx, None, None
    if shape is None or count is None:
        raise step.error("Scatter needs known dims")
    strides = [int(np.prod(shape[at + 1 :])) for at in range(len(shape))]
    places = np.indices(count)
    others = sum(
        (strides[at] * places[at] for at in range(len(shape)) if at != axis),
        np.zeros(count, np.int64),
    )
    flat = indices.cast(DataType.INT64) * strides[axis] + x.of(
        x.graph.constant(np.asarray(others, np.int64), f"{x.name}/others")
    )
    return dx, None, x.call("Gather", step.g.reshape([-1]), flat, axis=0)


@gradient_rule("TensorScatter")
def tensor_scatter(step: Step) -> Sequence[Expr | None]:
    """dpast = g, with zeros where it was overwritten; dupdate = g at the written places"""
    node, g, update = step.node, step.g, step.operand(1)
    axis, mode = int(node.attr("axis")) % g.rank, str(node.attr("mode"))
    starts = [step.operand(2)] if step.has(2) else []
    dpast = g.call("TensorScatter", g, update.zeros(), *starts, axis=axis, mode=mode)
    if not step.wants(1):
        return dpast, None
    # The written axis follows the batch, as the batch has a start each.
    order = [0, axis, *(at for at in range(1, g.rank) if at != axis)]
    length = update.dim(axis).squeeze([0])
    places = g.call("Range", np.int64(0), length, np.int64(1)).unsqueeze([0])
    batch = g.call("Concat", g.dim(0), [1], axis=0).full(0, DataType.INT64)
    places = places + (starts[0].unsqueeze([1]) if starts else batch)
    if mode == "circular":
        places = places.call("Mod", places, g.dim(axis))
    rows = g.call("GatherND", g.transpose(order), places.unsqueeze([2]), batch_dims=1)
    return dpast, rows.transpose(np.argsort(order).tolist())


@gradient_rule("MaxUnpool")
def max_unpool(step: Step) -> Sequence[Expr | None]:
    """dx = g at the indices, which count the elements of the smallest possible output"""
    node, x, g = step.node, step.x, step.g
    kernel = tuple(node.attr("kernel_shape"))
    axes = len(kernel)
    strides = tuple(node.attr("strides") or (1,) * axes)
    pads = tuple(node.attr("pads") or (0,) * (2 * axes))
    if step.has(2):
        sizes = [
            (x.dim(at + 2) - 1) * strides[at] + (kernel[at] - pads[at] - pads[axes + at])
            for at in range(axes)
        ]
        ends = g.call("Concat", *sizes, axis=0)
        g = g.call("Slice", g, [0] * axes, ends, list(range(2, 2 + axes)))
    return g.call("Gather", g.reshape([-1]), step.operand(1), axis=0), None
