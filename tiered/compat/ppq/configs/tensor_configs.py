"""Configs: how one operand or result of a node is quantised, and in which state that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, overload

import numpy as np

from tiered.compat.ppq.configs.policies import (
    QuantizationPolicy,
    QuantizationProperty,
    RoundingPolicy,
    rounded,
)
from tiered.compat.ppq.configs.states import TRANSITIONS, QuantizationStates
from tiered.numerics.quantization.scales import LEAST, affine_of, usable_scale
from tiered.support.amounts import counted
from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from tiered.numerics.calibration.observers import Method

Array = np.ndarray[Any, Any]


_S = QuantizationStates
_NEED_SCALE: Final = frozenset({_S.ACTIVATED, _S.PASSIVE, _S.BAKED, _S.PASSIVE_BAKED})
_STARTS: Final = frozenset(_S) - {_S.BAKED, _S.PASSIVE_BAKED, _S.OVERLAPPED}
_MAY_BE_DOMINATED: Final = frozenset({_S.INITIAL, _S.ACTIVATED, _S.PASSIVE_INIT, _S.PASSIVE})


T = TypeVar("T")


class _Counted(Generic[T]):
    """An attribute of the scheme: the dominator's counts, and it may change until it has a scale.

    Args:
        held: the name of the attribute that holds it.
    """

    def __init__(self, held: str) -> None:
        self._held = held

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, config: None, owner: type) -> Self: ...
    @overload
    def __get__(self, config: TensorQuantizationConfig, owner: type) -> T: ...
    def __get__(self, config: TensorQuantizationConfig | None, owner: type) -> Self | T:
        if config is None:
            return self
        found: T = getattr(config.dominated_by, self._held)
        return found

    def __set__(self, config: TensorQuantizationConfig, value: T) -> None:
        config._check_open(self._name)
        setattr(config, self._held, value)


class TensorQuantizationConfig:
    """How one operand or result of a node is quantised: codes are round(x / scale) + offset.

    Two configs are equal when they are the same object.

    Args:
        policy: its properties.
        num_of_bits: of a code.
        quant_min, quant_max: the least and the greatest code.
        rounding: which integer a number becomes.
        scale: finite and positive numbers of float32; one, or a vector with a scale for each
            channel. None until it is known.
        offset: as many integers; 0 for a symmetric policy.
        channel_axis: of a policy for each channel.
        observer_algorithm: how calibration chooses the range.
        state: INITIAL, PASSIVE_INIT, SOI, FP32; ACTIVATED and PASSIVE with scale and offset.

    Raises:
        UsageError: these do not go together.
    """

    def __init__(
        self,
        policy: QuantizationPolicy,
        num_of_bits: int = 8,
        quant_min: int = -128,
        quant_max: int = 127,
        *,
        rounding: RoundingPolicy = RoundingPolicy.ROUND_HALF_EVEN,
        scale: Array | float | None = None,
        offset: Array | int | None = None,
        channel_axis: int | None = None,
        observer_algorithm: Method = "minmax",
        state: QuantizationStates = QuantizationStates.INITIAL,
    ) -> None:
        if state not in _STARTS:
            raise UsageError(f"no config starts as {state.name}")
        self._policy, self._rounding, self._axis = policy, rounding, channel_axis
        self._bits, self._least, self._greatest = num_of_bits, quant_min, quant_max
        self._check_scheme()
        self.observer_algorithm = observer_algorithm
        self._dominator: TensorQuantizationConfig = self
        self._remembered: QuantizationStates | None = None
        self._scale = None if scale is None else self._checked_scale(scale)
        self._offset = None if offset is None else self._checked_offset(offset)
        self._check_scale_for(state)
        self._state = state

    # --- what it is -------------------------------------------------------------------------------

    policy = _Counted[QuantizationPolicy]("_policy")
    """The policy, the dominator's for a dominated config; so with all of these."""
    rounding = _Counted[RoundingPolicy]("_rounding")
    num_of_bits = _Counted[int]("_bits")
    quant_min = _Counted[int]("_least")
    quant_max = _Counted[int]("_greatest")
    channel_axis = _Counted[int | None]("_axis")

    @property
    def scale(self) -> Array | None:
        return self.dominated_by._scale

    @scale.setter
    def scale(self, scale: Array | float) -> None:
        self._check_revisable("scale")
        self._scale = self._checked_scale(scale)

    @property
    def offset(self) -> Array | None:
        return self.dominated_by._offset

    @offset.setter
    def offset(self, offset: Array | int) -> None:
        self._check_revisable("offset")
        self._offset = self._checked_offset(offset)

    def set_range(self, low: Array | float, high: Array | float) -> None:
        """Set scale and offset so that the codes represent a finite range, which has 0 added.

        Args:
            low, high: of the tensor; for each channel vectors.

        Raises:
            UsageError: an end is not finite, the ends are in another order or number, or the config
                cannot be changed now.
        """
        self._check_revisable("range")
        self._check_scheme()
        lows, highs = np.asarray(low, np.float64), np.asarray(high, np.float64)
        if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
            raise UsageError(f"the range {low} to {high} is not finite")
        if lows.shape != highs.shape or (lows > highs).any():
            raise UsageError(f"a range has its least end first, not {low} to {high}")
        pairs = [self._affine(*ends) for ends in zip(lows.flat, highs.flat, strict=True)]
        scales = np.array([scale for scale, _ in pairs], np.float32).reshape(lows.shape)
        offsets = np.array([offset for _, offset in pairs], np.int64).reshape(lows.shape)
        self._scale, self._offset = self._checked_scale(scales), self._checked_offset(offsets)

    def _affine(self, low: float, high: float) -> tuple[float, int]:
        least, greatest = self._least, self._greatest
        if self._policy.is_symmetric:
            below = -low / -least if least else 0.0
            scale, offset = usable_scale(max(high / greatest, below, 0.0)), 0
        else:
            scale, offset = affine_of(low, high, least, greatest)
        if not self._policy.is_power_of_2:
            return scale, offset
        scale = min(float(2.0 ** np.ceil(np.log2(scale))), 2.0**127)
        low = min(low, 0.0)
        offset = 0 if self._policy.is_symmetric else round(least - low / scale)
        return scale, int(np.clip(offset, least, greatest))

    def _checked_scale(self, scale: Array | float) -> Array:
        found = np.array(scale, np.float32)
        self._check_form("scale", found)
        if not (np.isfinite(found).all() and (found >= LEAST).all()):
            raise UsageError(f"scales are finite and at least 2**-126, not {scale}")
        if self._policy.is_power_of_2 and (np.frexp(found)[0] != 0.5).any():
            raise UsageError(f"the policy needs powers of two as scales, not {scale}")
        found.flags.writeable = False
        return found

    def _checked_offset(self, offset: Array | int) -> Array:
        given = np.asarray(offset)
        with np.errstate(invalid="ignore"):
            found = given.astype(np.int64)
        if not np.array_equal(found, given):
            raise UsageError(f"offsets are integers, not {offset}")
        self._check_form("offset", found)
        if self._policy.is_symmetric and found.any():
            raise UsageError(f"a symmetric policy has the offset 0, not {offset}")
        if (found < self._least).any() or (found > self._greatest).any():
            raise UsageError(f"offsets are {self._least} to {self._greatest}, not {offset}")
        found.flags.writeable = False
        return found

    def _check_open(self, what: str) -> None:
        """Raise unless the scheme may change, step by step: there is no scale yet."""
        self._check_revisable(what)
        if self._scale is not None or self._offset is not None:
            raise UsageError(f"the {what} of the config cannot change: it has a scale or an offset")

    def _check_scheme(self) -> None:
        """Raise if policy, codes and axis do not go together."""
        _check_codes(self._policy, self._bits, self._least, self._greatest)
        if self._policy.is_per_channel != (self._axis is not None):
            raise UsageError("a policy for each channel has a channel_axis, and no other has one")

    def _check_form(self, what: str, found: Array) -> None:
        self._check_scheme()
        rank = 1 if self._policy.is_per_channel else 0
        if found.ndim != rank:
            wanted = "a vector, one for each channel" if rank else "one number"
            raise UsageError(f"the {what} is {wanted}, not of shape {list(found.shape)}")

    # --- states -----------------------------------------------------------------------------------

    @property
    def state(self) -> QuantizationStates:
        return self._state

    @state.setter
    def state(self, state: QuantizationStates) -> None:
        if state is self._state:
            return
        if self._remembered is not None:
            raise UsageError(f"the config is dequantized: restore it before it is {state.name}")
        if state is _S.OVERLAPPED:
            raise UsageError("set dominated_by: a config is OVERLAPPED by another one")
        if state not in TRANSITIONS[self._state]:
            raise UsageError(f"{self._state.name} does not become {state.name}")
        if self._dominator is not self and state is not _S.PASSIVE and not state.is_baked:
            raise UsageError(f"a dominated config does not become {state.name}")
        self._check_scale_for(state)
        self._state = state

    def _check_scale_for(self, state: QuantizationStates) -> None:
        if state not in _NEED_SCALE:
            return
        scale, offset = self.scale, self.offset
        if scale is None or offset is None:
            raise UsageError(f"{state.name} needs scale and offset")
        if scale.shape != offset.shape:
            raise UsageError(f"{counted(scale.size, 'scale')} and {counted(offset.size, 'offset')}")

    @property
    def dominated_by(self) -> TensorQuantizationConfig:
        """The config whose scale counts: itself, or the one that no other dominates."""
        if self._dominator is not self:
            self._dominator = self._dominator.dominated_by
        return self._dominator

    @dominated_by.setter
    def dominated_by(self, dominator: TensorQuantizationConfig) -> None:
        root = dominator.dominated_by
        if dominator is self or root is self:
            raise UsageError("a config cannot dominate itself, directly or by others")
        if self._dominator is not self:
            if self.dominated_by is root:
                return
            raise UsageError("the config is dominated by another one; change that one")
        if self._state not in _MAY_BE_DOMINATED:
            raise UsageError(f"no config dominates one that is {self._state.name}")
        if root._state.is_float:
            raise UsageError(f"a config that is {root._state.name} dominates none")
        self._dominator = root
        if self._state not in (_S.PASSIVE_INIT, _S.PASSIVE):
            self._state = _S.OVERLAPPED

    @property
    def is_dequantized(self) -> bool:
        """Whether `dequantize` was called last, not `restore`."""
        return self._remembered is not None

    def dequantize(self) -> None:
        """Be FP32 until `restore`; a second call changes nothing."""
        if self._remembered is None:
            self._remembered, self._state = self._state, _S.FP32

    def restore(self) -> None:
        """Be in the state before `dequantize`; without it nothing changes."""
        if self._remembered is not None:
            self._state, self._remembered = self._remembered, None

    def is_revisable(self) -> bool:
        """Return whether scale and offset may be set now."""
        return self._refusal() == ""

    def _refusal(self) -> str:
        if self._dominator is not self:
            return "another config dominates it"
        if self._remembered is not None:
            return "it is dequantized"
        return f"it is {self._state.name}" if self._state.is_baked or self._state is _S.SOI else ""

    def _check_revisable(self, what: str) -> None:
        if refusal := self._refusal():
            raise UsageError(f"the {what} of the config cannot change: {refusal}")

    def can_export(self) -> bool:
        """Return whether a model file can have what the config does: Q/DQ, integers, or float."""
        return self._state not in (_S.INITIAL, _S.PASSIVE_INIT)

    # --- numbers ----------------------------------------------------------------------------------

    def codes(self, array: Array) -> Array:
        """Return the integers of numbers, as QuantizeLinear computes them, in int64.

        Raises:
            UsageError: the config has no scale, or the policy is not linear.
        """
        scale, offset = self._parameters(array)
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = rounded(array.astype(np.float32) / scale, self.rounding).astype(np.float64)
        codes: Array = np.clip(numbers + offset, self.quant_min, self.quant_max).astype(np.int64)
        return codes

    def numbers(self, codes: Array) -> Array:
        """Return the numbers of integers, as DequantizeLinear computes them."""
        scale, offset = self._parameters(codes)
        numbers: Array = (codes - offset).astype(np.float32) * scale
        return numbers

    def _parameters(self, array: Array) -> tuple[Array, Array]:
        """Return scale and offset in a shape that broadcasts."""
        if self.policy.has_property(QuantizationProperty.EXPONENTIAL):
            raise UsageError("no ONNX operator quantises exponentially; use a LINEAR policy")
        scale, offset, axis = self.scale, self.offset, self.channel_axis
        if scale is None or offset is None:
            raise UsageError("the config has no scale and offset yet")
        if axis is None:
            return scale, offset
        if not -array.ndim <= axis < array.ndim or array.shape[axis] != scale.size:
            scales = counted(scale.size, "scale")
            raise UsageError(f"{scales} on axis {axis} of shape {list(array.shape)}")
        shape = [1] * array.ndim
        shape[axis] = -1
        return scale.reshape(shape), offset.reshape(shape)

    # --- copies -----------------------------------------------------------------------------------

    def is_same_scheme(self, other: TensorQuantizationConfig) -> bool:
        """Return whether two configs differ in scale, offset and state only."""
        return self._scheme() == other._scheme()

    def _scheme(self) -> tuple[object, ...]:
        codes = self.num_of_bits, self.quant_min, self.quant_max
        return (self.policy, self.rounding, *codes, self.channel_axis)

    def copy(self) -> TensorQuantizationConfig:
        """Return a config that is equal but for its identity, with the same dominator."""
        made = TensorQuantizationConfig.__new__(TensorQuantizationConfig)
        made.__dict__.update(self.__dict__)
        if self._dominator is self:
            made._dominator = made
        return made

    def copy_among(
        self, copies: dict[TensorQuantizationConfig, TensorQuantizationConfig]
    ) -> TensorQuantizationConfig:
        """Return a copy, dominated by the copy of its dominator; `copies` has the earlier ones."""
        made = copies.get(self)
        if made is None:
            made = copies[self] = self.copy()
            if self._dominator is not self:
                made._dominator = self._dominator.copy_among(copies)
        return made

    def unbake(self) -> None:
        """Note that the parameter has its former numbers again, as an undone edit left it."""
        self._state = {_S.BAKED: _S.ACTIVATED, _S.PASSIVE_BAKED: _S.PASSIVE}.get(
            self._state, self._state
        )

    def __repr__(self) -> str:
        codes = f"{self.quant_min}..{self.quant_max}"
        return f"TensorQuantizationConfig({self._state.name}, {codes}, scale={self.scale})"


def _check_codes(policy: QuantizationPolicy, bits: int, least: int, greatest: int) -> None:
    if not 2 <= bits <= 32:
        raise UsageError(f"codes have 2 to 32 bits, not {bits}")
    if least >= greatest or greatest - least >= 1 << bits:
        raise UsageError(f"codes of {bits} bits cannot be {least} to {greatest}")
    if policy.is_symmetric and not least <= 0 < greatest:
        raise UsageError(f"a symmetric policy needs 0 among its codes, not {least} to {greatest}")
