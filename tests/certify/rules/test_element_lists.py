"""Lists of elements: pools, reductions and rows read what they should, and no more is assumed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known, only
from tests.certify.test_checker import proof
from tiered.certify.domains.terms import Array, flipped
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.forms import Dequantized
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.certify.rules.element_lists import LISTS, keeps_dims, lanes, reduced_axes, reduced_shape

INT32, INT8, UINT8 = (
    int(dtype) for dtype in (onnx.TensorProto.INT32, onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
)
X = free("x", 2, 3, 4)


def ran(op: str, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    return only(LISTS[op](call(op, *inputs, **held)))


def dependence(x: CheckedTensor, rule: Callable[[CheckedTensor], CheckedTensor]) -> Array:
    """Return which elements of a result change with which elements of an operand."""
    base, terms = rule(x).terms.reshape(-1), x.terms.reshape(-1)
    other = free("other", *x.shape, dtype=x.dtype).terms.reshape(-1)
    found = np.zeros((base.size, terms.size), bool)
    for at in range(terms.size):
        changed = terms.copy()
        changed[at] = other[at]
        given = CheckedTensor(x.dtype, x.shape, partial(changed.reshape, x.shape))
        found[:, at] = rule(given).terms.reshape(-1) != base
    return found


# --- reductions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "shape", "axes"),
    [
        ({"axes": [1]}, (2, 1, 4), [1]),
        ({"axes": [-1, 0], "keepdims": 0}, (3,), [0, 2]),
        ({"axes": [2, -1], "keepdims": 1}, (2, 3, 1), [2]),
        ({}, (1, 1, 1), [0, 1, 2]),
        ({"keepdims": 0}, (), [0, 1, 2]),
    ],
)
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceL2"])
def test_each_element_depends_on_its_own_lane(
    op: str, held: dict[str, Any], shape: tuple[int, ...], axes: list[int]
) -> None:
    axis = [known(held["axes"])] if "axes" in held else []
    rest = {name: each for name, each in held.items() if name != "axes"}
    made = ran(op, X, *axis, **rest)
    assert (made.shape, made.dtype) == (shape, FLOAT)
    numbers = np.arange(24).reshape(2, 3, 4)
    where = [
        {*numbers[tuple(slice(None) if a in axes else i for a, i in enumerate(at))].ravel()}
        for at in np.ndindex(*(1 if a in axes else n for a, n in enumerate((2, 3, 4))))
    ]
    found = dependence(X, lambda x: ran(op, x, *axis, **rest))
    assert [set(np.flatnonzero(row)) for row in found] == where


def _reversed(x: CheckedTensor) -> Array:
    return x.terms[::-1]


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"])
def test_integers_are_reduced_in_any_order_and_floats_in_theirs(op: str) -> None:
    for dtype in (INT32, INT64, FLOAT):
        x = free("x", 4, dtype=dtype)
        turned = CheckedTensor(dtype, (4,), partial(_reversed, x))
        is_same = bool((ran(op, x).terms == ran(op, turned).terms).all())
        assert is_same == (dtype != FLOAT)


def test_reductions_of_integers_need_no_runtime() -> None:
    x = free("x", 4, dtype=INT32)
    made = call("ReduceSum", x, trusts=False)
    assert only(LISTS["ReduceSum"](made)).shape == (1,)
    assert made.axioms == {"sum-of-integers"}
    trusting = call("ReduceMean", x)
    only(LISTS["ReduceMean"](trusting))
    assert trusting.axioms == {"one-list-for-each-element"}


def test_reductions_differ_by_operator_and_dtype() -> None:
    ops = [op for op in LISTS if op.startswith("Reduce")]
    assert len(ops) == 10
    for kind in (FLOAT, INT64):
        x = free("x", 4, dtype=kind)
        assert len({int(ran(op, x).terms["a"][0]) for op in ops}) == len(ops)
    wide, narrow = (free("x", 4, dtype=kind) for kind in (INT64, INT32))
    assert (ran("ReduceSum", wide).terms != ran("ReduceSum", narrow).terms).all()


def test_without_a_runtime_the_whole_operand_and_the_axes_count() -> None:
    def whole(axes: list[int], x: CheckedTensor = X) -> CheckedTensor:
        return ran("ReduceSum", x, known(axes), trusts=False)

    assert whole([1]).shape == (2, 1, 4)
    assert whole([1]).key == whole([-2]).key
    square = free("square", 3, 3)
    assert whole([0], square).key != whole([1], square).key
    assert (whole([0], square).terms != whole([0], free("q", 3, 3)).terms).all()


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("ReduceSum", [-3, 2]),
        ("ReduceMax", [5, 9]),
        ("ReduceMin", [-8, -7]),
        ("ReduceProd", [0, 0]),
    ],
)
def test_known_integers_are_computed(op: str, expected: list[int]) -> None:
    numbers = known([[5, 0, -8], [9, 0, -7]], np.int32)
    made = ran(op, numbers, known([1]), keepdims=0)
    assert made.known is not None
    assert (made.known.dtype, made.dtype) == (np.int32, INT32)
    assert made.known.tolist() == expected


def test_known_small_integers_wrap_in_their_own_dtype() -> None:
    made = ran("ReduceSum", known([100, 100], np.int8))
    assert made.known is not None
    assert made.known.dtype == np.int8
    assert made.known.tolist() == [-56]


@pytest.mark.parametrize(
    ("op", "kind", "expected"),
    [("ReduceMean", np.float32, 3), ("ReduceMean", np.int32, 3), ("ReduceMax", np.float32, 6)],
)
def test_other_known_numbers_are_reduced_by_the_runtime(
    op: str, kind: Any, expected: float
) -> None:
    made = call(op, known([1, 2, 6], kind), opset=18)
    result = only(LISTS[op](made))
    assert result.known is not None
    assert result.known.tolist() == [expected]
    assert made.axioms == {"constants-by-runtime"}


@pytest.mark.parametrize(
    ("op", "dtype", "is_one"),
    [
        ("ReduceMax", FLOAT, True), ("ReduceMin", INT64, True), ("ReduceMax", INT8, True),
        ("ReduceSum", FLOAT, False), ("ReduceMean", FLOAT, False),
        ("ReduceSum", INT32, True), ("ReduceMean", INT32, True),
        ("ReduceSum", INT64, False), ("ReduceMean", INT64, False),
        ("ReduceProd", FLOAT, True), ("ReduceProd", INT32, True), ("ReduceProd", INT64, False),
        ("ReduceL1", INT32, False), ("ReduceSumSquare", INT32, False), ("ReduceL2", FLOAT, False),
    ],
)  # fmt: skip
def test_a_reduction_of_single_elements_may_be_each_of_them(
    op: str, dtype: int, is_one: bool
) -> None:
    x = free("x", 3, 1, dtype=dtype)
    made = ran(op, x, known([1]), keepdims=0)
    assert made.shape == (3,)
    assert bool((made.terms == x.terms[:, 0]).all()) == is_one
    two = free("x", 3, 2, dtype=dtype)
    assert (ran(op, two, known([1]), keepdims=0).terms != two.terms[:, 0]).all()


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"])
@pytest.mark.parametrize("axes", [[], [known(np.zeros(0, np.int64))]])
def test_a_plain_reduction_over_no_axes_is_its_operand(op: str, axes: list[CheckedTensor]) -> None:
    assert ran(op, X, *axes, noop_with_empty_axes=1) is X


@pytest.mark.parametrize(
    "op", ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"]
)
def test_over_no_axes_others_compute_something_of_each_element(op: str) -> None:
    with pytest.raises(NoRule):
        ran(op, X, noop_with_empty_axes=1)
    head = "(float[2] x) => (float[2] y)"
    one = f"{head} {{ y = {op}<noop_with_empty_axes = 1>(x) }}"
    assert not proof(one, f"{head} {{ y = Identity(x) }}").is_proved
    assert proof(one, one).domain == "bits"


def test_axes_are_counted_from_the_front_and_once() -> None:
    assert reduced_axes(call("ReduceSum", X, known([-1, 0, 2])), X) == [0, 2]
    assert reduced_axes(call("ReduceSum", X, axes=[1], opset=11), X) == [1]
    assert reduced_axes(call("ReduceSum", X), X) == [0, 1, 2]
    assert reduced_axes(call("ReduceSum", X, noop_with_empty_axes=1), X) is None
    for axis in (3, -4):
        with pytest.raises(Unproved, match=f"axis {axis} of a tensor of rank 3"):
            reduced_axes(call("ReduceSum", X, known([axis])), X)


def test_shapes_lose_their_reduced_axes() -> None:
    assert reduced_shape((2, 3, 4), [0, 2], keeps=True) == [1, 3, 1]
    assert reduced_shape((2, 3, 4), [0, 2], keeps=False) == [3]


def test_keepdims_is_a_flag() -> None:
    assert keeps_dims(call("ReduceSum", X)) is True
    assert keeps_dims(call("ReduceSum", X, keepdims=1)) is True
    assert keeps_dims(call("ReduceSum", X, keepdims=0)) is False
    with pytest.raises(Unproved, match="keepdims of 2"):
        keeps_dims(call("ReduceSum", X, keepdims=2))


def test_lanes_are_the_last_axis() -> None:
    numbers = np.arange(24).reshape(2, 3, 4)
    found = lanes(numbers, [0, 2])
    assert found.tolist() == [[0, 1, 2, 3, 12, 13, 14, 15], [4, 5, 6, 7, 16, 17, 18, 19],
                              [8, 9, 10, 11, 20, 21, 22, 23]]  # fmt: skip
    assert lanes(np.asarray(5), []).tolist() == [5]
    assert lanes(np.zeros((0, 3)), [1]).shape == (0, 3)


# --- pools ----------------------------------------------------------------------------------------

IMAGE = free("image", 1, 2, 5)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_an_element_of_a_pool_depends_on_its_window(op: str) -> None:
    held = {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}
    made = ran(op, IMAGE, **held)
    assert (made.shape, made.dtype) == ((1, 2, 2), FLOAT)
    found = dependence(IMAGE, lambda x: ran(op, x, **held))
    windows = [[0, 1], [1, 2, 3], [5, 6], [6, 7, 8]]
    assert [np.flatnonzero(row).tolist() for row in found] == windows


def test_a_pad_is_no_element() -> None:
    twins = free("twins", 1, 1, 2)
    one = ran("MaxPool", twins, kernel_shape=[2], pads=[1, 0]).terms[0, 0, 0]
    zero = CheckedTensor(FLOAT, (1, 1, 2), lambda: np.zeros_like(twins.terms))
    other = ran("MaxPool", zero, kernel_shape=[2], pads=[1, 0]).terms[0, 0]
    assert other[0] != other[1]
    assert one != ran("MaxPool", twins, kernel_shape=[2], pads=[0, 1]).terms[0, 0, 1]


@pytest.mark.parametrize(
    ("op", "one", "other"),
    [
        ("AveragePool", {}, {"count_include_pad": 1}),
        ("AveragePool", {}, {"ceil_mode": 1}),
        ("MaxPool", {}, {"ceil_mode": 1}),
        ("LpPool", {}, {"p": 1}),
        ("LpPool", {"p": 3}, {"p": 1}),
    ],
)
def test_pools_with_other_attributes_differ(
    op: str, one: dict[str, int], other: dict[str, int]
) -> None:
    made = [ran(op, IMAGE, kernel_shape=[3], strides=[2], **held) for held in (one, other)]
    assert (made[0].terms != made[1].terms).all()
    assert (ran("LpPool", IMAGE, kernel_shape=[3], p=2).terms
            == ran("LpPool", IMAGE, kernel_shape=[3]).terms).all()  # fmt: skip


def test_kinds_of_pools_differ() -> None:
    made = [ran(op, IMAGE, kernel_shape=[3]).terms for op in ("MaxPool", "AveragePool", "LpPool")]
    assert len(np.unique(np.concatenate(made))) == sum(each.size for each in made)


def test_a_mean_counts_pads_but_not_what_is_beyond_them() -> None:
    """onnxruntime divides by 3 with a pad there, by 2 where ceil_mode reads beyond the tensor."""
    head = "(float[1,1,4] x) => (float[1,1,2] y)"
    held = "kernel_shape = [3], strides = [2], ceil_mode = 1"
    texts = [
        f"{head} {{ y = AveragePool<{held}, count_include_pad = {counts}, pads = [0, {pad}]>(x) }}"
        for counts in (0, 1) for pad in (0, 1)
    ]  # fmt: skip
    assert proof(texts[0], texts[1]).domain == "bits"
    assert not proof(texts[2], texts[3]).is_proved
    assert proof(texts[3], texts[3]).domain == "bits"


def test_indices_of_a_pool_are_not_proved() -> None:
    with pytest.raises(Unproved, match="MaxPool with indices"):
        LISTS["MaxPool"](call("MaxPool", IMAGE, outputs=("y", "at"), kernel_shape=[2]))


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_pools_need_the_runtime(op: str) -> None:
    with pytest.raises(NoRule):
        ran(op, IMAGE, kernel_shape=[2], trusts=False)
    with pytest.raises(NoRule):
        ran(op, known(np.ones((1, 1, 3)), np.float32), kernel_shape=[2])
    made = call(op, IMAGE, kernel_shape=[2])
    LISTS[op](made)
    assert made.axioms == {"one-list-for-each-element"}


def test_a_pool_of_signed_bytes_is_that_of_unsigned_ones() -> None:
    signed = free("bytes", 1, 1, 4, dtype=INT8)
    plain = CheckedTensor(UINT8, (1, 1, 4), lambda: flipped(signed.terms))
    made, other = (ran("MaxPool", x, kernel_shape=[2]) for x in (signed, plain))
    assert (made.dtype, other.dtype) == (INT8, UINT8)
    assert (flipped(made.terms) == other.terms).all()
    mean, of_plain = (ran("AveragePool", x, kernel_shape=[2]) for x in (signed, plain))
    assert mean.dtype == INT8
    assert (flipped(mean.terms) != of_plain.terms).all()


@pytest.mark.parametrize(
    ("scale", "pads", "is_kept"),
    [
        ([0.5], [0, 0], True), ([0.5], [1, 0], True), ([0.5], [2, 0], False),
        ([-0.5], [0, 0], False), ([0.0], [0, 0], False), ([np.inf], [0, 0], False),
        ([0.5, 0.5], [0, 0], False),
    ],
)  # fmt: skip
def test_the_largest_number_is_that_of_the_largest_integer(
    scale: list[float], pads: list[int], is_kept: bool
) -> None:
    x = free("numbers", 1, 2, 4)
    integers = free("integers", 1, 2, 4, dtype=UINT8)
    x.form = Dequantized(integers, np.array(scale, np.float32), np.array([3], np.uint8), 1)
    made = ran("MaxPool", x, kernel_shape=[2], pads=pads)
    if not is_kept:
        assert made.form is None
        return
    assert isinstance(made.form, Dequantized)
    assert [made.form.scale.item(), made.form.zero.item()] == [0.5, 3]
    expected = ran("MaxPool", integers, kernel_shape=[2], pads=pads)
    assert (made.form.integers.terms == expected.terms).all()
    assert ran("AveragePool", x, kernel_shape=[2]).form is None


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(
    ("opset", "held", "lane"),
    [
        (13, {}, (1, 4)), (13, {"axis": 1}, (3, 1)), (13, {"axis": -2}, (3, 1)),
        (12, {}, (3, 4)), (12, {"axis": 2}, (1, 4)), (12, {"axis": 0}, (3, 4)),
    ],
)  # fmt: skip
def test_a_softmax_reads_its_row(
    op: str, opset: int, held: dict[str, int], lane: tuple[int, int]
) -> None:
    x = free("row", 3, 4) if held == {"axis": 0} else free("row", 1, 3, 4)
    made = ran(op, x, opset=opset, **held)
    assert (made.shape, made.dtype) == (x.shape, FLOAT)
    found = dependence(x, lambda each: ran(op, each, opset=opset, **held))
    at, to = np.divmod(np.arange(12), 4)
    one = (at[:, None] == at) | (lane[0] == 3)
    other = (to[:, None] == to) | (lane[1] == 4)
    assert (found == (one & other)).all()


def test_rows_know_which_element_is_asked_for() -> None:
    same = CheckedTensor(FLOAT, (2, 3), lambda: np.broadcast_to(free("one").terms, (2, 3)))
    assert len(np.unique(ran("Softmax", same).terms)) == 1
    sums = ran("CumSum", same, known(1)).terms
    assert len(np.unique(sums)) == 3
    assert (sums[0] == sums[1]).all()


@pytest.mark.parametrize("held", [{"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}])
def test_cumulative_sums_of_other_directions_differ(held: dict[str, int]) -> None:
    plain = ran("CumSum", X, known(1), exclusive=0, reverse=0)
    assert (plain.terms == ran("CumSum", X, known(-2)).terms).all()
    assert (plain.terms != ran("CumSum", X, known(1), **held).terms).all()


def test_a_cumulative_sum_needs_its_axis() -> None:
    with pytest.raises(Unproved, match="axis of CumSum is not known"):
        ran("CumSum", X, free("axis", dtype=INT64))


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_the_place_of_an_extremum_is_an_integer_of_its_lane(op: str) -> None:
    made = ran(op, X, axis=-1, keepdims=0)
    assert (made.shape, made.dtype) == ((2, 3), INT64)
    assert ran(op, X).shape == (1, 3, 4)
    found = dependence(X, lambda x: ran(op, x, axis=2))
    assert (found == (np.arange(6)[:, None] == np.arange(24) // 4)).all()
    last = ran(op, X, axis=-1, keepdims=0, select_last_index=1)
    assert (last.terms != made.terms).all()
    assert (ran("ArgMax", X).terms != ran("ArgMin", X).terms).all()


@pytest.mark.parametrize("op", ["ArgMax", "Softmax"])
def test_rows_without_a_runtime_are_functions_of_the_whole_operand(op: str) -> None:
    square = free("square", 3, 3)
    made = [ran(op, square, axis=axis, trusts=False) for axis in (0, -2, 1)]
    assert made[0].key == made[1].key != made[2].key
    other = ran(op, free("else", 3, 3), axis=0, trusts=False)
    assert (made[0].terms != other.terms).all()
    trusting = call(op, square)
    LISTS[op](trusting)
    assert trusting.axioms == {"one-list-for-each-element"}


# --- normalizations -------------------------------------------------------------------------------


def test_a_layer_norm_reads_its_row_and_its_own_scale() -> None:
    scale, bias = free("scale", 4), free("bias", 3, 4)
    made = ran("LayerNormalization", X, scale, bias)
    assert (made.shape, made.dtype) == ((2, 3, 4), FLOAT)
    rows = dependence(X, lambda x: ran("LayerNormalization", x, scale, bias))
    assert (rows == (np.arange(24)[:, None] // 4 == np.arange(24) // 4)).all()
    scales = dependence(scale, lambda each: ran("LayerNormalization", X, each, bias))
    assert (scales == (np.arange(24)[:, None] % 4 == np.arange(4))).all()
    biases = dependence(bias, lambda each: ran("LayerNormalization", X, scale, each))
    assert (biases == (np.arange(24)[:, None] % 12 == np.arange(12))).all()


def test_a_layer_norm_from_an_earlier_axis_reads_all_behind_it() -> None:
    scale = free("scale", 3, 4)
    rows = dependence(X, lambda x: ran("LayerNormalization", x, scale, axis=1))
    assert (rows == (np.arange(24)[:, None] // 12 == np.arange(24) // 12)).all()


@pytest.mark.parametrize("held", [{"epsilon": 1e-3}, {"stash_type": 0}, {"axis": 1}])
def test_layer_norms_with_other_attributes_differ(held: dict[str, Any]) -> None:
    scale = free("scale", 4)
    plain = ran("LayerNormalization", X, scale)
    assert (plain.terms == ran("LayerNormalization", X, scale, axis=2).terms).all()
    assert (plain.terms != ran("LayerNormalization", X, scale, **held).terms).all()
    assert (plain.terms != ran("RMSNormalization", X, scale).terms).all()
    assert (plain.terms != ran("LayerNormalization", X, scale, scale).terms).all()


def test_a_leading_axis_more_changes_nothing() -> None:
    scale = free("scale", 4)
    flat = CheckedTensor(FLOAT, (6, 4), lambda: X.terms.reshape(6, 4))
    made, other = (ran("LayerNormalization", x, scale).terms for x in (X, flat))
    assert (made.reshape(6, 4) == other).all()


def test_layer_norms_that_are_not_followed() -> None:
    with pytest.raises(NoRule):
        LISTS["LayerNormalization"](
            call("LayerNormalization", X, free("s", 4), outputs=("y", "mean"))
        )
    one = call("LayerNormalization", X, free("s", 4), outputs=("y", "", ""))
    assert len(LISTS["LayerNormalization"](one)) == 1
    with pytest.raises(Unproved, match="LayerNormalization with a scale that does not fit"):
        ran("LayerNormalization", X, free("s", 2, 2, 3, 4))
    whole = ran("LayerNormalization", X, free("s", 4), trusts=False)
    other = ran("LayerNormalization", X, free("s", 4), trusts=False, epsilon=1.0)
    assert whole.shape == (2, 3, 4)
    assert whole.key != other.key
    absent = ran("LayerNormalization", X, free("s", 4), None, trusts=False)
    assert absent.key not in (whole.key, other.key)


def test_a_batch_norm_reads_the_parameters_of_its_channel() -> None:
    parameters = [free(name, 3) for name in "sbmv"]
    made = ran("BatchNormalization", X, *parameters)
    assert (made.shape, made.dtype) == ((2, 3, 4), FLOAT)
    assert (dependence(X, lambda x: ran("BatchNormalization", x, *parameters)) == np.eye(24)).all()
    for at in range(4):

        def changed(x: CheckedTensor, at: int = at) -> CheckedTensor:
            return ran("BatchNormalization", X, *parameters[:at], x, *parameters[at + 1 :])

        expected = np.arange(24)[:, None] // 4 % 3 == np.arange(3)
        assert (dependence(parameters[at], changed) == expected).all()
    assert (made.terms != ran("BatchNormalization", X, *parameters, epsilon=0.1).terms).all()


def test_a_batch_norm_of_rank_one_has_one_channel() -> None:
    parameters = [free(name, 1) for name in "sbmv"]
    made = ran("BatchNormalization", free("x", 5), *parameters)
    assert made.shape == (5,)
    assert len(np.unique(made.terms)) == 5


def test_a_batch_norm_in_training_is_not_proved() -> None:
    parameters = [free(name, 3) for name in "sbmv"]
    with pytest.raises(Unproved, match="BatchNormalization in training"):
        ran("BatchNormalization", X, *parameters, training_mode=1)
    names = ("y", "m", "v")
    with pytest.raises(Unproved, match="BatchNormalization in training"):
        LISTS["BatchNormalization"](
            call("BatchNormalization", X, *parameters, outputs=names, opset=13)
        )
    found = LISTS["BatchNormalization"](
        call("BatchNormalization", X, *parameters, outputs=names, opset=14)
    )
    assert [each is None for each in found] == [False, True, True]
    plain = call("BatchNormalization", X, *parameters, outputs=("y", "", ""), opset=13)
    assert len(LISTS["BatchNormalization"](plain)) == 3
