"""The gradient of Resize: along each axis it is a product with a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, gradient_rule
from tiered.graph import DataType

_CROP: Final = "tf_crop_and_resize"


@gradient_rule("Resize", "Upsample")
def resize(step: Step) -> Sequence[Expr | None]:
    """dx = g M, with the matrix M of each resized axis

    A Resize treats each axis by itself: its matrix is the Resize of the identity matrix. By a scale
    of 1.2, an axis of 4 keeps its size, but not its elements.
    """
    attributes = _attributes(step)
    rank, dx = step.x.rank, step.g
    written = attributes.pop("axes", None)
    axes = range(rank) if written is None else [int(at) % rank for at in written]
    for place, axis in enumerate(axes):
        if _stays(step, axis, place):
            continue
        last = [*(at for at in range(rank) if at != axis), axis]
        product = dx.transpose(last) @ _matrix(step, axis, place, attributes)
        dx = product.transpose(np.argsort(last).tolist())
    return (dx,)


def _stays(step: Step, axis: int, place: int) -> bool:
    """Return whether elements stay where they are along an axis: an equal size is not enough."""
    attributes = step.node.attributes
    mode = attributes.get("coordinate_transformation_mode")
    policy = attributes.get("keep_aspect_ratio_policy", "stretch")
    if mode == "tf_half_pixel_for_nn" or policy != "stretch":
        return False
    if mode == _CROP:
        rois = step.operand(1).value.const
        if rois is None or rois[place] != 0 or rois[len(rois) // 2 + place] != 1:
            return False
    scales = step.node.operand("scales")
    if scales is not None and scales.dim(0) != 0:
        return scales.const is not None and bool(scales.const[place] == 1)
    size = step.x.value.dim(axis)
    return size is not None and size == step.y.value.dim(axis)


def _attributes(step: Step) -> dict[str, Any]:
    """Return the attributes of the Resize of a matrix: the constant outside of an image is 0."""
    attributes = dict(step.node.attributes)
    if step.node.op_type == "Upsample":
        return {"mode": attributes.get("mode", "nearest")}
    attributes.pop("keep_aspect_ratio_policy", None)
    attributes.pop("extrapolation_value", None)
    return attributes


def _matrix(step: Step, axis: int, place: int, attributes: dict[str, Any]) -> Expr:
    """Return the matrix [size of y, size of x] of one axis."""
    x, size = step.x, step.x.dim(axis)
    square = x.call("Concat", size, size, axis=0)
    identity = x.call("EyeLike", square.full(0, x.dtype))
    if step.node.op_type == "Upsample":
        # Resize does not exist where Upsample is in use.
        own = step.operand(1).call("Slice", step.operand(1), [place], [place + 1], [0])
        both = own.call("Concat", own, np.ones(1, np.float32), axis=0)
        return identity.call("Upsample", identity, both, **attributes)
    if str(step.node.attr("keep_aspect_ratio_policy", "stretch")) != "stretch":
        return _matrix_of_policy(step, axis, identity, attributes)
    region = None
    if attributes.get("coordinate_transformation_mode") == _CROP:
        rois, count = step.operand(1), step.operand(1).dim(0) / 2
        start = rois.call("Slice", rois, [place], [place + 1], [0])
        end = rois.call("Gather", rois, count + place, axis=0)
        zero, one = (np.array([at], rois.dtype.numpy) for at in (0, 1))
        region = rois.call("Concat", start, zero, end, one, axis=0)
    scales = step.operands[2] if step.has(2) else None
    if scales is not None and scales.value.dim(0) != 0:
        own = scales.call("Slice", scales, [place], [place + 1], [0])
        both = own.call("Concat", own, np.ones(1, np.float32), axis=0)
        return identity.call("Resize", identity, region, both, **attributes)
    # Not of the operand: onnxruntime's own inference may take a part of computed sizes for empty.
    both = x.call("Concat", step.y.dim(axis), size, axis=0)
    return identity.call("Resize", identity, region, None, both, **attributes)


def _matrix_of_policy(step: Step, axis: int, identity: Expr, attributes: dict[str, Any]) -> Expr:
    """Return the matrix of one axis, if all axes have one scale and the rounded sizes.

    A Resize by scales rounds sizes down. The last element is repeated, so that there are enough.

    Raises:
        NoGradient: coordinates depend on the sizes.
    """
    x, node, sizes = step.x, step.node, step.operand(3)
    mode = str(node.attr("coordinate_transformation_mode"))
    if mode not in ("half_pixel", "asymmetric"):
        raise step.error(f"keep_aspect_ratio_policy with {mode} has no rule")
    shape = x.shape()
    if node.attr("axes"):
        shape = shape.call("Gather", shape, [int(at) for at in node.attr("axes")], axis=0)
    ratios = sizes.cast(DataType.FLOAT) / shape.cast(DataType.FLOAT)
    is_least = str(node.attr("keep_aspect_ratio_policy")) == "not_larger"
    scale = x.call("ReduceMin" if is_least else "ReduceMax", ratios, keepdims=1)
    more = x.call("Ceil", 1 / scale).cast(DataType.INT64)
    longer = x.call("Pad", identity, x.call("Concat", [0, 0], more, [0], axis=0), mode="edge")
    scales = x.call("Concat", scale, np.ones(1, np.float32), axis=0)
    matrix = x.call("Resize", longer, None, scales, **attributes)
    return x.call("Slice", matrix, [0], step.y.dim(axis), [0])
