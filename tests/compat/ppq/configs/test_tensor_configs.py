"""Configs: their numbers, each state and what may follow it, dominators, and each refusal."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.recorded import assert_values
from tiered import UsageError
from tiered.compat.ppq.configs.operations import OperationQuantizationConfig
from tiered.compat.ppq.configs.policies import (
    QuantizationPolicy,
    QuantizationProperty as P,
    RoundingPolicy,
)
from tiered.compat.ppq.configs.states import TRANSITIONS, QuantizationStates as S
from tiered.compat.ppq.configs.tensor_configs import TensorQuantizationConfig

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
    with pytest.raises(UsageError, match="2 scales and 1 offset"):
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


def numbers(of: TensorQuantizationConfig) -> tuple[float, int]:
    """Return scale and offset of a config for the whole tensor."""
    assert of.scale is not None
    assert of.offset is not None
    return float(of.scale), int(of.offset)


# --- ends and limits ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.0, -1.0), ([0.0, 1.0], [1.0, 0.5]), ([0.0], [1.0, 2.0]), (0.0, [1.0, 2.0])],
)
def test_a_range_has_its_ends_in_order(low: Any, high: Any) -> None:
    made = config(CHANNELS, channel_axis=0) if isinstance(high, list) else config()
    with pytest.raises(UsageError, match="a range has its least end first, not "):
        made.set_range(low, high)
    assert made.scale is None


def test_a_range_may_be_one_number() -> None:
    made = config()
    made.set_range(12.7, 12.7)
    assert made.scale == np.float32(0.1)


@pytest.mark.parametrize("low", [0.0, -3.0])
def test_symmetric_codes_from_0_count_positive_numbers_only(low: float) -> None:
    made = config(quant_min=0, quant_max=255)
    made.set_range(low, 51.0)
    assert numbers(made) == (float(np.float32(0.2)), 0)


def test_the_greatest_power_of_two_is_2_to_127() -> None:
    made = config(
        QuantizationPolicy(P.PER_TENSOR + P.LINEAR + P.SYMMETRICAL + P.POWER_OF_2),
        num_of_bits=2,
        quant_min=-1,
        quant_max=1,
    )
    made.set_range(0.0, 2.0**127 * 1.5)
    assert made.scale == np.float32(2.0**127)
    assert made.offset == 0


def test_powers_of_two_hold_the_range_with_an_offset() -> None:
    made = config(POWERS)
    made.set_range(-60.0, 195.0)  # 255 of codes: a step of 1
    assert numbers(made) == (1.0, -68)
    made.set_range(-60.0, 196.0)  # one more: a step of 2
    assert numbers(made) == (2.0, -98)
    made.set_range(5.0, 255.0)
    assert numbers(made) == (1.0, -128)


@pytest.mark.parametrize(
    "options",
    [
        {"num_of_bits": 2, "quant_min": -2, "quant_max": 1},
        {"num_of_bits": 32, "quant_min": -(2**31), "quant_max": 2**31 - 1},
        {"num_of_bits": 8, "quant_min": 0, "quant_max": 255},
        {"quant_min": 0, "quant_max": 1},
        {"scale": 2.0**-126},
        {"policy": ASYMMETRIC, "offset": 127},
        {"policy": ASYMMETRIC, "offset": -128},
        {"policy": ASYMMETRIC, "quant_min": 3, "quant_max": 9, "offset": 3},
        {"policy": POWERS, "scale": 0.25},
        {"offset": 0.0},
        {"policy": CHANNELS, "channel_axis": -1, "scale": [1.0], "offset": [0]},
    ],
)
def test_what_goes_together_is_taken(options: dict[str, Any]) -> None:
    TensorQuantizationConfig(options.pop("policy", SYMMETRIC), **options)


@pytest.mark.parametrize("offset", [np.nan, np.inf, 2.0**70, [0]])
def test_an_offset_is_an_integer_of_the_codes(offset: Any) -> None:
    with pytest.raises(UsageError, match=r"offsets are integers, not|one number"):
        config(ASYMMETRIC, offset=offset)


def test_the_codes_are_eight_bits_and_halves_round_to_even_by_default() -> None:
    made = config()
    assert (made.num_of_bits, made.quant_min, made.quant_max) == (8, -128, 127)
    assert made.rounding is RoundingPolicy.ROUND_HALF_EVEN
    assert (made.observer_algorithm, made.state, made.channel_axis) == ("minmax", S.INITIAL, None)
    assert (made.scale, made.offset, made.dominated_by) == (None, None, made)


def test_numbers_are_kept_apart_and_read_only() -> None:
    scale = np.array([1.0, 2.0], np.float32)
    made = config(CHANNELS, channel_axis=0, scale=scale, offset=np.zeros(2, int))
    scale[0] = 5
    assert made.scale is not None
    assert made.offset is not None
    assert made.scale[0] == 1
    for held in (made.scale, made.offset):
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 3


@pytest.mark.parametrize(("axis", "shape"), [(0, (2, 3)), (-1, (3, 2)), (1, (3, 2)), (-2, (2, 1))])
def test_scales_belong_to_an_axis(axis: int, shape: tuple[int, ...]) -> None:
    made = config(CHANNELS, channel_axis=axis, scale=[1.0, 2.0], offset=[0, 0])
    array = np.full(shape, 4.0, np.float32)
    codes = made.codes(array)
    rows = np.moveaxis(codes, axis, 0)
    np.testing.assert_array_equal(rows[0], np.full(rows[0].shape, 4))
    np.testing.assert_array_equal(rows[1], np.full(rows[1].shape, 2))
    np.testing.assert_array_equal(made.numbers(codes), array)


@pytest.mark.parametrize(("axis", "shape"), [(2, (2, 2)), (-3, (2, 2)), (0, (3, 2)), (0, ())])
def test_an_array_without_the_axis_has_no_codes(axis: int, shape: tuple[int, ...]) -> None:
    made = config(CHANNELS, channel_axis=axis, scale=[1.0, 2.0], offset=[0, 0])
    message = f"2 scales on axis {axis} of shape {list(shape)}"
    with pytest.raises(UsageError, match=re.escape(message)):
        made.codes(np.zeros(shape, np.float32))


def test_an_offset_moves_the_codes_and_back() -> None:
    made = config(ASYMMETRIC, scale=0.5, offset=-28, quant_min=-100, quant_max=100)
    array = np.array([0.0, 1.0, -36.0, -36.5, 64.0, 64.5, 1.24], np.float32)
    codes = made.codes(array)
    np.testing.assert_array_equal(codes, [-28, -26, -100, -100, 100, 100, -26])
    assert codes.dtype == np.int64
    np.testing.assert_array_equal(made.numbers(codes), [0, 1, -36, -36, 64, 64, 1])
    assert made.numbers(codes).dtype == np.float32


@pytest.mark.parametrize(
    "other",
    [
        {"num_of_bits": 7, "quant_min": -64, "quant_max": 63},
        {"quant_max": 100},
        {"rounding": RoundingPolicy.ROUND_UP},
        {"policy": ASYMMETRIC},
    ],
)
def test_each_part_of_the_scheme_counts(other: dict[str, Any]) -> None:
    assert not config(**other).is_same_scheme(config())
    assert config(scale=1.0, offset=0, state=S.ACTIVATED, observer_algorithm="mse").is_same_scheme(
        config()
    )


@pytest.mark.parametrize(
    ("state", "can"), [(state, state not in (S.INITIAL, S.PASSIVE_INIT)) for state in S]
)
def test_a_file_has_what_is_decided(state: S, can: bool) -> None:
    assert in_state(state).can_export() is can


def test_what_is_unbaked_is_active_again() -> None:
    for before, after in ((S.BAKED, S.ACTIVATED), (S.PASSIVE_BAKED, S.PASSIVE), (S.FP32, S.FP32)):
        made = in_state(before)
        made.unbake()
        assert made.state is after


def test_the_text_of_a_config_names_state_codes_and_scale() -> None:
    assert repr(ready()) == "TensorQuantizationConfig(ACTIVATED, -128..127, scale=0.5)"


def test_copies_of_some_configs_are_dominated_among_themselves() -> None:
    first, second = ready(), ready()
    second.dominated_by = first
    copies: dict[TensorQuantizationConfig, TensorQuantizationConfig] = {}
    made = second.copy_among(copies)
    assert made.dominated_by is copies[first]
    assert copies[first] is not first
    assert first.copy_among(copies) is copies[first]
    assert set(copies) == {first, second}


def test_configs_are_recorded() -> None:
    def done(edit: Callable[[TensorQuantizationConfig], object], *args: Any, **more: Any) -> object:
        made = config(*args, **more)
        found = edit(made)
        scale, offset = (v if v is None else v.tolist() for v in (made.scale, made.offset))
        return found, made.state.name, scale, offset, made.is_revisable(), made.can_export()

    names = {
        "done": done, "config": config, "ready": ready, "in_state": in_state, "S": S, "np": np,
        "SYM": SYMMETRIC, "ASYM": ASYMMETRIC, "CHANNELS": CHANNELS, "POWERS": POWERS,
        "R": RoundingPolicy, "EXP": EXPONENTIAL,
    }  # fmt: skip
    assert_values(__file__, names)
