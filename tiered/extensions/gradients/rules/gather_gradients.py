"""Gradients of operators that read at indices."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.extensions.gradients.copy_adjoint import added_back, summed_at
from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, expansion, gradient_rule
from tiered.graph import DataType


@gradient_rule("Gather")
def gather(step: Step) -> Sequence[Expr | None]:
    """dx = g, added at the indices"""
    x, indices = step.x, step.operand(1)
    axis, rank, depth = int(step.node.attr("axis")) % step.x.rank, step.x.rank, indices.rank
    others = [at for at in range(rank) if at != axis]
    # The gathered axes come first, as one.
    front = step.g.transpose([
        *range(axis, axis + depth), *range(axis), *range(axis + depth, rank + depth - 1)
    ])  # fmt: skip
    count = x.call("Size", indices).unsqueeze([0])
    sizes = x.call("Concat", count, *(x.dim(at) for at in others), axis=0)
    rows = front.reshape_exactly(sizes) if depth != 1 else front
    sums = summed_at(indices.cast(DataType.INT64).reshape([-1]), rows, x.dim(axis))
    back = [others.index(at) + 1 if at != axis else 0 for at in range(rank)]
    return sums.transpose(back), None


@gradient_rule("GatherElements")
def gather_elements(step: Step) -> Sequence[Expr | None]:
    """dx = g, added at the indices"""
    x, indices, axis = step.x, step.operand(1), int(step.node.attr("axis"))
    return added_back(
        x, step.g, lambda places: x.call("GatherElements", places, indices, axis=axis)
    ), None


@gradient_rule("GatherND")
def gather_nd(step: Step) -> Sequence[Expr | None]:
    """dx = g, added at the indices"""
    x, indices, node = step.x, step.operand(1), step.node
    settings = {"batch_dims": int(node.attr("batch_dims"))} if node.attr("batch_dims", 0) else {}
    return added_back(
        x, step.g, lambda places: x.call("GatherND", places, indices, **settings)
    ), None


@expansion("Unique")
def unique(step: Step) -> Sequence[Expr | None]:
    """y = x at the first place of each element"""
    x, attributes = step.x, dict(step.node.attributes)
    places = step.outputs[1] if len(step.outputs) > 1 else None
    if places is None:
        _, places = x.calls("Unique", x, outputs=2, **attributes)
    axis = attributes.get("axis")
    whole = x.reshape([-1]) if axis is None else x
    return (x.call("Gather", whole, places, axis=0 if axis is None else int(axis)),)


@expansion("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(step: Step) -> Sequence[Expr | None]:
    """y = x at the indices of the last axis"""
    x, indices = step.x, step.operand(1).reshape([-1])
    found = x.call("Gather", x, indices, axis=x.rank - 1)
    return (found.unsqueeze([0]) if x.rank == 1 else found,)


@gradient_rule("OneHot")
def one_hot(step: Step) -> Sequence[Expr | None]:
    """dvalues = (the sum of g at the other places, the sum of g at the indices)"""
    g, values = step.g, step.operand(2)
    axis = int(step.node.attr("axis"))
    hot = values.of(
        step.graph.op.OneHot(
            step.x.value, step.operand(1).value, _off_and_on(values).value, axis=axis
        )
    )
    on = (g * hot).sum(keepdims=False)
    off = g.sum(keepdims=False) - on
    return None, None, values.call("Concat", off.unsqueeze([0]), on.unsqueeze([0]), axis=0)


def _off_and_on(values: Expr) -> Expr:
    zero = values.integers([1]).full(0, values.dtype)
    return values.call("Concat", zero, values.integers([1]).full(1, values.dtype), axis=0)
