"""Configs: their numbers, each state and what may follow it, dominators, and each refusal."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tiered import UsageError
from tiered.compat.ppq.configs.operations import OperationQuantizationConfig
from tiered.compat.ppq.configs.policies import (
    QuantizationPolicy,
    QuantizationProperty as P,
    RoundingPolicy,
)
from tiered.compat.ppq.configs.states import TRANSITIONS, QuantizationStates as S
from tiered.compat.ppq.configs.tensors import TensorQuantizationConfig

SYMMETRIC = QuantizationPolicy(P.PER_TENSOR + P.LINEAR + P.SYMMETRICAL)
ASYMMETRIC = QuantizationPolicy(P.PER_TENSOR + P.LINEAR + P.ASYMMETRICAL)
CHANNELS = QuantizationPolicy(P.PER_CHANNEL + P.LINEAR + P.SYMMETRICAL)
POWERS = QuantizationPolicy(P.PER_TENSOR + P.LINEAR + P.ASYMMETRICAL + P.POWER_OF_2)
EXPONENTIAL = QuantizationPolicy(P.PER_TENSOR + P.EXPONENTIAL + P.SYMMETRICAL)


def config(policy: QuantizationPolicy = SYMMETRIC, **options: Any) -> TensorQuantizationConfig:
    return TensorQuantizationConfig(policy, **options)


def ready(state: S = S.ACTIVATED) -> TensorQuantizationConfig:
    return config(scale=0.5, offset=0, state=state)


def in_state(state: S) -> TensorQuantizationConfig:
    """Return a config with a scale that came into a state by the way that leads there."""
    if state is S.OVERLAPPED:
        made = ready()
        made.dominated_by = ready()
    elif state.is_baked:
        made = ready(S.ACTIVATED if state is S.BAKED else S.PASSIVE)
        made.state = state
    else:
        made = ready(state)
    return made


# --- the scheme of a config without a scale -------------------------------------------------------


def test_a_scheme_changes_step_by_step_until_there_is_a_scale() -> None:
    made = config()
    made.policy, made.channel_axis = CHANNELS, 1
    made.num_of_bits, made.quant_min, made.quant_max = 4, -7, 7
    made.rounding = RoundingPolicy.ROUND_UP
    assert made.is_same_scheme(
        config(
            CHANNELS, num_of_bits=4, quant_min=-7, quant_max=7, channel_axis=1,
            rounding=RoundingPolicy.ROUND_UP,
        )
    )  # fmt: skip
    made.set_range(np.array([-1.0, -2]), np.array([1.0, 2]))
    for name in ("policy", "channel_axis", "num_of_bits", "quant_min", "quant_max", "rounding"):
        with pytest.raises(UsageError, match=f"the {name} of the config cannot change: it has a"):
            setattr(made, name, getattr(made, name))


def test_a_scheme_is_whole_before_it_has_a_scale() -> None:
    half, narrow = config(), config()
    half.policy = CHANNELS
    narrow.num_of_bits = 4
    with pytest.raises(UsageError, match="a policy for each channel has a channel_axis"):
        half.set_range(-1.0, 1.0)
    with pytest.raises(UsageError, match="a policy for each channel has a channel_axis"):
        half.scale = np.ones(2)
    with pytest.raises(UsageError, match="codes of 4 bits cannot be -128 to 127"):
        narrow.offset = 0


def test_the_scheme_of_a_dominated_config_is_that_of_its_dominator() -> None:
    made = in_state(S.OVERLAPPED)
    with pytest.raises(UsageError, match="another config dominates it"):
        made.policy = ASYMMETRIC


# --- states ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", S)
@pytest.mark.parametrize("before", S)
def test_a_state_follows_or_is_refused(before: S, after: S) -> None:
    made = in_state(before)
    if after is before or after in TRANSITIONS[before]:
        made.state = after
        assert made.state is after
    else:
        with pytest.raises(UsageError, match=r"does not become|set dominated_by"):
            made.state = after
        assert made.state is before


def test_the_transitions_are_these() -> None:
    pairs = {(before.name, after.name) for before in S for after in TRANSITIONS[before]}
    assert pairs == {
        ("INITIAL", "ACTIVATED"), ("INITIAL", "PASSIVE_INIT"), ("INITIAL", "SOI"),
        ("INITIAL", "FP32"),
        ("ACTIVATED", "INITIAL"), ("ACTIVATED", "BAKED"), ("ACTIVATED", "FP32"),
        ("PASSIVE_INIT", "PASSIVE"), ("PASSIVE_INIT", "SOI"), ("PASSIVE_INIT", "FP32"),
        ("PASSIVE", "PASSIVE_INIT"), ("PASSIVE", "PASSIVE_BAKED"), ("PASSIVE", "FP32"),
        ("FP32", "INITIAL"), ("FP32", "PASSIVE_INIT"),
    }  # fmt: skip


@pytest.mark.parametrize("state", S)
def test_dequantize_and_restore_are_inverse_and_idempotent(state: S) -> None:
    made = in_state(state)
    for _ in range(2):
        made.dequantize()
        assert made.state is S.FP32
        assert made.is_dequantized
        assert not made.is_revisable()
    with pytest.raises(UsageError, match="restore it before"):
        made.state = S.INITIAL
    with pytest.raises(UsageError, match=r"it is dequantized|another config"):
        made.scale = 1.0
    for _ in range(2):
        made.restore()
        assert made.state is state
        assert not made.is_dequantized


@pytest.mark.parametrize("state", [S.BAKED, S.PASSIVE_BAKED, S.OVERLAPPED])
def test_no_config_starts_in_a_state_that_others_lead_to(state: S) -> None:
    with pytest.raises(UsageError, match=f"no config starts as {state.name}"):
        ready(state)


@pytest.mark.parametrize("state", [S.ACTIVATED, S.PASSIVE])
def test_an_active_state_needs_scale_and_offset(state: S) -> None:
    with pytest.raises(UsageError, match="needs scale and offset"):
        config(state=state)
    made = config(scale=1.0, state=S.INITIAL if state is S.ACTIVATED else S.PASSIVE_INIT)
    with pytest.raises(UsageError, match="needs scale and offset"):
        made.state = state


def test_scales_have_as_many_offsets() -> None:
    made = config(CHANNELS, channel_axis=0, scale=[1, 2], offset=[0])
    with pytest.raises(UsageError, match="2 scales have 1 offsets"):
        made.state = S.ACTIVATED


def test_what_states_mean() -> None:
    assert {state for state in S if S.is_activated(state)} == {S.ACTIVATED, S.PASSIVE}
    assert {state for state in S if state.is_baked} == {S.BAKED, S.PASSIVE_BAKED}
    assert {state for state in S if state.is_float} == {S.SOI, S.FP32}
    assert {state for state in S if not in_state(state).can_export()} == {S.INITIAL, S.PASSIVE_INIT}
    fixed = {S.BAKED, S.PASSIVE_BAKED, S.OVERLAPPED, S.SOI}
    assert {state for state in S if not in_state(state).is_revisable()} == fixed


@pytest.mark.parametrize("state", [S.BAKED, S.PASSIVE_BAKED, S.OVERLAPPED, S.SOI])
def test_what_is_not_revisable_is_refused(state: S) -> None:
    made = in_state(state)
    before = made.scale
    changes: list[Callable[[], None]] = [
        lambda: setattr(made, "scale", 2.0),
        lambda: setattr(made, "offset", 0),
        lambda: made.set_range(-1, 1),
    ]
    for change in changes:
        with pytest.raises(UsageError, match="cannot change"):
            change()
    assert made.scale == before


# --- dominators -----------------------------------------------------------------------------------


def test_a_dominated_config_has_what_its_dominator_has() -> None:
    made, middle = config(), config()
    root = config(ASYMMETRIC, num_of_bits=4, quant_min=0, quant_max=15, scale=0.25, offset=3)
    made.dominated_by = middle
    middle.dominated_by = root
    assert made.dominated_by is root
    assert made.state is middle.state is S.OVERLAPPED
    assert made.scale == 0.25
    assert made.offset == 3
    assert made.policy == ASYMMETRIC
    assert (made.num_of_bits, made.quant_min, made.quant_max) == (4, 0, 15)
    root.scale = 0.5
    assert made.scale == 0.5
    made.dominated_by = middle
    assert made.dominated_by is root


def test_a_passive_config_stays_passive_under_a_dominator() -> None:
    made, root = config(state=S.PASSIVE_INIT), ready()
    made.dominated_by = root
    assert made.state is S.PASSIVE_INIT
    made.state = S.PASSIVE
    made.state = S.PASSIVE_BAKED
    assert made.scale == 0.5


def test_a_dominated_config_does_not_become_float() -> None:
    made = config(state=S.PASSIVE_INIT)
    made.dominated_by = ready()
    with pytest.raises(UsageError, match="a dominated config does not become FP32"):
        made.state = S.FP32


def test_no_config_dominates_itself() -> None:
    one, other = config(), config()
    with pytest.raises(UsageError, match="cannot dominate itself"):
        one.dominated_by = one
    one.dominated_by = other
    with pytest.raises(UsageError, match="cannot dominate itself"):
        other.dominated_by = one
    assert other.dominated_by is other


def test_a_config_has_one_dominator() -> None:
    made = in_state(S.OVERLAPPED)
    with pytest.raises(UsageError, match="dominated by another one"):
        made.dominated_by = config()


@pytest.mark.parametrize("state", [S.BAKED, S.PASSIVE_BAKED, S.SOI, S.FP32])
def test_some_states_have_no_dominator(state: S) -> None:
    with pytest.raises(UsageError, match=f"one that is {state.name}"):
        in_state(state).dominated_by = config()


@pytest.mark.parametrize("state", [S.SOI, S.FP32])
def test_a_float_config_dominates_none(state: S) -> None:
    made = config()
    with pytest.raises(UsageError, match="dominates none"):
        made.dominated_by = config(state=state)
    assert made.state is S.INITIAL


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_of_bits": 1, "quant_min": 0, "quant_max": 1}, "2 to 32 bits"),
        ({"num_of_bits": 33}, "2 to 32 bits"),
        ({"num_of_bits": 4}, "codes of 4 bits cannot be -128 to 127"),
        ({"quant_min": 5, "quant_max": 5}, "cannot be 5 to 5"),
        ({"quant_min": 1, "quant_max": 9}, "needs 0 among its codes"),
        ({"channel_axis": 0}, "channel_axis"),
        ({"policy": CHANNELS}, "channel_axis"),
        ({"scale": np.nan}, "finite"),
        ({"scale": np.inf}, "finite"),
        ({"scale": 0.0}, "at least"),
        ({"scale": -1.0}, "at least"),
        ({"scale": 1e-39}, "at least"),
        ({"scale": [1.0]}, r"one number, not of shape [1]"),
        ({"policy": CHANNELS, "channel_axis": 0, "scale": 1.0}, "a vector"),
        ({"policy": POWERS, "scale": 0.3}, "powers of two"),
        ({"offset": 1}, "the offset 0"),
        ({"offset": 0.5}, "integers"),
        ({"policy": ASYMMETRIC, "offset": 128}, "-128 to 127"),
        ({"policy": ASYMMETRIC, "offset": -129}, "-128 to 127"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        TensorQuantizationConfig(options.pop("policy", SYMMETRIC), **options)


def test_a_config_of_an_operation_holds_configs_only() -> None:
    wrong: Any = [None]
    with pytest.raises(UsageError, match="None is not a TensorQuantizationConfig"):
        OperationQuantizationConfig(wrong)


@pytest.mark.parametrize(("low", "high"), [(np.nan, 1.0), (0.0, np.inf)])
def test_a_range_is_finite(low: float, high: float) -> None:
    made = config()
    with pytest.raises(UsageError, match="not finite"):
        made.set_range(low, high)
    assert made.scale is None


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "low", "high", "scale", "offset"),
    [
        (SYMMETRIC, -2.0, 1.0, 2 / 128, 0),
        (SYMMETRIC, -1.0, 127.0, 1.0, 0),
        (ASYMMETRIC, 0.0, 255.0, 1.0, -128),
        (ASYMMETRIC, 1.0, 255.0, 1.0, -128),
        (ASYMMETRIC, -255.0, -3.0, 1.0, 127),
        (POWERS, 0.0, 300.0, 2.0, -128),
        (ASYMMETRIC, 0.0, 0.0, 1.0, -128),
    ],
)
def test_a_range_decides_scale_and_offset(
    policy: QuantizationPolicy, low: float, high: float, scale: float, offset: int
) -> None:
    made = config(policy)
    made.set_range(low, high)
    assert made.scale == np.float32(scale)
    assert made.offset == offset
    made.state = S.ACTIVATED
    ends = np.array([low, high, 0.0], np.float32)
    rounded = made.numbers(made.codes(ends))
    assert np.abs(rounded - ends).max() <= scale
    assert rounded[2] == 0


def test_each_channel_has_its_range() -> None:
    made = config(CHANNELS, channel_axis=1, quant_min=-127)
    made.set_range(np.array([-1.27, 0.0]), np.array([1.0, 2.54]))
    assert made.scale is not None
    np.testing.assert_allclose(made.scale, [0.01, 0.02])
    codes = made.codes(np.array([[1.0, 1.0], [-1.27, 9.0]], np.float32))
    np.testing.assert_array_equal(codes, [[100, 50], [-127, 127]])
    with pytest.raises(UsageError, match="2 scales on axis 1"):
        made.codes(np.zeros((2, 3), np.float32))


def test_codes_round_and_saturate() -> None:
    made = config(scale=0.5, offset=0, rounding=RoundingPolicy.ROUND_HALF_UP)
    array = np.array([0.25, -0.25, 1e38, -1e38, -0.0], np.float32)
    np.testing.assert_array_equal(made.codes(array), [1, 0, 127, -128, 0])


def test_codes_need_a_linear_policy_and_a_scale() -> None:
    with pytest.raises(UsageError, match="no scale and offset yet"):
        config().codes(np.zeros(1, np.float32))
    with pytest.raises(UsageError, match="exponentially"):
        config(EXPONENTIAL, scale=1.0, offset=0).codes(np.zeros(1, np.float32))


# --- copies ---------------------------------------------------------------------------------------


def test_a_copy_is_apart() -> None:
    made = ready()
    copy = made.copy()
    assert copy != made
    assert copy.is_same_scheme(made)
    copy.scale = 2.0
    copy.state = S.BAKED
    assert made.scale == 0.5
    assert made.state is S.ACTIVATED
    assert not config(quant_min=-127).is_same_scheme(made)


def test_a_copy_has_the_same_dominator() -> None:
    made = in_state(S.OVERLAPPED)
    assert made.copy().dominated_by is made.dominated_by
    whole = OperationQuantizationConfig([made], [ready()])
    assert [each.state for each in whole.copy()] == [S.OVERLAPPED, S.ACTIVATED]
