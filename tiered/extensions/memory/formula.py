"""The bytes that are alive at a node as a polynomial in the dynamic dims."""

from __future__ import annotations

from tiered.extensions.memory.liveness import MemoryPlan
from tiered.graph import Model, Value
from tiered.graph.core.dtypes import bits_of
from tiered.graph.shape_inference.symbolic_dims import Size, add, divide, is_invented, multiply


def peak_formula(model: Model, plan: MemoryPlan) -> Size | None:
    """Return the bytes alive at the peak of a plan, for any sizes of the dynamic dims.

    With other sizes the peak may be at another node. None if a size is not known or depends on
    values, or if a body at the peak has tensors of its own.

    Args:
        model: the model.
        plan: its plan.
    """
    if plan.unknown or plan.peak_at < 0:  # values of unknown rank count as nothing in a plan
        return None
    if model.main.topological_order()[plan.peak_at].bodies:
        return None
    total: Size = 0
    for each in plan.alive_at(plan.peak_at):
        size = _bytes(model.main.values[each.name])
        if size is None:
            return None
        total = add(total, size)
    return total


def _bytes(value: Value) -> Size | None:
    """Return the bytes of a tensor; None for an unknown dim, or parts of a byte for some dims."""
    width = bits_of(value.dtype or 0)
    if not width or value.shape is None:
        return None
    bits: Size = width
    for dim in value.shape:
        size = value.owner.model.dims.size(dim)
        if size is None or is_invented(dim):
            return None
        bits = multiply(bits, size)
    if isinstance(bits, int):
        return -(-bits // 8)
    return divide(bits, 8)
