"""Ranges of normalizations, softmax and recurrent operators follow from their definitions."""

import math

import pytest

from tests.graph.intervals.rules.of_integers import assert_bounds, interval_of

INF = math.inf
MORE = """float[3] s = {-2,1,2}, float[3] b = {0,1,0}, float large = {3e38}, float[3] one = {1,1,1},
    float[3] none = {0,0,0}, float[3] v = {3,8,3}, float[3] m = {1,1,1},"""


def deviation(count: int) -> float:
    """Return the bound of a number in units of the deviation of so many."""
    return 1.01 * math.sqrt(count)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("LayerNormalization(a, s)", (-2 * deviation(3), 2 * deviation(3))),
        ("LayerNormalization(a, s, b)", (-2 * deviation(3), 2 * deviation(3) + 1)),
        ("LayerNormalization<axis = 1>(a, one)", (-deviation(12), deviation(12))),
        ("LayerNormalization<axis = -2>(a, one)", (-deviation(12), deviation(12))),
        ("InstanceNormalization(a, s, b)", (-2 * deviation(12), 2 * deviation(12) + 1)),
    ],
)
def test_a_number_deviates_by_the_root_of_their_count_at_most(
    call: str, expected: tuple[float, float]
) -> None:
    dims = "1,3,4,3" if "Instance" in call else "2,4,3"
    assert_bounds(interval_of(f"y = {call}", (-9, 9), dims=dims, more=MORE), expected, error=1e-3)


def test_a_group_has_the_channels_and_the_places() -> None:
    nodes = "y = GroupNormalization<num_groups = 3>(a, one, none)"
    found = interval_of(nodes, (-9, 9), dims="1,3,4,3", more=MORE)
    assert found.high >= math.sqrt(12 - 1)
    assert found.high == pytest.approx(deviation(36), rel=1e-3)


def test_the_root_of_the_mean_square_is_taken_from_an_axis_on() -> None:
    for call, count in (
        ("RMSNormalization(a, one)", 3),
        ("RMSNormalization<axis = 1>(a, one)", 12),
        ("RMSNormalization<axis = -2>(a, one)", 12),
    ):
        found = interval_of(f"y = {call}", (-9, 9), dims="2,4,3", more=MORE, opset=23)
        assert_bounds(found, (-deviation(count), deviation(count)), error=1e-3)


SQRT = "n = Sqrt(a)  "  # of -1 to 4: NaN, or 0 to 2


def test_of_nan_there_is_no_bound() -> None:
    for call, dims in (
        ("LayerNormalization(n, one)", "2,3"),
        ("InstanceNormalization(n, one, none)", "1,3,2"),
        ("ReduceLogSumExp(n)", "2,3"),
        ("LRN<size = 3, bias = 2.0, alpha = 0.5, beta = 0.5>(n)", "1,3,2,2"),
    ):
        found = interval_of(f"{SQRT}y = {call}", (-1, 4), dims=dims, more=MORE)
        assert found == (-INF, INF, True), call
    weights = "float[1,4,3] w = {1,1,1,1,1,1,1,1,1,1,1,1}, float[1,4,1] r = {1,1,1,1},"
    nodes = f"{SQRT}y = LSTM<hidden_size = 1>(n, w, r)"
    assert interval_of(nodes, (-1, 4), dims="2,1,3", more=weights) == (-INF, INF, True)
    assert interval_of(f"{SQRT}y = Softmax(n)", (-1, 4), dims="2,3").may_be_nan


def test_a_result_of_attention_is_a_mean_of_values() -> None:
    for call, expected in (
        ("y = Attention(b, b, a)", (1, 4)),
        ("y, p, q = Attention(b, b, a, , b, c)", (1, 12)),
    ):
        found = interval_of(call, (1, 4), (5, 9), (10, 12), dims="1,1,2,3", opset=23)
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-3)
        assert found.may_be_nan
    infinite = "e = Exp(a)  y = Attention(b, b, e)"
    found = interval_of(infinite, (1, 999), (5, 9), dims="1,1,2,3", opset=23)
    assert found == (-INF, INF, True)


def test_a_variance_that_overflows_leaves_no_bound() -> None:
    nodes = "c = Mul(a, large)  y = LayerNormalization(c, one)"
    assert interval_of(nodes, (-1, 1), dims="2,3", more=MORE) == (-INF, INF, True)


def test_without_epsilon_a_constant_group_may_be_nan() -> None:
    found = interval_of("y = MeanVarianceNormalization(a)", (-1, 1), dims="1,3,2,2")
    assert found == (-INF, INF, True)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        # (x - 1) / sqrt(4) to (x - 1) / sqrt(9), times -2 to 2, and 0 to 1
        ("BatchNormalization<epsilon = 1.0>(a, s, b, m, v)", (-4 - 1, 4 + 1 + 1)),
        ("BatchNormalization<epsilon = 1.0>(a, one, none, none, v)", (-2, 2)),
    ],
)
def test_a_batch_normalization_is_affine(call: str, expected: tuple[float, float]) -> None:
    found = interval_of(f"y = {call}", (-4, 4), dims="1,3,2,2", more=MORE)
    assert_bounds(found, expected, error=1e-3)


@pytest.mark.parametrize(
    "nodes",
    [
        "y = BatchNormalization<epsilon = 0.0>(a, s, b, m, none)",
        "y, p, q = BatchNormalization<training_mode = 1>(a, s, b, m, v)",
        "l = Log(a)  y = BatchNormalization(l, s, b, m, v)",
    ],
)
def test_a_variance_of_zero_and_training_leave_no_bound(nodes: str) -> None:
    found = interval_of(nodes, (0, 4), dims="1,3,2,2", more=MORE)
    assert (found.low, found.high) == (-INF, INF)


def test_a_softmax_is_a_share() -> None:
    found = interval_of("y = Softmax(a)", (-9, 9), dims="2,3")
    assert found.low == 0
    assert found.high == pytest.approx(1, abs=1e-4)
    assert not found.may_be_nan
    assert interval_of("l = Log(a)  y = Softmax(l)", (0, 9), dims="2,3").may_be_nan


def test_a_log_softmax_is_at_least_the_spread_and_the_count_below_zero() -> None:
    found = interval_of("y = LogSoftmax(a)", (-2, 3), dims="2,3")
    assert -5 - math.log(6) - 0.01 <= found.low <= -5 - math.log(3)
    assert 0 <= found.high < 1e-3
    assert math.isfinite(interval_of("y = LogSoftmax(a)", (-2, 5), dims="2,3").low)
    assert interval_of("y = LogSoftmax(a)", (-2, 6), dims="2,3").low == -INF
    assert interval_of("l = Log(a)  y = LogSoftmax(l)", (0, 9), dims="2,3").may_be_nan


def test_the_logarithm_of_a_sum_of_powers() -> None:
    found = interval_of("y = ReduceLogSumExp(a)", (-2, 3), dims="2,3")
    assert_bounds(found, (-2, 3 + math.log(6)), error=1e-3)
    assert interval_of("y = ReduceLogSumExp(a)", (-2, 3), dims="0").low == -INF
    assert_bounds(interval_of("y = ReduceLogSumExp(a)", (-8, -1), dims="1"), (-8, -1), error=1e-3)
    assert interval_of("y = ReduceLogSumExp(a)", (-2, 3000), dims="2,3").high == INF


def test_a_local_response_is_at_most_the_number_by_its_bias() -> None:
    settings = "alpha = 0.5, beta = 2.0, size = 3"
    found = interval_of(f"y = LRN<bias = 2.0, {settings}>(a)", (1, 8), dims="1,3,2,2")
    assert_bounds(found, (0, 2), error=1e-3)
    found = interval_of(f"y = LRN<bias = 0.0, {settings}>(a)", (1, 8), dims="1,3,2,2")
    assert found.high == INF


def test_states_of_a_recurrent_operator_are_between_minus_1_and_1() -> None:
    weights = "float[1,4,3] w = {1,1,1,1,1,1,1,1,1,1,1,1}, float[1,4,1] r = {1,1,1,1},"
    nodes = "y, z = LSTM<hidden_size = 1>(a, w, r)"
    found = interval_of(nodes, (-9, 9), dims="2,1,3", more=weights)
    assert (found.low, found.high) == pytest.approx((-1, 1), abs=1e-3)
    with_start = "y = LSTM<hidden_size = 1>(a, w, r, , , h)"
    found = interval_of(with_start, (-9, 9), dims="2,1,3", more=weights + " float[1,1,1] h = {5},")
    assert found.high == pytest.approx(5, rel=1e-3)
    other = nodes.replace(
        "hidden_size = 1", 'hidden_size = 1, activations = ["Relu","Relu","Relu"]'
    )
    assert interval_of(other, (-9, 9), dims="2,1,3", more=weights).high == INF


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        # x / (bias + ...) ** beta
        ("bias = 4.0, alpha = 1.0, beta = 0.5", (-4.5, 4.5)),
        ("bias = 4.0, alpha = 0.0, beta = 0.5", (-4.5, 4.5)),
        ("bias = 4.0, alpha = 1.0, beta = 0.0", (-9, 9)),
        ("bias = 4.0, alpha = -1.0, beta = 0.5", (-INF, INF)),
        ("bias = 4.0, alpha = 1.0, beta = -0.5", (-INF, INF)),
        ("bias = 0.0, alpha = 1.0, beta = 0.5", (-INF, INF)),
    ],
)
def test_neighbours_only_lower_a_number(attributes: str, expected: tuple[float, float]) -> None:
    found = interval_of(f"y = LRN<size = 3, {attributes}>(a)", (-9, 9), dims="1,3,4,3")
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-3)
