"""split_by_budget: what is at the peak in parts, until a budget holds."""

import numpy as np
import pytest
from hypothesis import given, settings

from tests.extensions.memory.graphs import sized_graphs
from tests.rollback import assert_undone
from tiered import Model, PassContext, TargetError, UsageError, get_pass, memory_plan, optimize
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "split_by_budget"
TEXT = """(float[4,2] x, float[2,8] w, float[8,2] v) => (float[4,2] y) {
    a = MatMul(x, w)  b = Tanh(a)  y = MatMul(b, v) }"""


def peak(text: str) -> int:
    return memory_plan(Model.from_proto(parse(text))).peak


def test_rows_go_through_a_layer_one_part_after_the_other() -> None:
    after = """(float[4,2] x, float[2,8] w, float[8,2] v) => (float[4,2] y)
        <int64[1] zero = {0}, int64[1] two = {2}, int64[1] rows = {0}, int64[1] again = {2},
        int64[1] four = {4}, int64[1] same = {0}> {
        p = Slice(x, zero, two, rows) a = MatMul(p, w) b = Tanh(a) c = MatMul(b, v)
        q = Slice(x, again, four, same) d = MatMul(q, w) e = Tanh(d) f = MatMul(e, v)
        y = Concat<axis=0>(c, f) }"""
    assert peak(TEXT) == 320
    assert_rewrites(PASS, TEXT, after, max_bytes=256)
    assert peak(after) == 256
    assert_undone(PASS, TEXT, max_bytes=256)


def test_remarks_have_the_peaks_and_what_is_whole() -> None:
    ctx = PassContext()
    with ctx:
        get_pass(PASS, max_bytes=100)(parse(TEXT))
    said = [remark.reason for remark in ctx.remarks]
    assert any(each.startswith("the peak was 320 bytes and is ") for each in said)
    assert "'w' is whole, of 64 bytes: it is an input" in said
    assert "the budget of 100 bytes is not met: the peak is 224" in said


def test_a_budget_that_is_not_met_is_an_error_if_the_pass_is_required() -> None:
    with pytest.raises(TargetError, match="the budget of 100 bytes is not met: the peak is 2"):
        optimize(parse(TEXT), required=[PASS], edits=[f"set {PASS}{{max_bytes=100}}"])


def test_cuts_that_leave_the_peak_as_it_is_are_undone() -> None:
    text = "(float[64,64] x) => (float[64,64] y) { a = Relu(x)  b = Tanh(a)  y = Add(a, b) }"
    assert_unchanged(PASS, text, because="no cut lowers the peak of 49152 bytes", max_bytes=20_000)


@pytest.mark.parametrize(
    ("text", "budget", "because"),
    [
        (TEXT, 320, "the peak is within the budget"),
        (TEXT.replace("float[4,2]", "float[N,2]"), 10, "no cut lowers the peak of 896 bytes"),
        (
            "(float[8] x) => (float[8] y) { a = Softmax(x) b = Softmax(a) y = Softmax(b) }",
            10,
            "over the budget",
        ),
    ],
)
def test_it_declines(text: str, budget: int, because: str | None) -> None:
    assert_unchanged(PASS, text, because=because, max_bytes=budget)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TEXT.replace("float[4,2]", "float[N,2]"), "its shape is not known"),
        ("(float[8] x) => (float[8] y) { a = Tanh(x) y = Softmax(a) }", "it is an output"),
    ],
)
def test_a_remark_names_what_cannot_be_cut(text: str, reason: str) -> None:
    ctx = PassContext()
    with ctx:
        get_pass(PASS, max_bytes=10)(parse(text))
    assert any(reason in remark.reason for remark in ctx.remarks)


@pytest.mark.parametrize(
    "text",
    [
        "(float[8] x) => (seq(float[8]) s, float[8] y) { s = SequenceConstruct(x)  y = Relu(x) }",
        """(float[8] x) => (float[8] y, float[8] z) { a = Neg(x)  s = Optional(a)
            y = Relu(a)  z = OptionalGetElement(s) }""",
        "(seq(float[8,8]) x) => (float[N,8] y) { a = ConcatFromSequence<axis=0>(x)  y = Relu(a) }",
        "(float[8] x) => (float[?] y) { a = com.acme.Own(x)  y = Relu(a) }",
    ],
)
def test_sequences_optionals_and_unknown_sizes_stay_whole(text: str) -> None:
    ctx = PassContext()
    with ctx:
        get_pass(PASS, max_bytes=1)(parse(text))
    assert any("is whole, of a size that is not known" in each.reason for each in ctx.remarks)


def test_a_budget_is_needed() -> None:
    with pytest.raises(UsageError, match="max_bytes is a positive number, not 0"):
        get_pass(PASS)(parse(TEXT))


@given(sized_graphs(nodes=12))
@settings(max_examples=40, deadline=None)
def test_the_peak_never_rises_and_the_results_stay(text: str) -> None:
    before = parse(text)
    pass_ = get_pass(PASS, max_bytes=max(1, peak(text) // 2))
    made = pass_(before)
    if made == before:
        return
    assert memory_plan(Model.from_proto(made)).peak <= peak(text)
    feeds = make_inputs(before).feeds
    one, other = Session(before).run(feeds), Session(made).run(feeds)
    for name, wanted in one.items():
        np.testing.assert_allclose(other[name], wanted, rtol=1e-5, atol=1e-6)
