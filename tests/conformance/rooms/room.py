"""What a room is asked for, and how its results are judged."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from tests.conformance import refusals
from tests.conformance.fuzz_passes import trial
from tests.conformance.judge import (
    Feeds,
    Outputs,
    Trial,
    checker_verdict,
    describe,
    open_on_onnxruntime,
)
from tests.conformance.random_graphs import SIZES, random_feeds, random_model
from tests.conformance.random_networks import random_network
from tiered.graph.io.save import tensors_of
from tiered.runtime.compare.outputs import compare
from tiered.runtime.inputs.make import make_inputs
from tiered.runtime.session import Reference
from tiered.support.errors import RuntimeFailure, TieredError
from tiered.verify.changed_region import with_outputs

EXACT, TOLERANT, APPROXIMATE = 2, 3, 4
"""The levels whose promises a result keeps."""


class NotTried(Exception):
    """The room says nothing about this model, or the model does not run."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a room made of a model.

    Attributes:
        model: the result.
        level: the level whose promise about outputs it keeps; None if only validity is promised.
        inputs: the names of inputs in the original, by their names in the result, if they differ.
        outputs: the same for outputs.
        most: it keeps the promise where no integer is larger; None if it always does.
        why: what was asked for, for the report.
    """

    model: onnx.ModelProto
    level: int | None = EXACT
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    most: float | None = None
    why: str = ""


Room = Callable[[random.Random, onnx.ModelProto], Result]
"""Raises `NotTried` if there is nothing to judge, an error of tiered if the model is refused."""


class Refused(Exception):
    """The room refused a model."""


def fault_in(room: Room, seed: int) -> str:
    """Return what is wrong with what a room makes of a random model; "" if nothing.

    Raises:
        NotTried: the room says nothing about it.
        Refused: the room refuses the model with an error.
    """
    source = random.Random(seed)
    is_network = seed % 4 == 3
    model = random_network(seed) if is_network else random_model(source, source.randint(2, 20))
    trials = _trials(source, model)
    given = onnx.ModelProto()
    given.CopyFrom(model)
    try:
        result = room(source, given)
    except TieredError as error:
        if error.__cause__ is not None and not isinstance(error.__cause__, TieredError):
            return describe(error)  # something else went wrong within
        raise Refused(describe(error)) from error
    if given != model:
        return "the model that was given is changed"
    found = _complaint(model, result.model) or next(_differences(model, result, trials), "")
    return f"{result.why}: {found}" if found else ""


def _trials(source: random.Random, model: onnx.ModelProto) -> list[Trial]:
    """Return inputs of a model that it takes, with its outputs.

    Raises:
        NotTried: it does not run, or not twice in the same way.
    """
    trials = []
    try:
        for label, feeds in _feeds(source, model):
            expected = open_on_onnxruntime(model)(feeds)
            if compare(expected, open_on_onnxruntime(model)(feeds), "exact").ok:
                trials.append(trial(label, model, feeds, expected))
    except RuntimeFailure as error:
        if not trials:
            raise NotTried(str(error)) from error
    if not trials:
        raise NotTried("two runs differ")
    return trials


def _feeds(
    source: random.Random, model: onnx.ModelProto
) -> Iterator[tuple[str, dict[str, np.ndarray[Any, Any]]]]:
    dims = sizes_of(model)
    first = random_feeds(source, model, {"": 2, **dims})
    yield "random", first
    shapes = {name: array.shape for name, array in first.items()}
    for label in ("varied", "special"):
        made = make_inputs(
            model,
            seed=source.randrange(1 << 16),
            varied=label == "varied",
            special=label == "special",
            dims=dims,
        ).feeds
        if {name: array.shape for name, array in made.items()} == shapes:
            yield label, dict(made)


def sizes_of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the sizes with which a random model runs, by the names of its dims."""
    dims = [dim for info in model.graph.input for dim in info.type.tensor_type.shape.dim]
    return {dim.dim_param: SIZES.get(dim.dim_param, 4) for dim in dims if dim.dim_param}


def _complaint(model: onnx.ModelProto, made: onnx.ModelProto) -> str:
    """Return why a result is not valid, if the model was."""
    found = checker_verdict(made, full=True)
    if found and not checker_verdict(model, full=True):
        return f"invalid: {found[:300]}"
    return ""


def _differences(model: onnx.ModelProto, result: Result, trials: Sequence[Trial]) -> Iterator[str]:
    """Yield where the outputs of a result differ more than it promises.

    Where onnxruntime is known to fail on the result, or lacks kernels of the opset that was asked
    for, onnx.reference runs both.
    """
    names = [info.name for info in result.model.graph.input]
    for each in trials:
        if result.most is not None and _largest_integer(model, each.feeds) > result.most:
            continue
        wanted = {result.inputs.get(name, name): name for name in names}
        feeds = {new: each.feeds[old] for old, new in wanted.items() if old in each.feeds}
        if result.level is None:
            feeds = _as_declared(result.model, feeds)
        judge = each
        try:
            outputs = open_on_onnxruntime(result.model)(feeds)
        except RuntimeFailure as error:
            if result.level is None and "NOT_IMPLEMENTED" in str(error):
                return  # halves lack kernels; the passes note it
            is_known = refusals.is_known([result.model], error)
            if not is_known and not _has_no_kernel(model, result.model, error):
                yield f"{each.label}: does not run: {str(error)[:300]}"
                return
            judge, outputs = _by_definition(model, result, each, feeds)
        if result.level is not None:
            found = {result.outputs.get(name, name): array for name, array in outputs.items()}
            fault = judge.fault(result.level, result.model, found)
            if fault:
                yield f"{each.label}: {fault[:300]}"


def _has_no_kernel(model: onnx.ModelProto, made: onnx.ModelProto, error: RuntimeFailure) -> bool:
    """Return whether onnxruntime lacks a kernel of the opset that a result was converted to."""
    imports = [{each.domain: each.version for each in of.opset_import} for of in (model, made)]
    return "NOT_IMPLEMENTED" in str(error) and imports[0] != imports[1]


def _by_definition(
    model: onnx.ModelProto, result: Result, given: Trial, feeds: Feeds
) -> tuple[Trial, Outputs]:
    """Return the inputs with what onnx.reference gives of the model, and of the result.

    Raises:
        NotTried: onnx.reference does not run them.
    """
    try:
        expected = Reference(model).run(given.feeds)
        outputs = Reference(result.model).run(feeds)
    except RuntimeFailure as error:
        raise NotTried(str(error)) from error
    return trial(given.label, model, dict(given.feeds), expected), outputs


def _largest_integer(model: onnx.ModelProto, feeds: Feeds) -> float:
    """Return the largest magnitude of the integers that the main graph reads and computes.

    Raises:
        NotTried: onnxruntime does not hand out what the main graph computes.
    """
    inner = [name for node in model.graph.node for name in node.output if name]
    try:
        computed = open_on_onnxruntime(with_outputs(model, inner))(feeds)
    except RuntimeFailure as error:
        raise NotTried(str(error)) from error
    arrays = [*feeds.values(), *computed.values()]
    arrays += [onnx.numpy_helper.to_array(tensor) for tensor in tensors_of(model)]
    integers = [np.asarray(each) for each in arrays if np.asarray(each).dtype.kind in "iu"]
    # In float: the magnitude of the smallest integer is no integer.
    return max((float(np.abs(each.astype(float)).max(initial=0)) for each in integers), default=0)


def _as_declared(
    model: onnx.ModelProto, feeds: Mapping[str, np.ndarray[Any, Any]]
) -> dict[str, np.ndarray[Any, Any]]:
    """Return feeds of the dtypes that a model with other inputs declares."""
    dtypes = {info.name: info.type.tensor_type.elem_type for info in model.graph.input}
    return {
        name: array.astype(onnx.helper.tensor_dtype_to_np_dtype(dtypes[name]))
        for name, array in feeds.items()
    }
