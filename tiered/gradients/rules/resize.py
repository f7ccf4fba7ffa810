"""The gradient of Resize: along each axis it is a product with a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tiered.gradients.expression import Expr
from tiered.gradients.rule import Step, gradient_rule


@gradient_rule("Resize", "Upsample")
def resize(step: Step) -> Sequence[Expr | None]:
    """dx = g M, with the matrix M of each resized axis

    A Resize treats each axis by itself: its matrix is the Resize of the identity matrix.
    """
    attributes = _attributes(step)
    rank, dx = step.x.rank, step.g
    written = attributes.pop("axes", None)
    axes = range(rank) if written is None else [int(at) % rank for at in written]
    for place, axis in enumerate(axes):
        size = step.x.value.dim(axis)
        if isinstance(size, int) and size == step.y.value.dim(axis):
            continue
        last = [*(at for at in range(rank) if at != axis), axis]
        product = dx.transpose(last) @ _matrix(step, axis, place, attributes)
        dx = product.transpose(np.argsort(last).tolist())
    return (dx,)


def _attributes(step: Step) -> dict[str, Any]:
    """Return the attributes of the Resize of a matrix.

    Raises:
        NoGradient: the axes depend on each other, or a constant is added outside the image.
    """
    attributes = dict(step.node.attributes)
    if step.node.op_type == "Upsample":
        return {"mode": attributes.get("mode", "nearest")}
    if attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        raise step.error("tf_crop_and_resize has no rule")
    if attributes.pop("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise step.error("keep_aspect_ratio_policy has no rule")
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
    scales = step.operands[2] if step.has(2) else None
    if scales is not None and scales.value.dim(0) != 0:
        own = scales.call("Slice", scales, [place], [place + 1], [0])
        both = own.call("Concat", own, np.ones(1, np.float32), axis=0)
        return identity.call("Resize", identity, None, both, **attributes)
    sizes = step.operand(3)
    own = sizes.call("Slice", sizes, [place], [place + 1], [0])
    both = own.call("Concat", own, size, axis=0)
    return identity.call("Resize", identity, None, None, both, **attributes)
