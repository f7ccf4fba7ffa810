"""`simplify_fc_transpose.convert`: compute the Transposes of the weights of products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiered.compat.tvm.constructors import SimplifyFCTranspose, search_fc_transpose
from tiered.compat.tvm.running.modules import applied

__all__ = ["convert"]


def convert(
    func: Any, params: Mapping[str, Any] | None = None
) -> tuple[Any, Mapping[str, Any] | None]:
    """Return the model with transposed weights, and the params as they are.

    Args:
        func: a `tiered.Model`, which is edited and returned; or a ModelProto or a main graph, which
            stay.
        params: not used: a model has its weights with it.
    """
    names = search_fc_transpose(func)
    return (applied(SimplifyFCTranspose(names), func) if names else func), params
