"""schedule: the order of the nodes, and nothing else."""

import pytest

from tests.rollback import assert_undone
from tiered import Model, UsageError, get_pass, memory_plan, optimize
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_unchanged, parse

PASS = "schedule"
TEXT = """(float[N] x) => (float[1] y) <int64[1] zero = {0}> {
    a = Concat<axis=0>(x, x)  b = Concat<axis=0>(x, x)
    c = ReduceMean(a, zero)  d = ReduceMean(b, zero)  y = Sub(c, d) }"""


def _order(model: object) -> list[str]:
    return [node.output[0] for node in model.graph.node]  # type: ignore[attr-defined]  # a proto


def test_what_a_tensor_is_for_comes_before_the_next_one() -> None:
    made = assert_undone(PASS, TEXT)
    assert _order(made) == ["a", "c", "b", "d", "y"]
    before = parse(TEXT)
    feeds = make_inputs(before).feeds
    assert Session(before).run(feeds)["y"].tobytes() == Session(made).run(feeds)["y"].tobytes()
    assert get_pass(PASS)(made) == made


def test_an_order_without_gain_stays() -> None:
    text = "(float[4] x) => (float[4] y) { b = Sin(x) a = Cos(x) y = Add(a, b) }"
    assert_unchanged(PASS, text, because="no order is better")


def test_sizes_decide() -> None:
    text = """(float[N] x, float[M] z) => (float[1] y) <int64[1] zero = {0}> {
        a = Softmax(x)  b = Softmax(z)
        c = ReduceMean(a, zero)  d = ReduceMean(b, zero)  y = Sub(c, d) }"""
    assert _order(get_pass(PASS, dims=["N=9", "M=1"])(parse(text)))[:2] == ["a", "c"]
    with pytest.raises(UsageError, match="a size is name=size, not 'N'"):
        get_pass(PASS, dims=["N"])(parse(text))
    said = "schedule: no input of the model has a dim 'K'; it has N, M"
    with pytest.raises(UsageError, match=f"^{said}\n"):
        get_pass(PASS, dims=["K=2"])(parse(text))


def test_by_depth() -> None:
    text = "(float[4] x) => (float[4] y) { a = Sin(x) b = Cos(a) c = Exp(x) y = Add(b, c) }"
    made = get_pass(PASS, objective="depth")(parse(text))
    assert _order(made) == ["a", "c", "b", "y"]
    assert_unchanged(PASS, made, because="no order is better", objective="depth")


def test_the_order_survives_the_other_passes_and_a_second_run() -> None:
    once = optimize(parse(TEXT), opt_level=2, required=[PASS])
    assert _order(once) == ["a", "c", "b", "d", "y"] or len(once.graph.node) < 5
    assert optimize(once, opt_level=2, required=[PASS]) == once
    peak = memory_plan(Model.from_proto(once)).peak
    assert peak < memory_plan(Model.from_proto(parse(TEXT))).peak
