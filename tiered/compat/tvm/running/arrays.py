"""The arrays of TVM: `tvm.nd.array`."""

from __future__ import annotations

from typing import Any

import numpy as np


class NDArray(np.ndarray[Any, Any]):
    """An array with `numpy()`, as results have it in TVM."""

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the array."""
        return self.view(np.ndarray)

    asnumpy = numpy


def array(given: Any, device: Any = None) -> NDArray:
    """Return an array as TVM's `nd.array`; `device` is accepted, and without effect."""
    return np.asarray(given).view(NDArray)
