"""Opening a model to verify it: whole, or in parts around what Python computes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tiered.verify.custom_ops import as_proto, known, open_defined, references
from tiered.verify.extract import Part
from tiered.verify.sliced_session import SlicedSession

if TYPE_CHECKING:
    from tiered.runtime import Worker
    from tiered.runtime.session import ModelLike, Runner


@contextmanager
def open_model(
    worker: Worker, model: ModelLike, *, folder: str = "", **how: Any
) -> Iterator[Runner]:
    """Open a model in a worker, with what defines its custom operators.

    Args:
        worker: where to run.
        model, folder, how: as for `Worker.open`.

    Raises:
        MissingOperator: the runtime has no such operator, and nothing defines it.
        RuntimeFailure: the runtime cannot load it.
        BackendError: a definition is wrong.
    """
    proto = as_proto(model) if any(each.reference for each in known().values()) else None
    if proto is None or not references(proto):
        with open_defined(worker, model, folder=folder, **how) as session:
            yield session
        return
    if isinstance(model, str | os.PathLike):
        folder = os.path.dirname(os.path.abspath(model))
    how.pop("label", None)  # each part has its own
    yield SlicedSession(Part.of(proto), folder, worker, sys.maxsize, **how)
