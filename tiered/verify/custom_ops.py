"""Running models with custom operators, which neither onnxruntime nor onnx.reference knows.

What defines them is registered, or is in the profile of the backend. A body becomes a local
function of the model that runs, a library is registered with the session, and a Python reference
takes the place of the node between two parts of the model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import onnx

from tiered.context import PassContext
from tiered.graph.io.protos import nodes_of
from tiered.runtime.external_data import with_files
from tiered.runtime.session import as_proto
from tiered.support.errors import MissingOperator, RuntimeFailure
from tiered.targets import Backend
from tiered.targets.custom import DEFINITIONS, CustomOperator, Key

if TYPE_CHECKING:
    from tiered.runtime import Worker, WorkerSession
    from tiered.runtime.session import ModelLike

_REGISTERED: Final[dict[Key, CustomOperator]] = {}
_BACKEND: ContextVar[Backend | None] = ContextVar("tiered_custom_ops", default=None)
_UNKNOWN: Final = re.compile(
    r"(?:Fatal error: |No Op registered for )(?P<name>\S+?)(?:\(-?\d+\)| ).*(?:not a registered|$)"
)


def register_operator(
    name: str,
    *,
    body: str = "",
    reference: str | Callable[..., Any] | None = None,
    library: str | os.PathLike[str] = "",
) -> None:
    """Define a custom operator, so that models with it can be verified.

    Args:
        name: "domain::Name".
        body, reference, library: one of them; see `tiered.targets.CustomOperator`.

    Raises:
        BackendError: the name has no domain, or there is not exactly one definition.
    """
    operator = CustomOperator.of(name, body=body, reference=reference, library=os.fspath(library))
    _REGISTERED[operator.key] = operator


@contextmanager
def using(backend: Backend) -> Iterator[None]:
    """Use the definitions of a backend inside the block, instead of the context's."""
    token = _BACKEND.set(backend)
    try:
        yield
    finally:
        _BACKEND.reset(token)


def known() -> Mapping[Key, CustomOperator]:
    """Return the definitions in use: the backend's, then the registered ones."""
    backend, context = _BACKEND.get(), PassContext.current()
    if backend is None and context.names_backend:
        backend = context.backend
    own = {} if backend is None else {each.key: each for each in backend.custom_operators}
    return {**_REGISTERED, **own}


def references(proto: onnx.ModelProto) -> dict[Key, Callable[..., Any]]:
    """Return the Python references of the operators of a model.

    Raises:
        BackendError: one cannot be imported.
    """
    used = _used(proto)
    return {each.key: each.callable() for each in used if each.reference is not None}


def open_defined(
    worker: Worker, model: ModelLike, *, folder: str = "", **how: Any
) -> WorkerSession:
    """Open a model in a worker, with the bodies and libraries of its custom operators.

    Args:
        worker: where to run.
        model, folder, how: as for `Worker.open`.

    Raises:
        MissingOperator: the runtime has no such operator, and nothing defines it.
        RuntimeFailure: the runtime cannot load it.
        BackendError: a definition is wrong.
    """
    libraries: tuple[str, ...] = ()
    if known():
        proto = as_proto(model)
        used = _used(proto)
        libraries = tuple(dict.fromkeys(each.library for each in used if each.library))
        bodies = [each for each in used if each.body]
        if bodies:
            own = onnx.ModelProto()
            own.CopyFrom(proto)
            own.functions.extend(each.function(proto.opset_import) for each in bodies)
            if isinstance(model, str | os.PathLike):
                folder = with_files(own, os.path.dirname(os.path.abspath(model)))
            model = own
    try:
        return worker.open(model, folder=folder, libraries=libraries, **how)
    except RuntimeFailure as error:
        missing = _UNKNOWN.search(str(error))
        if missing is None:
            raise
        name = re.sub(r"(?<!:):(?!:)", "::", missing["name"])
        raise MissingOperator(
            f"cannot run: the runtime has no operator {name}, and nothing defines it; give it "
            f"{DEFINITIONS}: see docs/custom_operators.md"
        ) from error


def _used(proto: onnx.ModelProto) -> list[CustomOperator]:
    """Return the definitions of the operators of a model that are no local functions."""
    operators = known()
    if not operators:
        return []
    local = {(function.domain, function.name) for function in proto.functions}
    present = dict.fromkeys((node.domain, node.op_type) for node in nodes_of(proto))
    return [operators[key] for key in present if key in operators and key not in local]
