"""If, Loop and Scan: bodies are evaluated where they are, with the values that they capture.

Two loops are equal if their bodies compute the same of free values, and they read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import onnx

from tiered.certify.call import Call, Results
from tiered.certify.terms import Array, Seed, mix, seed_of
from tiered.certify.values import Tensor, Unproved
from tiered.graph.core.types import TensorType, tensor_type

Rule = Callable[[Call], Results]


def _present(value: Tensor | None) -> Tensor:
    if value is None:
        raise Unproved("a body has an output that is no tensor")
    return value


def if_(call: Call) -> Results:
    """Choose a branch if the condition is known; else choose element by element."""
    condition = call.operand(0)
    if condition.known is not None:
        name = "then_branch" if condition.known.reshape(-1)[0] else "else_branch"
        return call.scope.body(call.attributes[name], [])
    names = ("then_branch", "else_branch")
    sides = [call.scope.body(call.attributes[name], []) for name in names]
    seed = seed_of("Where")
    made: list[Tensor | None] = []
    for one, other in zip(*sides, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Unproved("the branches of an If have results of different shapes")
        made.append(_chosen(call, seed, condition, one, other))
    return made


def _chosen(call: Call, seed: Seed, condition: Tensor, one: Tensor, other: Tensor) -> Tensor:
    def make() -> Array:
        chosen = condition.terms.reshape(())
        return np.broadcast_to(mix(seed, chosen, one.terms, other.terms), one.shape)

    return call.made(one.dtype, one.shape, make)


def loop(call: Call) -> Results:
    """Hash what the body computes of free states with all that the loop reads."""
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
    count = 0 if trips is None else int(trips.reshape(-1)[0])
    held = ("Loop", *(x.key for x in outputs), *(None if x is None else x.key for x in call.inputs))
    shapes = [(x.dtype, x.shape) for x in outputs[1 : 1 + len(states)]]
    shapes += [(x.dtype, (count, *x.shape)) for x in scanned]
    return [
        call.scope.free(TensorType(dtype, shape), (*held, at))
        for at, (dtype, shape) in enumerate(shapes)
    ]


def _goes_on(body: onnx.GraphProto, condition: Tensor, call: Call) -> bool:
    """Return whether a loop ends with its trip count alone."""
    first = call.operand(1).known if call.has(1) else np.asarray(True)
    if first is None or not first.all():
        return False
    if condition.known is not None:
        return bool(condition.known.all())
    return condition.key == _free_input(call, 1, tensor_type(onnx.TensorProto.BOOL, ())).key


def _free_input(call: Call, at: int, kind: TensorType) -> Tensor:
    return call.scope.free(kind, ("body", call.scope.depth, call.op, at))


def _of_free(call: Call, body: onnx.GraphProto, kinds: Sequence[TensorType]) -> list[Tensor]:
    inputs = [_free_input(call, at, kind) for at, kind in enumerate(kinds)]
    return call.scope.body(body, inputs)


def scan(call: Call) -> Results:
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


FLOW: Final[dict[str, Rule]] = {"If": if_, "Loop": loop, "Scan": scan}
