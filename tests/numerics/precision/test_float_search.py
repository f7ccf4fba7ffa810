"""Which nodes stay float: what amplifies its rounding, leaves the range, or is not proven."""

from typing import Any

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered import DataType, Model, Node
from tiered.numerics.precision import float_search as module
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.float_search import FloatSearch
from tiered.numerics.precision.lower import PrecisionRules
from tiered.numerics.precision.narrowed_runs import NarrowedRuns
from tiered.support.errors import VerificationError

HALF, BFLOAT = DataType.FLOAT16, DataType.BFLOAT16
CHAIN = "(float[2] x) => (float[2] y) { a = Sin(x)  b = Cos(a)  c = Exp(b)  y = Tanh(c) }"


def search(text: str, low: DataType = HALF, **rules: Any) -> FloatSearch:
    model = parsed(text)
    model.refresh_types()
    return FloatSearch(model, low, PrecisionRules(**rules), keeps_io=True)


def outputs(nodes: Any) -> list[str]:
    return [node.output.name for node in nodes]


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def feeds(*numbers: float) -> list[Any]:
    return [{"x": floats(*numbers)}]


# --- what is known --------------------------------------------------------------------------------


def test_nodes_that_compute_are_those_that_nothing_keeps() -> None:
    text = CHAIN.replace("b = Cos(a)", "t = Identity(a)  b = Cos(t)")
    found = search(text, skip_op_types=("Exp",))
    assert outputs(found.computing()) == ["a", "b", "y"]  # Identity computes nothing
    found.kept[made_by(found.model, "a")] = "why"
    assert outputs(found.computing()) == ["b", "y"]


def test_what_a_node_reads_stays_float_where_it_amplifies_rounding() -> None:
    found = search(CHAIN.replace("b = Cos(a)", "t = Identity(a)  b = Cos(t)"))
    b = made_by(found.model, "b")
    a, t = named(found.model, "a"), named(found.model, "t")
    eps = float(np.finfo(np.float16).eps)
    reason = "read by 'b', which amplifies its rounding"
    for error, is_kept in ((4 * eps, False), (4.01 * eps, True)):
        found.errors = {b: error}
        narrowing = found.narrowing({b: "tried"})
        assert narrowing.keep(b) == "tried"
        assert [narrowing.refuse(value) for value in (a, t)] == [reason if is_kept else ""] * 2
        assert narrowing.refuse(named(found.model, "b")) == ""
    assert found.narrowing().keep(b) == ""
    assert found.kept == {}


def test_a_reason_that_is_known_comes_before_an_amplified_one() -> None:
    found = search(CHAIN)
    b, a = made_by(found.model, "b"), named(found.model, "a")
    found.errors, found.beyond = {b: 1.0}, {a: "too large"}
    assert found.narrowing({b: "tried"}).refuse(a) == "too large"


# --- ranges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "is_suspect"),
    [
        ("Exp(x)", True),
        ("ReduceSum<keepdims=1>(x)", True),
        ("Div(x, x)", True),
        ("Softmax(x)", True),
        ("CumSum(x, zero)", True),
        ("ReduceMax<keepdims=1>(x)", False),
        ("Mul(x, x)", False),
        ("Exp(low)", False),
        ("Softmax(low)", False),
    ],
)
def test_operators_that_may_leave_the_range_are_suspects(line: str, is_suspect: bool) -> None:
    found = search(
        f"""(float[2] x) => (float[2] y) <int64 zero = {{0}}> {{
        low = Sigmoid(x)  s = {line}  y = Add(s, low) }}"""
    )
    found.suspect()
    reason = "its range is neither measured nor proven"
    kept = {node.output.name: why for node, why in found.kept.items()}
    assert kept == ({"s": reason} if is_suspect else {})


def test_what_is_measured_too_large_stays() -> None:
    text = "(float[2] x) => (float[2] y) { a = Mul(x, x)  y = Sqrt(a) }"
    found = search(text)
    found.keep_beyond(feeds(100, 1), 1)
    assert (found.kept, found.beyond) == ({}, {})
    found.keep_beyond(feeds(100, 1), 7)  # 70,000
    assert [value.name for value in found.beyond] == ["a"]
    wide = search(text, BFLOAT)
    wide.keep_beyond(feeds(1000, 1), 4)
    assert wide.beyond == {}


# --- local errors ---------------------------------------------------------------------------------


def test_nodes_of_a_large_local_error_stay() -> None:
    text = "(float[2] x) => (float[2] y) <float[2] k = {2048,2048}> { a = Sub(x, k)  y = Tanh(a) }"
    for low, kept in ((0.9, {"a": "a local error of 1"}), (1.0, {})):
        found = search(text)
        trials = NarrowedRuns.of(found.model, feeds(2049, 2049), seed=0, made=1)
        found.measure(trials, low)
        assert {node.output.name: why for node, why in found.kept.items()} == kept
        assert {node.output.name: error for node, error in found.errors.items()}["a"] == 1


def test_integers_that_floats_decide_are_measured() -> None:
    text = """(float[2] x) => (int64[2] y) <float[2] k = {2049,2}> {
        a = Mul(x, k)  y = Cast<to=7>(a) }"""
    found = search(text)
    trials = NarrowedRuns.of(found.model, feeds(1, 1), seed=0, made=1)
    found.measure(trials, 0.5)
    a = named(found.model, "a")
    assert found.beyond == {a: "0.71 of its integers differ"}  # the root of one half


# --- a budget -------------------------------------------------------------------------------------


def met(text: str, budget: str, *numbers: float) -> tuple[FloatSearch, NarrowedRuns]:
    found = search(text)
    trials = NarrowedRuns.of(found.model, feeds(*numbers), seed=0, made=1)
    found.measure(trials, 2.0)
    found.meet(budget_of(budget), trials, "error")
    return found, trials


LOST = """(float[2] x) => (float[2] y) <float[2] k = {2048,2048}> {
    a = Sin(x)  b = Add(a, k)  c = Sub(b, k)  y = Exp(c) }"""
"""In halves the sum loses the sine."""


def test_no_node_returns_for_a_budget_that_holds() -> None:
    found, _ = met(CHAIN, "relative<=0.1", 1, 2)
    assert found.kept == {}
    assert len(found.computing()) == 4


def test_nodes_return_until_the_budget_holds() -> None:
    found, trials = met(LOST, "relative<=0.01", 1, 2)
    # The difference amplifies the rounding of the sum, which stays float as its operand.
    assert "c" in {node.output.name for node in found.kept}
    assert found.narrowing().refuse(named(found.model, "b"))
    assert {*found.kept.values()} == {"returned for relative<=0.01"}
    (judge, said), *_ = found.measured(trials, budget_of("relative<=0.01"))
    assert judge == "onnxruntime"
    assert float(said.split()[1].rstrip(",")) <= 0.01


def test_a_budget_that_nothing_holds_is_an_error() -> None:
    with pytest.raises(VerificationError):
        met(LOST.replace("y = Exp(c)", "r = RandomNormalLike(c)  y = Add(c, r)"),
            "relative<=1e-9", 1, 2)  # fmt: skip


# --- one end of a model ---------------------------------------------------------------------------


def chain_of(sizes: list[int]) -> tuple[Model, list[Node]]:
    constants = ", ".join(
        f"float[{size}] k{at} = {{{','.join('1' * size)}}}" for at, size in enumerate(sizes)
    )
    lines = " ".join(f"a{at} = Mul(x, k{at})" for at in range(len(sizes)))
    model = parsed(f"(float[1] x) => (float[N] a0) <{constants}> {{ {lines} }}")
    return model, [made_by(model, f"a{at}") for at in range(len(sizes))]


@pytest.mark.parametrize(
    ("share", "count"), [(0.0, 0), (0.19, 0), (0.2, 1), (0.5, 2), (0.8, 3), (1.0, 4)]
)
def test_an_end_of_a_model_has_a_share_of_its_weights(share: float, count: int) -> None:
    _, nodes = chain_of([2, 3, 3, 2])
    assert module._first(nodes, share) == nodes[:count]


def test_sources_are_the_floats_that_a_node_reads_and_those_that_move_there() -> None:
    model = parsed(
        """(float[2] x, int64[1] s, float[2] z) => (float[2] y) {
        a = Sin(x)  t = Reshape(a, s)  u = Identity(t)  i = acme.Identity(z)  y = Add(u, i) }"""
    )
    model.refresh_types()
    found = module._sources(made_by(model, "y"))
    assert {value.name for value in found} == {"u", "t", "a"}
