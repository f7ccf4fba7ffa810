"""A quantised model as onnxruntime runs it on a processor: its ratio, and why it is worse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal, get_args

import onnx

from tiered.numerics.precision.noise import FloatReference
from tiered.numerics.quantization.scheme import PRODUCTS, Scheme
from tiered.runtime.byte_products import byte_products
from tiered.support.errors import RuntimeFailure, UsageError

SATURATION: Final = (
    "8-bit products saturate on this processor (no VNNI); --for avx2 keeps pairs of weights from "
    "that"
)

Processor = Literal["avx2", "vnni", "any"]
"""Where a quantised model runs: x86-64 without VNNI, where pairs of products saturate; a processor
with exact sums; or one that is not known, which is treated as the first."""

PROCESSORS: Final[tuple[Processor, ...]] = get_args(Processor)


def scheme_for(
    scheme: Scheme, processor: Processor | None, *, reduce_range: bool | None, is_here: bool
) -> Scheme:
    """Return a scheme with weights for a processor.

    Args:
        scheme: of the target.
        processor: as the user names it; None for the one at hand, which is asked.
        reduce_range: weights of 7 bits, or of 8 without limits, as the user says; None for neither.
        is_here: whether the target is onnxruntime on the processor at hand.

    Raises:
        UsageError: a processor is named, and no products of the scheme may saturate.
    """
    if reduce_range is not None:
        scheme = replace(scheme, reduce_range=reduce_range)
    elif processor is not None:
        scheme = replace(scheme, reduce_range=False)
    if not any(map(scheme.may_saturate, PRODUCTS)):
        if processor is not None:
            reason = "the target multiplies no uint8 by int8"
            if scheme.reduce_range:
                reason = "weights of 7 bits never saturate"
            raise UsageError(f"the processor {processor!r} (--for) has no effect: {reason}")
        return scheme
    if processor is not None:
        return replace(scheme, keeps_pairs=processor != "vnni")
    is_asked = is_here and reduce_range is None
    return replace(scheme, keeps_pairs=is_asked and byte_products() != "exact")


_DEVIATION: Final = 1.0
"""A difference in dB that onnxruntime's optimisations may make without a remark."""


def saturates(scheme: Scheme, op_types: Iterable[str]) -> bool:
    """Return whether sums of products of a scheme saturate in onnxruntime on this processor.

    Args:
        scheme: of the quantised model.
        op_types: of its products.
    """
    return any(map(scheme.may_saturate, op_types)) and byte_products() == "saturate"


def deployed_ratio(proto: onnx.ModelProto, reference: FloatReference) -> float | None:
    """Return the ratio with onnxruntime's own optimisations; None if these do not run the model.

    None without an output of floats too.
    """
    try:
        return reference.deployed(proto)
    except RuntimeFailure:
        return None


def runs_deployed(proto: onnx.ModelProto, reference: FloatReference) -> bool:
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
