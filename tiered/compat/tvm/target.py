"""`tvm.target`: a target is a backend of tiered."""

from __future__ import annotations

from types import TracebackType
from typing import Final

from tiered.context import PassContext
from tiered.targets import Backend, get_backend

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
