"""The states of a config, and which follows which."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class QuantizationStates(Enum):
    """What a config does now.

    Attributes:
        INITIAL: it has no range yet.
        BAKED: its parameter holds rounded numbers already.
        OVERLAPPED: another config, its dominator, quantises the tensor.
        ACTIVATED: it quantises the tensor.
        PASSIVE_INIT: its scale will follow from other operands, as that of a bias.
        PASSIVE: it quantises the tensor by a scale that followed from other operands.
        PASSIVE_BAKED: as PASSIVE, and its parameter holds rounded numbers already.
        SOI: the tensor is a shape or an index, which is never quantised.
        FP32: the tensor stays float.
    """

    INITIAL = 1
    BAKED = 2
    OVERLAPPED = 3
    ACTIVATED = 4
    PASSIVE_INIT = 5
    PASSIVE = 6
    PASSIVE_BAKED = 7
    SOI = 8
    FP32 = 9

    @classmethod
    def is_activated(cls, state: QuantizationStates) -> bool:
        """Return whether a tensor in this state is rounded at run time."""
        return state in (cls.ACTIVATED, cls.PASSIVE)

    @property
    def is_baked(self) -> bool:
        """Whether the parameter holds rounded numbers."""
        return self in (_S.BAKED, _S.PASSIVE_BAKED)

    @property
    def is_float(self) -> bool:
        """Whether the tensor is not quantised."""
        return self in (_S.SOI, _S.FP32)


_S = QuantizationStates
TRANSITIONS: Final[Mapping[QuantizationStates, frozenset[QuantizationStates]]] = {
    _S.INITIAL: frozenset({_S.ACTIVATED, _S.PASSIVE_INIT, _S.SOI, _S.FP32}),
    _S.ACTIVATED: frozenset({_S.INITIAL, _S.BAKED, _S.FP32}),
    _S.PASSIVE_INIT: frozenset({_S.PASSIVE, _S.SOI, _S.FP32}),
    _S.PASSIVE: frozenset({_S.PASSIVE_INIT, _S.PASSIVE_BAKED, _S.FP32}),
    _S.BAKED: frozenset(),
    _S.PASSIVE_BAKED: frozenset(),
    _S.OVERLAPPED: frozenset(),
    _S.SOI: frozenset(),
    _S.FP32: frozenset({_S.INITIAL, _S.PASSIVE_INIT}),
}
"""The states that may be set by hand after each state.

`dominated_by` leads to OVERLAPPED; `dequantize` and `restore` lead to FP32 and back from any.
"""
