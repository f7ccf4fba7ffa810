"""Axis maps of operators that combine the elements along some axes."""

import pytest

from tests.analysis.axes.rules.maps import map_of, why_not, written
from tiered.analysis.axes.axis_map import AxisMap, IteratorKind, Labels

OUT_OF_RANGE = "its axes are out of range"


def combined(text: str, opset: int = 21) -> tuple[Labels, Labels]:
    """Return the labels that are combined, and those that no formula describes."""
    kinds = map_of(text, opset).kinds
    assert {*kinds.values()} <= {IteratorKind.REDUCTION, IteratorKind.OPAQUE}
    reduced, opaque = (
        tuple(label for label, kind in sorted(kinds.items()) if kind is wanted)
        for wanted in (IteratorKind.REDUCTION, IteratorKind.OPAQUE)
    )
    return reduced, opaque


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize(
    ("attribute", "opset", "reduced"),
    [
        ("", 13, (3,)),
        ("<axis=1>", 13, (1,)),
        ("<axis=-4>", 13, (0,)),
        ("", 12, (1, 2, 3)),
        ("<axis=2>", 12, (2, 3)),
        ("<axis=-1>", 12, (3,)),
        ("<axis=4>", 12, ()),
    ],
)
def test_a_softmax_is_over_one_axis_and_before_opset_13_over_all_from_it_on(
    op_type: str, attribute: str, opset: int, reduced: Labels
) -> None:
    text = f"(float[2,3,4,5] x) => (y) {{ y = {op_type}{attribute}(x) }}"
    assert map_of(text, opset)[:2] == (((0, 1, 2, 3),), ((0, 1, 2, 3),))
    assert combined(text, opset) == (reduced, ())


def test_a_softmax_after_the_axis_behind_the_last_one_is_out_of_range() -> None:
    text = "(float[2,3] x) => (y) { y = Softmax<axis=3>(x) }"
    assert why_not(text, 12) == "its axis is out of range"


@pytest.mark.parametrize(
    ("line", "reduced", "opaque"),
    [
        ("LpNormalization(x)", (3,), ()),
        ("LpNormalization<axis=1>(x)", (1,), ()),
        ("CumSum(x, one)", (1,), ()),
        ("CumSum(x, last)", (3,), ()),
        ("LRN<size=3>(x)", (), (1,)),
        ("MeanVarianceNormalization(x)", (0, 2, 3), ()),
        ("MeanVarianceNormalization<axes=[-1]>(x)", (3,), ()),
        ("Trilu(x)", (), (2, 3)),
        ("GlobalAveragePool(x)", (2, 3), ()),
        ("GlobalMaxPool(x)", (2, 3), ()),
        ("GlobalLpPool(x)", (2, 3), ()),
        ("GroupNormalization<num_groups=1>(x, s, s)", (2, 3), (1,)),
    ],
)
def test_all_outputs_have_the_axes_of_the_first_operand(
    line: str, reduced: Labels, opaque: Labels
) -> None:
    text = f"""(float[2,4,3,5] x, float[4] s) => (y)
        <int64 one = {{1}}, int64 last = {{-1}}> {{ y = {line} }}"""
    axes = map_of(text)
    assert axes.inputs[0] == (0, 1, 2, 3)
    assert {*axes.inputs[1:]} <= {None}
    assert axes.outputs == ((0, 1, 2, 3),)
    assert combined(text) == (reduced, opaque)


@pytest.mark.parametrize(("attribute", "axis"), [("", 2), ("<axis=0>", 0), ("<axis=-2>", 1)])
def test_the_largest_elements_may_be_anywhere_along_their_axis(attribute: str, axis: int) -> None:
    text = f"(float[2,3,4] x, int64[1] k) => (v, i) {{ v, i = TopK{attribute}(x, k) }}"
    assert map_of(text) == AxisMap(((0, 1, 2), None), ((0, 1, 2),) * 2, {axis: IteratorKind.OPAQUE})


def test_an_axis_of_a_cumulative_sum_is_constant_and_in_range() -> None:
    text = "(float[2,3] x) => (y) <int64 a = {2}> { y = CumSum(x, a) }"
    assert why_not(text) == OUT_OF_RANGE
    text = "(float[2,3] x, int64 a) => (y) { y = CumSum(x, a) }"
    assert why_not(text) == "its axis is not constant"


def test_a_layer_norm_reduces_from_its_axis_on_and_its_scales_broadcast() -> None:
    axes = map_of(
        "(float[2,3,4] x, float[3,4] s, float[4] b) => (y, m, d)"
        "{ y, m, d = LayerNormalization<axis=1>(x, s, b) }"
    )
    kinds = {1: IteratorKind.REDUCTION, 2: IteratorKind.REDUCTION}
    assert axes == AxisMap(((0, 1, 2), (1, 2), (2,)), ((0, 1, 2),) * 3, kinds, broadcasts=(1, 2))


def test_a_layer_norm_is_over_the_last_axis_by_default() -> None:
    axes = map_of("(float[2,3] x, float[3] s) => (y) { y = LayerNormalization(x, s) }")
    assert axes == AxisMap(((0, 1), (1,)), ((0, 1),), {1: IteratorKind.REDUCTION}, broadcasts=(1,))


def test_the_scales_of_instances_are_along_the_channels() -> None:
    axes = map_of(
        "(float[2,3,4] x, float[3] s, float[3] b) => (y) { y = InstanceNormalization(x, s, b) }"
    )
    assert axes == AxisMap(((0, 1, 2), (1,), (1,)), ((0, 1, 2),), {2: IteratorKind.REDUCTION})


@pytest.mark.parametrize(
    "line", ["InstanceNormalization(x, x, x)", "LRN<size=1>(x)", "Trilu(x)", "GlobalMaxPool(x)",
             "ReverseSequence(x, n)", "GroupNormalization<num_groups=1>(x, x, x)"],
)  # fmt: skip
def test_what_combines_by_the_second_axis_needs_two(line: str) -> None:
    assert why_not(f"(float[3] x, int64[3] n) => (y) {{ y = {line} }}") == "its rank is 1"


@pytest.mark.parametrize(
    "line", ["InstanceNormalization(x, n, n)", "LRN<size=1>(x)", "Trilu(x)", "GlobalMaxPool(x)",
             "ReverseSequence(x, i)"],
)  # fmt: skip
def test_what_combines_by_the_second_axis_needs_no_third(line: str) -> None:
    text = f"(float[3,4] x, float[4] n, int64[4] i) => (float[3,4] y) {{ y = {line} }}"
    assert map_of(text).outputs == ((0, 1),)


@pytest.mark.parametrize(
    ("attributes", "lengths", "time"),
    [("", (1,), 0), ("<batch_axis=0, time_axis=1>", (0,), 1)],
)
def test_sequences_are_reversed_along_the_axis_of_time(
    attributes: str, lengths: Labels, time: int
) -> None:
    text = f"(float[4,4,2] x, int64[4] n) => (y) {{ y = ReverseSequence{attributes}(x, n) }}"
    assert map_of(text) == AxisMap(((0, 1, 2), lengths), ((0, 1, 2),), {time: IteratorKind.OPAQUE})


@pytest.mark.parametrize("attributes", ["batch_axis=1, time_axis=1", "batch_axis=2, time_axis=0"])
def test_sequences_lie_along_the_first_two_axes(attributes: str) -> None:
    text = f"(float[4,4,2] x, int64[4] n) => (y) {{ y = ReverseSequence<{attributes}>(x, n) }}"
    assert why_not(text) == OUT_OF_RANGE


@pytest.mark.parametrize(
    ("line", "kept", "reduced"),
    [
        ("ReduceSum(x, a)", (0, 1, 2), (0, 2)),
        ("ReduceMean<keepdims=0>(x, a)", (1,), (0, 2)),
        ("ReduceMax(x)", (0, 1, 2), (0, 1, 2)),
        ("ReduceMin<keepdims=0>(x)", (), (0, 1, 2)),
        ("ReduceProd<noop_with_empty_axes=1>(x)", (0, 1, 2), ()),
        ("ReduceL2<noop_with_empty_axes=1, keepdims=0>(x)", (0, 1, 2), ()),
        ("ArgMax(x)", (0, 1, 2), (0,)),
        ("ArgMin<axis=-1, keepdims=0>(x)", (0, 1), (2,)),
    ],
)
def test_a_reduced_axis_that_is_kept_has_the_iterator_of_all_its_elements(
    line: str, kept: Labels, reduced: Labels
) -> None:
    text = f"(float[2,3,4] x) => (y) <int64[2] a = {{-1,0}}> {{ y = {line} }}"
    axes = map_of(text)
    assert axes.inputs[0] == (0, 1, 2)
    assert {*axes.inputs[1:]} <= {None}
    assert axes.outputs == (kept,)
    assert combined(text) == (reduced, ())


@pytest.mark.parametrize("axis", [-3, 2])
def test_an_axis_of_a_reduction_is_in_range(axis: int) -> None:
    text = f"(float[2,3] x) => (y) <int64[2] a = {{{axis},1}}> {{ y = ReduceSum(x, a) }}"
    assert why_not(text) == OUT_OF_RANGE
    text = f"(float[2,3] x) => (y) {{ y = ArgMax<axis={axis}>(x) }}"
    assert why_not(text) == OUT_OF_RANGE


def test_axes_of_a_reduction_are_constant() -> None:
    text = "(float[2,3] x, int64[1] a) => (y) { y = ReduceSum(x, a) }"
    assert why_not(text) == "its axes are not constant"


def test_the_iterators_of_the_operands_and_results() -> None:
    for text, opset, expected in (
        ("(float[2,3,4] x) => (y) { y = Softmax(x) }", 21, "0 1 2 -> 0 1 2 | reduction 2"),
        ("(float[2,3,4] x) => (y) { y = Softmax<axis=1>(x) }", 12,
         "0 1 2 -> 0 1 2 | reduction 1 2"),
        ("(float[2,3,4] x) => (y) { y = Softmax<axis=3>(x) }", 12, "0 1 2 -> 0 1 2"),
        ("(float[2,3,4] x) => (y) { y = Softmax<axis=-1>(x) }", 12, "0 1 2 -> 0 1 2 | reduction 2"),
        ("(float[2,3,4] x) => (y) { y = Hardmax<axis=0>(x) }", 13, "0 1 2 -> 0 1 2 | reduction 0"),
        ("(float[2,3,4] x) => (y) { y = LpNormalization(x) }", 21, "0 1 2 -> 0 1 2 | reduction 2"),
        ("(float[2,3,4] x) => (y) { y = LpNormalization<axis=1>(x) }", 21,
         "0 1 2 -> 0 1 2 | reduction 1"),
        ("(float[2,3,4] x, int64 k) => (y) { y = CumSum(x, k) }", 21,
         "no: its axis is not constant"),
        ("(float[2,3,4] x, float[4] s) => (y) { y = LayerNormalization(x, s) }", 21,
         "0 1 2, 2 -> 0 1 2 | reduction 2 | broadcasts 1"),
        ("(float[2,3,4] x, float[3,4] s, float[4] b) => (y) { y = LayerNormalization<axis=1>(x, "
         "s, b) }", 21, "0 1 2, 1 2, 2 -> 0 1 2 | reduction 1 2 | broadcasts 1 2"),
        ("(float[2,3,4] x, float[3,4] s) => (y) { y = RMSNormalization<axis=1>(x, s) }", 23,
         "0 1 2, 1 2 -> 0 1 2 | reduction 1 2 | broadcasts 1"),
        ("(float[2,3,4] x, float[3] s) => (y) { y = InstanceNormalization(x, s, s) }", 21,
         "0 1 2, 1, 1 -> 0 1 2 | reduction 2"),
        ("(float[2,3,4] x, float[3] s) => (y) { y = GroupNormalization<num_groups=1>(x, s, s) }",
         21, "0 1 2, -, - -> 0 1 2 | reduction 2 | opaque 1"),
        ("(float[2,3,4] x) => (y) { y = LRN<size=3>(x) }", 21, "0 1 2 -> 0 1 2 | opaque 1"),
        ("(float[2,3,4] x) => (y) { y = LpPool<kernel_shape=[2]>(x) }", 21,
         "0 1 2 -> 0 1 2 | window 2: 1 0 2"),
        ("(float[2,3,4,5] x) => (y) { y = MeanVarianceNormalization(x) }", 21,
         "0 1 2 3 -> 0 1 2 3 | reduction 0 2 3"),
        ("(float[2,3,4] x) => (y) { y = MeanVarianceNormalization<axes=[-1]>(x) }", 21,
         "0 1 2 -> 0 1 2 | reduction 2"),
        ("(float[2,3,4] x) => (y) { y = Trilu(x) }", 21, "0 1 2 -> 0 1 2 | opaque 1 2"),
        ("(float[3,4] x) => (y) { y = Trilu(x) }", 21, "0 1 -> 0 1 | opaque 0 1"),
        ("(float[2,3,4] x, int64[3] n) => (y) { y = ReverseSequence(x, n) }", 21,
         "0 1 2, 1 -> 0 1 2 | opaque 0"),
        ("(float[2,3,4] x, int64[2] n) => (y) { y = ReverseSequence<batch_axis=0, "
         "time_axis=1>(x, n) }", 21, "0 1 2, 0 -> 0 1 2 | opaque 1"),
        ("(float[2,3,4] x, int64[2] n) => (y) { y = ReverseSequence<batch_axis=0, "
         "time_axis=2>(x, n) }", 21, "no: its axes are out of range"),
        ("(float[2,3,4,5] x) => (y) { y = GlobalMaxPool(x) }", 21,
         "0 1 2 3 -> 0 1 2 3 | reduction 2 3"),
        ("(float[2,3,4] x) => (y) { y = GlobalLpPool(x) }", 21, "0 1 2 -> 0 1 2 | reduction 2"),
        ("(float[2,3,4] x) => (y) { y = ReduceSum(x) }", 21, "0 1 2 -> 0 1 2 | reduction 0 1 2"),
        ("(float[2,3,4] x, int64[1] a) => (y) { y = ReduceSum<keepdims=0>(x, a) }", 21,
         "no: its axes are not constant"),
        ("(float[2,3,4] x) => (y) { y = ReduceMax<axes=[1], keepdims=0>(x) }", 11,
         "0 1 2, - -> 0 2 | reduction 1"),
        ("(float[2,3,4] x) => (y) { y = ReduceMax<axes=[5]>(x) }", 11,
         "no: its axes are out of range"),
        ("(float[2,3,4] x) => (y) { y = ArgMax<axis=1>(x) }", 21, "0 1 2 -> 0 1 2 | reduction 1"),
        ("(float[2,3,4] x) => (y) { y = ArgMin<axis=-1, keepdims=0>(x) }", 21,
         "0 1 2 -> 0 1 | reduction 2"),
        ("(float[2,3,4] x) => (y) { y = ReduceSum<noop_with_empty_axes=1>(x) }", 21,
         "0 1 2 -> 0 1 2"),
        ("(float[2,3,4] x) => (y) <int64 k = {-2}> { y = CumSum(x, k) }", 21,
         "0 1 2, - -> 0 1 2 | reduction 1"),
        ("(float[2,3,4] x) => (y) <int64 k = {5}> { y = CumSum(x, k) }", 21,
         "no: its axes are out of range"),
        ("(float[2,3,4] x) => (y) <int64[2] a = {0,-1}> { y = ReduceSum<keepdims=0>(x, a) }", 21,
         "0 1 2, - -> 1 | reduction 0 2"),
    ):  # fmt: skip
        assert written(text, opset) == expected, text
