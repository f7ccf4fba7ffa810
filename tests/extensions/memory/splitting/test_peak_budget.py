"""Tensors at the peak are cut until a budget holds: what is tried, undone, and said."""

import pytest

from tests.extensions.memory.graphs import ATTENTION, fan_out
from tiered import Model
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory import memory_plan, split_model
from tiered.extensions.memory.splitting.peak_budget import PARTS
from tiered.testing import parse


def test_a_residual_is_cut_with_what_it_skips() -> None:
    text = """(float[64,4] x, float[4,32] w, float[32,4] v) => (float[64,1] y)
        <int64[1] one = {1}> {
        a = MatMul(x, w) b = Tanh(a) c = MatMul(b, v) d = Add(c, x) y = ReduceMean(d, one) }"""
    model = Model.from_proto(parse(text))
    before = memory_plan(model).peak
    assert split_model(model, before // 2).peak <= before // 2


@pytest.mark.parametrize("dtype", ["int4", "float8e4m3fn"])
def test_a_dtype_that_slices_do_not_take_stays_whole(dtype: str) -> None:
    text = f"""({dtype}[64,8] q) => (float[64,1] y) <float s = {{0.5}}, int64[1] one = {{1}}> {{
        d = DequantizeLinear(q, s)  e = Sin(d)  y = ReduceMean(e, one) }}"""
    done = split_model(Model.from_proto(parse(text)), 1)
    assert done.regions == 0
    said = {value.name: str(reason) for value, reason in done.kept}
    assert said["e"] == f"Slice and Concat do not take {dtype}"


def test_a_search_ends_when_its_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.extensions.memory.splitting.peak_budget.TRIED", 30_000)
    done = split_model(fan_out(300), 1)
    assert done.regions == 0
    assert any(str(reason) == "the search was long" for _, reason in done.kept)


def reasons(text: str, budget: int = 1) -> dict[str, str]:
    done = split_model(Model.from_proto(parse(text)), budget)
    return {value.name: str(reason) for value, reason in done.kept}


@pytest.mark.parametrize("more", [0, 1, 1000])
def test_within_the_budget_nothing_is_cut(more: int) -> None:
    model = Model.from_proto(parse(ATTENTION))
    before, proto = memory_plan(model).peak, model.to_proto()
    done = split_model(model, before + more)
    assert (done.regions, done.peak, done.kept) == (0, before, ())
    assert model.to_proto() == proto


def test_a_byte_above_the_budget_is_cut() -> None:
    model = Model.from_proto(parse(ATTENTION))
    before = memory_plan(model).peak
    done = split_model(model, before - 1)
    assert done.regions == 1
    assert done.peak == memory_plan(model).peak < before
    assert done.kept == ()
    assert len(model.main.nodes_of("Softmax")) == 2  # the fewest parts that are enough


def test_more_parts_are_tried_until_the_budget_holds() -> None:
    peaks = []
    for parts in (2, 4, 8):
        model = Model.from_proto(parse(ATTENTION))
        # q, k, v, y, and scores of 8 / parts rows, each with its Softmax.
        inputs = 4 * (8 * 4 + 4 * 64 + 64 * 4)
        split_model(model, inputs + 4 * (8 * 4) + 4 * (2 * 64 * 8 // parts) + 64)
        peaks.append(len(model.main.nodes_of("Softmax")))
    assert peaks == [2, 4, 8]
    assert PARTS == (2, 4, 8, 16, 32)


def test_what_cannot_be_reached_says_why_and_keeps_the_lowest_peak() -> None:
    model = Model.from_proto(parse(ATTENTION))
    before = memory_plan(model).peak
    done = split_model(model, 1)
    assert done.regions >= 1
    assert done.peak == memory_plan(model).peak < before
    said = {value.name: str(reason) for value, reason in done.kept}
    assert said["k"] == said["v"] == "it is an input"
    sizes = [LayoutSizes().nbytes(value) for value, _ in done.kept]
    assert sizes == sorted(sizes, reverse=True)


def test_reasons_of_what_stays_whole() -> None:
    text = "(float[N,4] x) => (float[N,4] y) { a = Tanh(x)  b = Softmax<axis=0>(a)  y = Add(a, b) }"
    assert reasons(text)["a"] == "its shape is not known"
    fixed = text.replace("N,4", "1,4")
    assert "needs all of it" in reasons(fixed.replace("<axis=0>", ""))["a"]
    alone = "(float[8] x) => (float[8] y) { a = Tanh(x)  y = Softmax(a) }"
    assert reasons(alone) == {"x": "it is an input", "a": "y (Softmax) needs all of it",
                              "y": "it is an output"}  # fmt: skip


def test_parts_that_do_not_lower_the_peak_are_undone() -> None:
    text = "(float[8,4] x) => (float[8,4] y) { a = Tanh(x)  b = Sin(a)  y = Cos(b) }"
    model = Model.from_proto(parse(text))
    proto = model.to_proto()
    done = split_model(model, 1)
    # Each operator writes over its operand: parts would only add to them.
    assert done.regions == 0
    assert model.to_proto() == proto
    assert "its parts do not lower the peak" in {str(reason) for _, reason in done.kept}


def test_sizes_of_dynamic_dims_count_in_the_peak() -> None:
    text = "(float[N] x) => (float[N] y) { a = Tanh(x)  y = Sin(a) }"
    model = Model.from_proto(parse(text))
    assert split_model(model, 1, sizes=LayoutSizes({"N": 10}, 16)).peak == 80


def test_the_nodes_are_in_the_order_of_the_file_afterwards() -> None:
    model = Model.from_proto(parse(ATTENTION))
    done = split_model(model, memory_plan(model).peak - 1)
    again = Model.from_proto(model.to_proto())
    assert memory_plan(again).peak == done.peak


def test_an_output_that_is_absent_takes_no_memory() -> None:
    text = """(float[4,1,3] x) => (float[1,1,2] y) <float[1,2,3] w = {1,2,3,4,5,6},
        float[1,2,2] r = {1,2,3,4}> { , h = RNN<hidden_size = 2>(x, w, r)  y = Neg(h) }"""
    model = Model.from_proto(parse(text))
    assert split_model(model, 1).peak == memory_plan(model).peak


def test_what_is_cut_as_far_as_the_work_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines are the first and last numbers of steps with a result, and the result."""
    text = """(float[8,1] x) => (float[8,1] y) <int64[1] one = {1}, int64[2] e = {8,64}> {
        k = Constant<value=float[8,1] {1,2,3,4,5,6,7,8}>()
        a = Expand(x, e)  b = Tanh(a)  c = ReduceMax(b, one)  y = Add(c, k) }"""
    monkeypatch.setattr("tiered.extensions.memory.splitting.peak_budget.WRITTEN", 1)
    for steps, regions, peak, nodes, kept in (
        ((0, 24), 0, 2112, 5, {"b": "the search was long", "c": "the search was long"}),
        ((25, 45), 1, 1088, 11, {
            "Expand_1_output_0": "the search was long", "ReduceMax_output_0": "the search was long",
            "Slice_1_output_0": "the search was long",
        }),
        ((308, 316), 1, 320, 35, {
            "Expand_7_output_0": "its parts do not lower the peak",
            "ReduceMax_output_0": "the search was long",
            **{f"ReduceMax_{at}_output_0": "the search was long" for at in range(1, 7)},
            "Slice_7_output_0": "the search was long",
        }),
    ):  # fmt: skip
        for tried in steps:
            monkeypatch.setattr("tiered.extensions.memory.splitting.peak_budget.TRIED", tried)
            model = Model.from_proto(parse(text))
            done = split_model(model, 1)
            said = {value.name: str(reason) for value, reason in done.kept}
            assert said == {"x": "it is an input", **kept}, tried
            assert (done.regions, done.peak, len(model.main.nodes)) == (regions, peak, nodes), tried


def test_no_more_parts_than_the_budget_takes() -> None:
    counts = []
    for budget in (4288, 4287):
        model = Model.from_proto(parse(ATTENTION))
        split_model(model, budget)
        counts.append(len(model.main.nodes_of("Softmax")))
    assert counts == [2, 4]


def test_a_lower_peak_beside_another_one_is_undone() -> None:
    text = """(float[8,1] x) => (float[8,1] y) <int64[1] one = {1}, int64[2] e = {8,64}> {
        a = Expand(x, e)  b = Softmax<axis=1>(a)  r = ReduceMax(b, one)
        c = Expand(r, e)  d = Softmax<axis=0>(c)  f = Softmax<axis=1>(d)  y = ReduceMax(f, one) }"""
    model = Model.from_proto(parse(text))
    done = split_model(model, 1)
    assert (done.regions, done.peak, len(model.main.nodes)) == (0, memory_plan(model).peak, 7)
