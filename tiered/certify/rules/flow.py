"""If, Loop and Scan: bodies are evaluated where they are, with the values that they capture.

Two loops are equal if their bodies compute the same of free values, and they read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import onnx

from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import EvaluatedCall, Results, axis_of
from tiered.certify.evaluation.values import CheckedTensor, TensorList, Unproved
from tiered.certify.rules.bit_elementwise import BOOL
from tiered.certify.rules.logic import chosen_terms
from tiered.graph.core.types import TensorType, tensor_type

Rule = Callable[[EvaluatedCall], Results]
MOST_TURNS: Final = 64


def _present(value: CheckedTensor | None) -> CheckedTensor:
    if value is None:
        raise Unproved("a body has an output that is no tensor")
    return value


def if_(call: EvaluatedCall) -> Results:
    """Choose a branch if the condition is known; else choose element by element."""
    condition = call.operand(0)
    if condition.known is not None:
        name = "then_branch" if condition.known.ravel()[0] else "else_branch"
        return call.scope.body(call.attributes[name], [])
    names = ("then_branch", "else_branch")
    sides = [call.scope.body(call.attributes[name], []) for name in names]
    made: list[CheckedTensor | None] = []
    for one, other in zip(*sides, strict=True):
        if one.key == other.key:
            made.append(one)
            continue
        if isinstance(one, TensorList) or isinstance(other, TensorList):
            raise Unproved("the branches of an If have different sequences")
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Unproved("the branches of an If have results of different shapes")
        made.append(_chosen(call, condition, one, other))
    return made


def _chosen(
    call: EvaluatedCall, condition: CheckedTensor, one: CheckedTensor, other: CheckedTensor
) -> CheckedTensor:
    def make() -> Array:
        chosen = condition.terms.reshape(())
        return np.broadcast_to(chosen_terms(chosen, one.terms, other.terms), one.shape)

    return call.made(one.dtype, one.shape, make)


def loop(call: EvaluatedCall) -> Results:
    """Hash what the body computes of free states with all that the loop reads."""
    if call.scope.unrolls:
        return _unrolled_loop(call)
    body = call.attributes["body"]
    states = list(call.inputs[2:])
    int64, boolean = onnx.TensorProto.INT64, onnx.TensorProto.BOOL
    kinds = [tensor_type(int64, ()), tensor_type(boolean, ())]
    kinds += [tensor_type(_present(x).dtype, _present(x).shape) for x in states]
    outputs = _of_free(call, body, kinds)
    if [x.shape for x in outputs[1 : 1 + len(states)]] != [_present(x).shape for x in states]:
        raise Unproved("a Loop has states of changing shapes")
    scanned = outputs[1 + len(states) :]
    trips = call.operand(0).known if call.has(0) else None
    is_fixed = trips is not None and _goes_on(body, outputs[0], call)
    if scanned and not is_fixed:
        raise Unproved("a Loop whose number of iterations is not known has scanned outputs")
    count = 0 if trips is None else int(trips.ravel()[0])
    held = ("Loop", *(x.key for x in outputs), *(None if x is None else x.key for x in call.inputs))
    shapes = [(x.dtype, x.shape) for x in outputs[1 : 1 + len(states)]]
    shapes += [(x.dtype, (count, *x.shape)) for x in scanned]
    return [
        call.scope.free(TensorType(dtype, shape), (*held, at))
        for at, (dtype, shape) in enumerate(shapes)
    ]


def _goes_on(body: onnx.GraphProto, condition: CheckedTensor, call: EvaluatedCall) -> bool:
    """Return whether a loop ends with its trip count alone."""
    first = call.operand(1).known if call.has(1) else np.asarray(True)
    if first is None or not first.all():
        return False
    if condition.known is not None:
        return bool(condition.known.all())
    return condition.key == _free_input(call, 1, tensor_type(onnx.TensorProto.BOOL, ())).key


def _free_input(call: EvaluatedCall, at: int, kind: TensorType) -> CheckedTensor:
    return call.scope.free(kind, ("body", call.scope.depth, call.op, at))


def _of_free(
    call: EvaluatedCall, body: onnx.GraphProto, kinds: Sequence[TensorType]
) -> list[CheckedTensor]:
    inputs = [_free_input(call, at, kind) for at, kind in enumerate(kinds)]
    return call.scope.body(body, inputs)


def scan(call: EvaluatedCall) -> Results:
    if call.scope.unrolls and call.opset >= 9:
        return _unrolled_scan(call)
    body, count = call.attributes["body"], call.attributes["num_scan_inputs"]
    states = [_present(x) for x in call.inputs[: len(call.inputs) - count]]
    scanned = [_present(x) for x in call.inputs[len(states) :]]
    if call.opset < 9:
        raise Unproved("Scan of an old opset")
    axes = call.get("scan_input_axes") or [0] * count
    kinds = [tensor_type(x.dtype, x.shape) for x in states]
    length = scanned[0].shape[axes[0]]
    for x, axis in zip(scanned, axes, strict=True):
        at = axis + x.rank if axis < 0 else axis
        kinds.append(tensor_type(x.dtype, (*x.shape[:at], *x.shape[at + 1 :])))
    outputs = _of_free(call, body, kinds)
    if [x.shape for x in outputs[: len(states)]] != [x.shape for x in states]:
        raise Unproved("a Scan has states of changing shapes")
    made = outputs[len(states) :]
    out_axes = call.get("scan_output_axes") or [0] * len(made)
    how = tuple(
        tuple(call.get(name, ()))
        for name in ("scan_input_axes", "scan_input_directions", "scan_output_axes",
                     "scan_output_directions")
    )  # fmt: skip
    held = ("Scan", how, *(x.key for x in outputs), *(x.key for x in (*states, *scanned)))
    shapes = [(x.dtype, x.shape) for x in states]
    for x, axis in zip(made, out_axes, strict=True):
        at = axis + x.rank + 1 if axis < 0 else axis
        shapes.append((x.dtype, (*x.shape[:at], length, *x.shape[at:])))
    return [
        call.scope.free(TensorType(dtype, shape), (*held, at))
        for at, (dtype, shape) in enumerate(shapes)
    ]


# --- iteration by iteration -----------------------------------------------------------------------


def _unrolled_loop(call: EvaluatedCall) -> Results:
    """Evaluate the body once for each iteration; the trip count and the conditions are known."""
    body, states = call.attributes["body"], [_present(x) for x in call.inputs[2:]]
    trips = int(call.operand(0).numbers("the trip count of a Loop").ravel()[0])
    goes_on = call.constant(np.asarray(True), BOOL)
    first = call.operand(1) if call.has(1) else goes_on
    collected: list[list[CheckedTensor]] = []
    condition = first
    for turn in range(trips):
        if not condition.numbers("the condition of a Loop").all():
            break
        if turn >= MOST_TURNS:
            raise Unproved(f"a Loop of more than {MOST_TURNS} iterations")
        count = call.constant(np.asarray(turn, np.int64), int(onnx.TensorProto.INT64))
        made = call.scope.body(body, [count, goes_on, *states])
        condition, states = made[0], made[1 : 1 + len(states)]
        collected.append(made[1 + len(states) :])
    if len(body.output) > 1 + len(states) and not collected:
        raise Unproved("a Loop without iterations has scanned outputs")
    return [*states, *(_stacked(call, list(rows), 0) for rows in zip(*collected, strict=True))]


def _unrolled_scan(call: EvaluatedCall) -> Results:
    """Evaluate the body once for each slice of what is scanned."""
    body, count = call.attributes["body"], call.attributes["num_scan_inputs"]
    states = [_present(x) for x in call.inputs[: len(call.inputs) - count]]
    scanned = [_present(x) for x in call.inputs[len(states) :]]
    axes = [
        axis_of(axis, x.rank)
        for x, axis in zip(scanned, call.get("scan_input_axes") or [0] * count, strict=True)
    ]
    length = scanned[0].shape[axes[0]]
    if not 0 < length <= MOST_TURNS:
        raise Unproved(f"a Scan of {length} iterations")
    directions = call.get("scan_input_directions") or [0] * count
    collected: list[list[CheckedTensor]] = []
    for turn in range(length):
        rows = [
            _row(call, x, axis, length - 1 - turn if is_reverse else turn)
            for x, axis, is_reverse in zip(scanned, axes, directions, strict=True)
        ]
        made = call.scope.body(body, [*states, *rows])
        states = made[: len(states)]
        collected.append(made[len(states) :])
    outputs = [list(rows) for rows in zip(*collected, strict=True)]
    out_axes = call.get("scan_output_axes") or [0] * len(outputs)
    backwards = call.get("scan_output_directions") or [0] * len(outputs)
    return [
        *states,
        *(
            _stacked(call, rows[::-1] if is_reverse else rows, axis_of(axis, rows[0].rank + 1))
            for rows, axis, is_reverse in zip(outputs, out_axes, backwards, strict=True)
        ),
    ]


def _row(call: EvaluatedCall, x: CheckedTensor, axis: int, at: int) -> CheckedTensor:
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return call.moved(x, lambda a: a.take(at, axis), shape)


def _stacked(call: EvaluatedCall, rows: Sequence[CheckedTensor], axis: int) -> CheckedTensor:
    """Return tensors of one shape as one of a rank more."""
    first = rows[0]
    if any(row.shape != first.shape for row in rows):
        raise Unproved("a loop collects tensors of different shapes")
    numbers = [row.known for row in rows if row.known is not None]
    if len(numbers) == len(rows):
        return call.constant(np.stack(numbers, axis), first.dtype)
    shape = (*first.shape[:axis], len(rows), *first.shape[axis:])
    return call.made(first.dtype, shape, lambda: np.stack([row.terms for row in rows], axis))


FLOW: Final[dict[str, Rule]] = {"If": if_, "Loop": loop, "Scan": scan}
