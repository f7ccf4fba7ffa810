"""`tvm.target` and `relay.build`: a target is a backend of tiered."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final

import tiered
from tiered.backends import Backend, get_backend
from tiered.context import PassContext

KINDS: Final = {"cuda": "tensorrt", "llvm": "onnxruntime_cpu"}
"""The backend for a kind of target of TVM; other kinds are names of backends."""


class Target:
    """A target, from its text: the name of a backend, or TVM's "llvm -mcpu=core-avx2".

    As a context it is the backend of the passes in it.

    Raises:
        BackendNotFoundError: there is no such backend.
    """

    def __init__(self, target: str | Target) -> None:
        self.text: str = str(target)
        kind = self.text.split()[0] if self.text.split() else ""
        self.backend: Backend = get_backend(KINDS.get(kind, kind))
        self._entered: list[PassContext] = []

    def __enter__(self) -> Target:
        context = PassContext(backend=self.backend)
        context.__enter__()
        self._entered.append(context)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._entered.pop().__exit__(kind, error, traceback)

    def __str__(self) -> str:
        return self.text


def create(target: str | Target) -> Target:
    """Return a target; deprecated in TVM, for `Target`."""
    return Target(target)


def build(mod: Any, target: str | Target | None = None, params: Any = None, **settings: Any) -> Any:
    """Return the model optimised for a target, at the level of the context around the call.

    Args:
        mod: a `tiered.Model`, which is edited and returned, or a ModelProto, which stays.
        target: the target; without it, that of the context.
        params: must be empty: the weights are in the model.
        settings: more of `tiered.optimize`.

    Raises:
        UsageError: there are params.
    """
    if params:
        raise tiered.UsageError("build takes no params: the weights of a model are in it")
    if target is not None:
        settings["backend"] = Target(target).backend
    result = tiered.optimize_model(mod, **settings).model
    return result if isinstance(mod, tiered.Model) else result.to_proto()
