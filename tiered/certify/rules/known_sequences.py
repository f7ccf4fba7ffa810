"""Sequences of tensors, whose lengths and places are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import onnx

from tiered.certify.domains.terms import Array, listed, mix, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results, axis_of
from tiered.certify.evaluation.values import CheckedTensor, TensorList, Unproved
from tiered.certify.rules.element_lists import keeps_dims
from tiered.certify.rules.moves import concat, cut

Rule = Callable[[EvaluatedCall], Results]


def _list(call: EvaluatedCall) -> TensorList:
    found = call.operand(0)
    if not isinstance(found, TensorList):
        raise Unproved(f"the tensors of {call.op} are not known")
    return found


def _place(call: EvaluatedCall, index: int, size: int) -> int:
    """Return a place in a sequence; the last one if it is absent.

    Raises:
        Unproved: it is not known.
        NoRule: there is none: an error at run time.
    """
    if not call.has(index):
        return size - 1
    (at,) = call.operand(index).integers(f"the place of {call.op}")
    if not -size <= at < size:
        raise NoRule
    return at % size


def construct(call: EvaluatedCall) -> Results:
    return [TensorList(call.operand(0).dtype, [call.operand(at) for at in range(len(call.inputs))])]


def empty(call: EvaluatedCall) -> Results:
    return [TensorList(call.get("dtype", int(onnx.TensorProto.FLOAT)), [])]


def at(call: EvaluatedCall) -> Results:
    items = _list(call).items
    if call.operand(1).known is None and len({(x.dtype, x.shape) for x in items}) == 1:
        return [_one_of(call, items, call.operand(1))]
    return [items[_place(call, 1, len(items))]]


def _one_of(
    call: EvaluatedCall, items: Sequence[CheckedTensor], place: CheckedTensor
) -> CheckedTensor:
    """Return the tensor at an unknown place."""
    if all(item.key == items[0].key for item in items):
        return items[0]

    def make() -> Array:
        # As the rule of Gather has it.
        lanes = listed(seed_of("lane"), np.stack([x.terms for x in items], axis=-1))
        return mix(seed_of("chosen"), lanes, place.terms.reshape(()))

    return call.made(items[0].dtype, items[0].shape, make)


def length(call: EvaluatedCall) -> Results:
    count = np.asarray(len(_list(call).items), np.int64)
    return [call.constant(count, int(onnx.TensorProto.INT64))]


def insert(call: EvaluatedCall) -> Results:
    items = [*_list(call).items]
    at = len(items)
    if call.has(2):
        (at,) = call.operand(2).integers("the place of SequenceInsert")
    if not -len(items) <= at <= len(items):
        raise NoRule
    # As a list has it: the place of -1 is before the last tensor.
    items.insert(at, call.operand(1))
    return [TensorList(call.operand(1).dtype, items)]


def erase(call: EvaluatedCall) -> Results:
    items = [*_list(call).items]
    del items[_place(call, 1, len(items))]
    return [TensorList(call.operand(0).dtype, items)]


def split(call: EvaluatedCall) -> Results:
    """SplitToSequence: into parts of one size or of several; of size 1 the axis may go."""
    x = call.operand(0)
    axis = axis_of(call.get("axis", 0), x.rank)
    size = x.shape[axis]
    keeps = True
    if not call.has(1):
        sizes, keeps = [1] * size, keeps_dims(call)
    else:
        sizes = call.operand(1).integers("the sizes of SplitToSequence")
        if call.operand(1).rank == 0:
            if sizes[0] <= 0:
                raise NoRule
            sizes = [min(sizes[0], size - start) for start in range(0, size, sizes[0])]
    if sum(sizes) != size:
        raise NoRule
    items: list[CheckedTensor] = []
    start = 0
    for each in sizes:
        part = cut(call, x, axis, slice(start, start + each))
        shape = part.shape if keeps else (*x.shape[:axis], *x.shape[axis + 1 :])
        items.append(part if keeps else _reshaped(call, part, shape))
        start += each
    return [TensorList(x.dtype, items)]


def _reshaped(call: EvaluatedCall, x: CheckedTensor, shape: tuple[int, ...]) -> CheckedTensor:
    return call.moved(x, lambda a: a.reshape(shape), shape)


def joined(call: EvaluatedCall) -> Results:
    """ConcatFromSequence: along an axis, or along a new one."""
    items = [*_list(call).items]
    if not items:
        raise Unproved("ConcatFromSequence of nothing")
    axis = call.attributes["axis"]
    if call.get("new_axis", 0):
        axis = axis_of(axis, items[0].rank + 1)
        items = [_reshaped(call, x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in items]
    inner = EvaluatedCall(onnx.helper.make_node("Concat", [], [], axis=axis), items, call.opset,
                 call.domain, call.scope)  # fmt: skip
    inner.axioms = call.axioms
    return concat(inner)


SEQUENCES: Final[dict[str, Rule]] = {
    "ConcatFromSequence": joined,
    "SequenceAt": at,
    "SequenceConstruct": construct,
    "SequenceEmpty": empty,
    "SequenceErase": erase,
    "SequenceInsert": insert,
    "SequenceLength": length,
    "SplitToSequence": split,
}
