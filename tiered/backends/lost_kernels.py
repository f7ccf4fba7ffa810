"""Remarks about operators that onnxruntime ran, and that it does not run as a pass wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tiered.backends.known import get_backend

if TYPE_CHECKING:
    from tiered.graph import Model

_RUNTIME: Final = "onnxruntime_cpu"


@contextmanager
def noting_lost_kernels(model: Model) -> Iterator[None]:
    """Note the operators that onnxruntime has a kernel for before a block, and none after it.

    A conversion to another opset or dtype is right by the standard, and a runtime may lack it.
    """
    runtime = get_backend(_RUNTIME)
    before = {gap.operator for gap in runtime.coverage(model).gaps}
    yield
    for gap in runtime.coverage(model).gaps:
        if gap.operator not in before:
            count = f"{len(gap.nodes)} node{'s' if len(gap.nodes) > 1 else ''}"
            reasons = "; ".join(gap.reasons)
            model.note(
                f"onnxruntime has no kernel for {gap.operator} now ({count}, as "
                f"{gap.nodes[0].label!r}): {reasons}"
            )
