"""`tvm.target`: a target is a backend of tiered."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

from tiered.context import PassContext
from tiered.support.errors import UsageError
from tiered.targets import Backend, get_backend

KINDS: Final = {"cuda": "tensorrt", "llvm": "onnxruntime_cpu"}
"""The backend for a kind of target of TVM; other kinds are names of backends."""


class Target:
    """A target, from its text: the name of a backend, or TVM's "llvm -mcpu=core-avx2".

    As a context it is the backend of the passes in it.

    Args:
        target: the text; or a mapping: TVM's attributes of a target with its `kind`, or the target
            of one device.
        host: accepted, and without effect: onnxruntime runs what a backend does not take.

    Raises:
        BackendNotFoundError: there is no such backend.
        UsageError: a mapping has targets of several devices.
    """

    def __init__(
        self, target: str | Target | Mapping[Any, Any], host: str | Target | None = None
    ) -> None:
        if isinstance(target, Mapping):
            target = _only(target)
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


def _only(targets: Mapping[Any, Any]) -> Any:
    """Return the kind of a target by its attributes, or the target of the only device."""
    if "kind" in targets:
        return targets["kind"]
    if len(targets) != 1:
        raise UsageError(
            f"a build is for one target, not for {len(targets)}: {', '.join(map(str, targets))}; "
            "annotate_target and partition_graph split a model among several"
        )
    return next(iter(targets.values()))


def create(target: str | Target) -> Target:
    """Return a target; deprecated in TVM, for `Target`."""
    return Target(target)
