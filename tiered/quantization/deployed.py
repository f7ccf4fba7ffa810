"""A quantised model as onnxruntime runs it on this processor: its ratio, and why it is worse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import onnx

from tiered.errors import RuntimeFailure
from tiered.precision.noise import Reference
from tiered.quantization.scheme import Scheme
from tiered.runtime.byte_products import byte_products

SATURATION: Final = (
    "8-bit products saturate on this processor (no VNNI); weights of 7 bits (--reduce-range) "
    "avoid that"
)

_DEVIATION: Final = 1.0
"""A difference in dB that onnxruntime's optimisations may make without a remark."""


def saturates(scheme: Scheme, op_types: Iterable[str]) -> bool:
    """Return whether sums of products of a scheme saturate in onnxruntime on this processor.

    Args:
        scheme: of the quantised model.
        op_types: of its products.
    """
    return any(map(scheme.may_saturate, op_types)) and byte_products() == "saturate"


def deployed_ratio(proto: onnx.ModelProto, reference: Reference) -> float | None:
    """Return the ratio with onnxruntime's own optimisations; None if these do not run the model.

    None without an output of floats too.
    """
    try:
        return reference.deployed(proto)
    except RuntimeFailure:
        return None


def runs_deployed(proto: onnx.ModelProto, reference: Reference) -> bool:
    """Return whether onnxruntime's own optimisations run the model."""
    try:
        reference.deployed(proto)
    except RuntimeFailure:
        return False
    return True


def deviation(
    sqnr: float, deployed: float | None, *, is_saturated: bool = False, has_returned: bool = False
) -> str:
    """Return what onnxruntime's own optimisations do to a quantised model; empty if little.

    Args:
        sqnr: the ratio of exact sums, in dB.
        deployed: that with the optimisations; None if these do not run the model.
        is_saturated: whether sums of products saturate, as `saturates` returns it.
        has_returned: whether products returned to float for a budget, which is then that of
            saturated sums.
    """
    if deployed is None:
        return "onnxruntime does not run the model with its own optimisations"
    if deployed == sqnr or abs(deployed - sqnr) <= _DEVIATION:
        return SATURATION if is_saturated and has_returned else ""
    cause = f": {SATURATION}" if is_saturated and deployed < sqnr else ""
    return f"with onnxruntime's own optimisations the outputs have {deployed:.1f} dB{cause}"
