"""Which nodes stay float: what amplifies its rounding, leaves the range, or is not proven."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered import DataType, Model, Node
from tiered.numerics.precision import float_search as module
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.float_search import FloatSearch
from tiered.numerics.precision.lower import PrecisionRules
from tiered.numerics.precision.narrowed_runs import ITSELF, NarrowedRuns
from tiered.support.errors import RuntimeFailure, VerificationError

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
        """(float[2] x, int64[1] s, float[2] z, float k) => (float[2] y) <float[2] i> {
        a = Sin(x)  t = Reshape(a, s)  u = Identity(t)  i = acme.Identity(z)  c = Clip(u, , k)
        y = Add(u, i) }"""
    )
    model.refresh_types()
    for name, sources in (("y", "u i t a"), ("c", "u k t a")):
        found = module._sources(made_by(model, name))
        assert " ".join(value.name for value in found) == sources


# --- decisions, with results that are given -------------------------------------------------------


def test_a_limit_that_is_met_keeps_no_node_and_no_operand(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "(float[2] x) => (int64[2] y) { a = Sin(x)  y = Cast<to=7>(a) }"
    for error, is_kept in ((0.5, False), (0.51, True)):
        found = search(text)
        a, cast = (made_by(found.model, name) for name in "ay")
        monkeypatch.setattr(
            module, "local_errors", lambda *_, e=error, of=(a, cast): dict.fromkeys(of, e)
        )
        monkeypatch.setattr(found, "keep_beyond", lambda *_: None)
        trials: Any = SimpleNamespace(feeds=())
        found.measure(trials, 0.5)
        assert found.kept == ({a: "a local error of 0.51"} if is_kept else {})
        reasons = {a.output: "0.51 of its integers differ"}
        assert found.beyond == (reasons if is_kept else {})


def test_casts_of_computed_floats_to_integers_are_measured() -> None:
    found = search(
        """(float[2] x) => (int64[2] y, double[2] z, int64[1] n, int64[2] o) {
        a = Sin(x)  y = Cast<to=7>(a)  z = Cast<to=11>(a)  n = Shape(a)  o = Cast<to=7>(x) }"""
    )
    a, y = (made_by(found.model, name) for name in "ay")
    assert found._integer_casts([a]) == {y: a.output}


def test_ranges_of_bfloat16_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    large = SimpleNamespace(values={"a": "large"}, nodes={"b": "large"})
    monkeypatch.setattr(module, "beyond_range", lambda *_, **__: large)
    for low, values, nodes in ((BFLOAT, {}, {}), (HALF, large.values, large.nodes)):
        found = search(CHAIN, low)
        found.keep_beyond((), 1)
        assert (found.beyond, found.kept) == (values, nodes)


def test_suspects_are_proven_by_all_floats_that_they_read_and_compute() -> None:
    for line, is_suspect in (
        ("Sqrt(most)", False),
        ("Sqrt(more)", True),
        ("Gelu(low)", False),  # no suspect
        ("Clip(low, , m)", False),  # an operand is absent
        ("ReduceSum(low, n)", False),  # the range of an integer is no matter
        ("ReduceSum(x, n)", True),
    ):
        found = search(
            f"""(float[2] x, int64[1] n) => (float[2] y, float[2] more)
            <float zero = {{0}}, float m = {{65504}}, float l = {{2}}> {{
            low = Sigmoid(x)  most = Clip(x, zero, m)  more = Mul(most, l)
            s = {line}  y = Add(s, low) }}"""
        )
        found.suspect()
        assert outputs(found.kept) == ["s"] * is_suspect, line


def test_a_budget_holds_where_something_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    budget, found = budget_of("relative<=0.1"), search(CHAIN)
    trials: Any = SimpleNamespace(measure=lambda _, measured: measured)
    for measured, holds in ((None, False), (0.05, True), (0.1, True), (0.11, False)):
        monkeypatch.setattr(found, "_outputs", lambda *_, m=measured: {"onnxruntime": m})
        assert found._holds(budget, trials, {}) == holds, measured


def test_onnxruntime_itself_judges_where_the_budget_does_not_hold_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for holds in (True, False):
        found = search(CHAIN)
        a, b = (made_by(found.model, name) for name in "ab")
        answers, asked = [{a: "first"}, {b: "second"}], list[tuple[str, ...]]()

        def least(*_: Any, of: FloatSearch = found, to: Any = answers, at: Any = asked) -> Any:
            at.append(tuple(of.judges))
            return to[len(at) - 1]

        monkeypatch.setattr(found, "_least", least)
        monkeypatch.setattr(found, "_holds", lambda *_, h=holds: h)
        trials: Any = None  # it is not asked
        found.meet(budget_of("relative<=0.1"), trials, "error")
        assert found.kept == answers[not holds]
        assert asked == [("onnxruntime",), ("onnxruntime", ITSELF)][: 2 - holds]
        assert found.judges == ["onnxruntime", ITSELF][: 2 - holds]


def test_rankings_end_where_no_node_has_to_be_float(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[tuple[Any, int]] = [({}, 1), ({"a": ""}, 3)]
    for first, rounds in cases:
        found, asked = search(CHAIN), list[Any]()
        monkeypatch.setattr(module, "rankings_of", lambda *_: ["p", "q", "r"])
        monkeypatch.setattr(module, "effects_for", lambda *_: None)
        monkeypatch.setattr(
            found, "_within", lambda *them, f=first, to=asked: to.append(them[2]) or [f]
        )
        monkeypatch.setattr(found, "_price", lambda _: 1)
        monkeypatch.setattr(found, "_with_part", lambda kept, *_: kept)
        trials: Any = SimpleNamespace(feeds=())
        assert found._least(budget_of("relative<=0.1"), trials, "error") == first
        assert asked == ["p", "q", "r"][:rounds]


def test_an_end_of_a_model_of_many_casts_is_float_where_this_costs_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """(float[1] x, int64 n) => (float[1] y) <float[1] k = {1}> {
        a = Mul(x, k)  b = Mul(a, k)  s = Exp(b)  c = Mul(s, k)  d = Mul(c, k)  e = Mul(d, k)
        y = Mul(e, k) }"""
    budget = budget_of("relative<=0.1")
    for all_casts, casts, where, more in (
        (32, 1, "", ""),  # 30 inside
        (33, 1, "", "ab"),
        (33, 1, "d", "ed"),
        (33, 1, "c", ""),
        (33, 23, "", "a"),  # with 0.2 of the weights; with 0.4 it is no cheaper
        (33, 23, "b", ""),
        (33, 24, "b", ""),
    ):
        found = search(text, skip_op_types=("Exp",))
        y = made_by(found.model, "y")

        def count(kept: Any, *, few: int = casts, many: int = all_casts) -> int:
            return {1: many, 2: 25, 3: few}[len(kept)]

        size = 2 if casts > 1 and not where else 3

        def holds(_: Any, __: Any, kept: Any, *, where: str = where, size: int = size) -> bool:
            return len(kept) == size and {*where} <= {*outputs(kept)}

        monkeypatch.setattr(found, "_casts", count)
        monkeypatch.setattr(found, "_holds", holds)
        trials: Any = None  # it is not asked
        kept = found._with_part({y: "why"}, budget, trials)
        why = "returned for relative<=0.1, with one end of the model"
        assert {node.output.name: reason for node, reason in kept.items()} == {
            "y": "why"
        } | dict.fromkeys(more, why), (all_casts, casts, where)


def test_a_small_model_is_judged_by_the_reference_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for known, is_small, trusts, holds, rounds in (
        (False, True, True, True, 1),
        (False, True, True, False, 2),
        (False, True, False, False, 1),
        (False, False, True, False, 1),
        (True, True, True, False, 1),
    ):
        found, asked = search(CHAIN), list[str]()
        a, b, c = (made_by(found.model, name) for name in "abc")
        found.judges += ["onnx.reference"] * known
        monkeypatch.setattr(
            module,
            "meet",
            lambda ranked, _m, _b, what, to=asked: to.append(what) or SimpleNamespace(items=ranked),
        )
        monkeypatch.setattr(found, "_holds", lambda *_, h=holds: h)
        trials: Any = SimpleNamespace(
            is_small=lambda _, it=is_small: it, trusts_reference=lambda _, it=trusts: it
        )
        budget, why = budget_of("relative<=0.1"), "returned for relative<=0.1"
        what = "groups of nodes that may return to it"
        assert found._within(budget, trials, [(a,), (b,)]) == [dict.fromkeys((a, b), why)]
        assert asked == [what] * rounds
        is_judged = known or (is_small and trusts)
        assert found.judges == ["onnxruntime", *["onnx.reference"] * is_judged]
        # The nodes of the last group return one by one.
        wholes = [dict.fromkeys((a, b, c), why)] * 2
        found.judges, asked[:] = ["onnxruntime", "onnx.reference"], []
        assert found._within(budget, trials, [(a,), (b, c)]) == wholes
        assert asked == [what, "nodes"]
        assert found._within(budget, trials, []) == [{}]


def test_a_price_has_casts_weights_and_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(CHAIN)
    a, b, c, y = (made_by(found.model, name) for name in "abcy")
    monkeypatch.setattr(module, "convert_precision", lambda *_, **__: SimpleNamespace(casts=3))
    monkeypatch.setattr(module, "share_of_weights", lambda *_: 0.5)
    kept = dict.fromkeys((a, b), "why")
    assert found._price(kept) == 3 + 50 + 100
    found.errors = dict.fromkeys((a, b, c, y), 1.0)
    assert found._price(kept) == 3 + 50 + 25


def test_each_judge_runs_in_its_way_and_is_left_out_where_it_does_not_run() -> None:
    found, asked, is_worse = search(CHAIN), list[Any](), list[float]()

    def outputs_of(*_: Any, by_reference: bool, is_emulated: bool, keeps_io: bool) -> str:
        asked.append((by_reference, is_emulated, keeps_io))
        if failing == asked[-1]:
            raise RuntimeFailure("no kernel")
        return "run"

    trials: Any = SimpleNamespace(
        narrowed_outputs=outputs_of,
        is_worse_deployed=lambda run, errors: (run, [*errors]) == ("run", is_worse),
        relative_error=lambda _: 0.5,
        describe=lambda found, budget: f"{found} {budget}",
    )
    judges: dict[str, Any] = {
        "onnxruntime": (False, True, True),
        "onnx.reference": (True, False, True),
        ITSELF: (False, False, True),
    }
    failing: Any = None
    for name, way in judges.items():
        found.judges, asked[:], failing = list(judges), [], way
        if name == "onnxruntime":
            with pytest.raises(RuntimeFailure, match="no kernel"):
                found._outputs(trials, found.narrowing())
            continue
        left = [each for each in judges if each != name]
        runs: Any = found._outputs(trials, found.narrowing())
        assert runs == dict.fromkeys(left, "run")
        assert asked == list(judges.values())
        assert found.judges == left
    # Of onnxruntime itself, the result is told only if it is worse.
    for known, error, fails, said in (
        (["onnxruntime"], [0.5], None, ["onnxruntime", ITSELF]),
        (["onnxruntime"], [0.4], None, ["onnxruntime"]),
        (["onnxruntime"], [0.5], judges[ITSELF], ["onnxruntime"]),
        (["onnxruntime", ITSELF], [0.5], None, ["onnxruntime", ITSELF]),
    ):
        found.judges, is_worse, failing, asked[:] = known, error, fails, []
        assert found.measured(trials, None) == [(judge, "run None") for judge in said]
        assert len(asked) == 2
