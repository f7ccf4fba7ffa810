"""The runtime that runs two models which are compared: another one than onnxruntime for halves.

onnxruntime computes most float16 operators in float32 and keeps the results wide between nodes, so
it hides overflow and rounding; bfloat16 it hardly runs. Models with such tensors run on
onnx.reference, whose arithmetic is that of the dtype. Where that does not run both models,
onnxruntime runs them one node at a time, which rounds at every node. Where not even that is
possible, onnxruntime runs them whole, with a note in the report. onnx.reference also runs both
where onnxruntime does not load the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

import onnx

from tiered.extensions.debug.pipeline_runs import ModelLike, folder_of, opened
from tiered.runtime.deviations import has_halves, has_narrow_floats
from tiered.runtime.external_data import MOST_READ, bytes_on_disk, take_in
from tiered.runtime.session import Runner, as_proto
from tiered.runtime.worker.client import shared_worker
from tiered.support.errors import (
    Crashed,
    MissingOperator,
    ModelError,
    OutOfMemory,
    RuntimeFailure,
    TimedOut,
    VerificationError,
)
from tiered.verify.part_extraction import GraphPart, cut
from tiered.verify.sliced_session import SlicedSession, open_model

R = TypeVar("R")

_DOES_NOT_RUN: Final = (RuntimeFailure, ModelError, VerificationError)
_NARROW: Final = "as a model has floats of 8 bits or fewer"
_HALVES: Final = "as a model has 16-bit floats, which onnxruntime computes in 32 bits"


@dataclass(frozen=True)
class Referee:
    """The runtime that ran two models.

    Attributes:
        runtime: "onnxruntime", "onnx.reference", or "onnxruntime node by node".
        why: the reason, if it is not plain onnxruntime.
    """

    runtime: str = "onnxruntime"
    why: str = ""

    def __str__(self) -> str:
        return f"{self.runtime}{f', {self.why}' if self.why else ''}"

    @contextmanager
    def open(self, source: ModelLike, folder: str = "") -> Iterator[Runner]:
        """Open a model there.

        Args:
            source: a file, or a proto.
            folder: where the external data of a proto is.

        Raises:
            RuntimeFailure: the runtime does not load it.
            ModelError: a file of weights is not as it should be.
        """
        match self.runtime:
            case "onnx.reference":
                whole = _inlined(source, folder)
                with open_model(shared_worker(), whole, reference=True) as session:
                    yield session
            case "onnxruntime node by node":
                where = folder or folder_of(source)
                part = GraphPart.of(as_proto(source))
                yield SlicedSession(part, where, shared_worker(), None)
            case _:
                with opened(source, folder) as session:
                    yield session


def refereed(first: ModelLike, second: ModelLike, compare: Callable[[Referee], R]) -> R:
    """Return a comparison on the runtime that computes in the dtypes of both models.

    Args:
        first, second: the models.
        compare: runs them on a runtime; what it raises of the last runtime is passed on.
    """
    protos = as_proto(first), as_proto(second)
    if not any(map(has_narrow_floats, protos)):
        try:
            return compare(Referee())
        except (MissingOperator, Crashed, TimedOut, OutOfMemory):
            raise
        except RuntimeFailure as error:
            why = f"as onnxruntime does not load the first model ({_first_line(error)})"
            if not _is_refused(first):
                raise
        return compare(Referee("onnx.reference", why))
    why = _HALVES if any(map(has_halves, protos)) else _NARROW
    try:
        return compare(Referee("onnx.reference", why))
    except _DOES_NOT_RUN as error:
        why = f"{why}; onnx.reference does not run both ({_first_line(error)})"
    try:
        return compare(Referee("onnxruntime node by node", why))
    except _DOES_NOT_RUN:
        return compare(Referee("onnxruntime", f"which may hide overflow and rounding, {why}"))


def _is_refused(source: ModelLike) -> bool:
    """Return whether onnxruntime does not load a model."""
    try:
        with opened(source):
            return False
    except RuntimeFailure:
        return True


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _inlined(source: ModelLike, folder: str) -> onnx.ModelProto:
    """Return a model with its weights inside, and its functions after those that they call.

    Raises:
        RuntimeFailure: it is too large for onnx.reference.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(as_proto(source))
    size = bytes_on_disk(proto)
    if size > MOST_READ:
        raise RuntimeFailure(
            f"the weights have {size / 2**20:,.0f} MiB, more than onnx.reference is given "
            f"({MOST_READ / 2**20:,.0f} MiB)"
        )
    take_in(proto, folder or folder_of(source))
    part = GraphPart.of(proto)
    return cut(part, part.everything(), {}, list(part.outputs), list(part.inputs))
