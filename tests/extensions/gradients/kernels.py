"""Kernels for onnx.reference, where its own compute in float only or lack a form."""

from __future__ import annotations

from math import erf
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

Array = np.ndarray[Any, Any]

_erf = np.vectorize(erf, otypes=["d"])


class Erf(OpRun):
    """The error function in double: that of onnx.reference rounds to float."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.asarray(_erf(x), x.dtype),)


class Gelu(OpRun):
    """x Phi(x) in double: the body of the operator uses the error function of onnx.reference."""

    op_domain = ""

    def _run(self, x: Array, approximate: str | None = None) -> tuple[Array]:
        if approximate == "tanh":
            inner = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
        else:
            inner = _erf(x / np.sqrt(2))
        return (np.asarray(x / 2 * (1 + inner), x.dtype),)


class Pad(OpRun):
    """Pad with negative pads, which crop: onnx.reference refuses them."""

    op_domain = ""

    def _run(
        self,
        x: Array,
        pads: Array,
        value: Array | None = None,
        axes: Array | None = None,
        mode: str | None = None,
    ) -> tuple[Array]:
        places = range(x.ndim) if axes is None else [int(axis) % x.ndim for axis in axes]
        widths = [(0, 0)] * x.ndim
        for at, axis in enumerate(places):
            widths[axis] = (int(pads[at]), int(pads[at + len(places)]))
        kept = tuple(
            slice(max(-before, 0), size - max(-after, 0))
            for size, (before, after) in zip(x.shape, widths, strict=True)
        )
        grown = [(max(before, 0), max(after, 0)) for before, after in widths]
        number = 0 if value is None else np.asarray(value).item()
        if mode in (None, "constant"):
            return (np.pad(x[kept], grown, constant_values=number).astype(x.dtype),)
        return (np.pad(x[kept], grown, mode=_MODES[str(mode)]),)


_MODES: dict[str, Any] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
