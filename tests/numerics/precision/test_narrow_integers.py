"""int64 to int32 where no number changes, and why other nodes stay."""

import numpy as np
import pytest

from tests.small import made_by, named, ops, parsed
from tiered import Backend, DataType, Model, UsageError
from tiered.graph.intervals.interval import Interval
from tiered.graph.intervals.range_analysis import ranges
from tiered.numerics.precision.narrow_integers import IntegerNarrowing, narrow_integers
from tiered.targets.reading import backend_of

LOW, HIGH = -(1 << 31), (1 << 31) - 1


def narrowed(text: str, **options: object) -> tuple[Model, list[str], dict[str, str], list[str]]:
    """Return the model, findings, why nodes stay by their output, and reasons of no node."""
    model = parsed(text)
    found, nodes, others = list[str](), dict[str, str](), list[str]()

    def on_skip(node: object, skip: object) -> None:
        if node is None:
            others.append(str(skip))
        else:
            nodes[node.output.name] = str(skip)  # type: ignore[attr-defined]  # a Node

    narrow_integers(model, found.append, on_skip, **options)  # type: ignore[arg-type]  # by name
    model.check_view(types=True)
    return model, found, nodes, others


ADD = "(int64[2] x) => (int64[2] y) <int64[2] k = {1,2}> { a = Add(x, k)  y = Mul(a, k) }"


def test_what_is_proven_to_fit_is_computed_in_int32() -> None:
    model, found, nodes, others = narrowed(ADD, bounds=("x=0:1000",))
    assert found == ["2 nodes compute in int32; Casts added: 2"]
    assert named(model, "a").dtype == DataType.INT32
    assert named(model, "k").dtype == DataType.INT32
    assert named(model, "y").dtype == DataType.INT64
    assert (nodes, others) == ({}, [])


@pytest.mark.parametrize(("high", "fits"), [(HIGH - 2, True), (HIGH - 1, False)])
def test_the_largest_number_is_that_of_int32(high: int, fits: bool) -> None:
    text = "(int64[2] x) => (int64[2] y) <int64[2] k = {1,2}> { y = Add(x, k) }"
    _, found, nodes, _ = narrowed(text, bounds=(f"x=0:{high}",))
    assert bool(found) == fits
    assert nodes == ({} if fits else {"y": "not proven to fit int32"})


@pytest.mark.parametrize(("low", "fits"), [(LOW + 2, True), (LOW + 1, False)])
def test_the_lowest_number_is_that_of_int32(low: int, fits: bool) -> None:
    text = "(int64[2] x) => (int64[2] y) <int64[2] k = {1,2}> { y = Sub(x, k) }"
    _, _, nodes, _ = narrowed(text, bounds=(f"x={low}:0",))
    assert nodes == ({} if fits else {"y": "not proven to fit int32"})


def test_without_a_node_in_int32_that_is_an_error() -> None:
    _, found, nodes, others = narrowed(ADD)
    assert found == []
    assert nodes == dict.fromkeys("ay", "not proven to fit int32")
    assert others == ["no node computes in int32: 1 Add: not proven to fit int32; "
                      "1 Mul: not proven to fit int32"]  # fmt: skip


def test_a_model_without_int64_has_nothing_to_say() -> None:
    _, found, nodes, others = narrowed("(float[2] x) => (float[2] y) { y = Sin(x) }")
    assert (found, nodes, others) == ([], {}, [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ReduceMean(x)", "inner numbers may be larger than int32"),
        ("ReduceL1(x)", "inner numbers may be larger than int32"),
        ("Gemm(m, m)", "inner numbers may be larger than int32"),
        ("EyeLike(m)", "the operand decides the dtype"),
    ],
)
def test_operators_with_numbers_of_their_own_stay(line: str, reason: str) -> None:
    text = f"(int64[2] x, int64[2,2] m) => (int64[A] y) {{ y = {line} }}"
    _, _, nodes, _ = narrowed(text, bounds=("x=0:9", "m=0:9"))
    assert nodes["y"] == reason


@pytest.mark.parametrize(
    ("low", "high", "reason"),
    [
        (0, HIGH // 2, ""),
        (0, HIGH // 2 + 1, "a step count may be larger than int32"),
        (LOW // 2, 0, ""),
        (LOW // 2 - 1, 0, "a step count may be larger than int32"),
    ],
)
def test_a_range_counts_its_steps(low: int, high: int, reason: str) -> None:
    text = """(int64 n) => (int64[N] y) <int64 zero = {0}, int64 one = {1}>
        { y = Range(zero, n, one) }"""
    model = parsed(text)
    interval = {"n": Interval(low, high)}
    proven = model.analysis(ranges.without_trust().with_inputs(interval))
    narrowing = IntegerNarrowing(proven, lambda node: "")
    assert narrowing.keep(made_by(model, "y")) == reason


def test_a_user_keeps_nodes() -> None:
    _, _, nodes, _ = narrowed(ADD, bounds=("x=0:9",), skip_op_types=("Add",))
    assert nodes["a"] == "Add is skipped"
    _, _, nodes, _ = narrowed(ADD, bounds=("x=0:9",), skip_nodes=("y*",))
    assert nodes["y"] == "the node is skipped"
    _, found, _, _ = narrowed(ADD, bounds=("x=0:9",), skip_op_types=("Sin",))
    assert found[0] == "no node has the operator Sin"


def test_a_user_keeps_come_after_other_reasons() -> None:
    text = "(int64[2] x) => (int64[1] y) { y = ReduceMean(x) }"
    _, _, nodes, _ = narrowed(text, bounds=("x=0:9",), skip_op_types=("ReduceMean",))
    assert nodes["y"] == "inner numbers may be larger than int32"


@pytest.mark.parametrize("end", [HIGH + 1, (1 << 63) - 1, -(1 << 63)])
def test_limits_of_a_slice_are_those_of_the_axis(end: int) -> None:
    text = f"""(float[8] x) => (float[N] y) <int64[1] s = {{0}}, int64[1] e = {{{end}}}>
        {{ y = Slice(x, s, e) }}"""
    model, found, _, _ = narrowed(text)
    assert found == ["1 node computes in int32; Casts added: 0"]
    ends = named(model, "e").const
    assert ends is not None
    assert (ends.dtype, ends.tolist()) == (np.int32, [min(max(end, LOW), HIGH)])


def test_limits_that_are_computed_are_proven() -> None:
    text = """(float[8] x, int64[1] e) => (float[N] y) <int64[1] s = {0}>
        { f = Neg(e)  y = Slice(x, s, f) }"""
    _, _, nodes, _ = narrowed(text)
    assert nodes["y"] == "not proven to fit int32"


def test_axes_of_a_slice_are_no_limits() -> None:
    model = parsed("(float[8] x, int64[1] s) => (float[N] y) { y = Slice(x, s, s, s, s) }")
    narrowing = IntegerNarrowing(model.analysis(ranges), lambda node: "")
    node, value = made_by(model, "y"), model.main.constant(np.array([HIGH + 1]), "big")
    model.refresh_types()
    proven = IntegerNarrowing(model.analysis(ranges), lambda node: "")
    assert [proven.refuse(value, node, place) for place in range(5)] == [
        "not proven to fit int32", "", "", "not proven to fit int32", "",
    ]  # fmt: skip
    assert proven.refuse(value) == "not proven to fit int32"
    other = model.main.op.Add(value, value).producer
    assert proven.refuse(value, other, 1) == "not proven to fit int32"
    assert narrowing.wide == DataType.INT64


def test_dims_that_are_not_numbers_are_bounded() -> None:
    text = """(float[N] x) => (int64[1] y) <int64[1] k = {1000}> { s = Shape(x)  y = Mul(s, k) }"""
    _, found, _, _ = narrowed(text, max_dim=1000)
    assert found
    _, _, nodes, _ = narrowed(text)
    assert nodes["y"] == "not proven to fit int32"


def test_a_model_that_computes_in_int32_already_has_nothing_to_say() -> None:
    text = """(int64[2] x, int32[2] i) => (int64[2] y, int32[2] j) { y = Neg(x)  j = Add(i, i) }"""
    _, found, nodes, others = narrowed(text)
    assert (found, nodes, others) == ([], {"y": "not proven to fit int32"}, [])


# --- declared ranges ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ("x", "bounds: 'x' is not name=low:high, as ids=0:30521"),
        ("x=1", "bounds: 'x=1' is not name=low:high"),
        ("x=a:b", "bounds: 'x=a:b' is not name=low:high"),
        ("z=0:1", "bounds: the model has no input 'z', as 'z=0:1' says"),
        ("x=2:1", "bounds: no number is in the range of 'x=2:1'"),
    ],
)
def test_a_range_that_cannot_be_is_an_error(bound: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        narrowed(ADD, bounds=(bound,))
    assert str(caught.value).startswith(message)


def test_a_range_of_one_number_is_one() -> None:
    assert narrowed(ADD, bounds=("x=1:1",))[1]


# --- targets --------------------------------------------------------------------------------------


def target(**operators: object) -> Backend:
    profile = {"api_version": 1, "name": "chip", "operators": operators}
    return backend_of(profile, "chip.toml", lambda name: {})


def types(*dtypes: str) -> dict[str, object]:
    return {"types": {"T": list(dtypes)}}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (types("int64", "int32"), ""),
        (types("int64"), "chip has no Add of int32"),
        (types("int32"), ""),
        (True, ""),
    ],
)
def test_operators_that_a_target_lacks_in_int32_stay(rule: object, reason: str) -> None:
    text = "(int64[2] x) => (int64[2] y) <int64[2] k = {1,2}> { y = Add(x, k) }"
    _, _, nodes, _ = narrowed(text, bounds=("x=0:9",), backend=target(Add=rule))
    assert nodes.get("y", "") == reason


def test_a_node_stays_for_its_operator_or_the_kernels_of_its_integers() -> None:
    model = parsed(
        """(int64[2] x, int64[2,2] m, float[2] f) => (int64[A] y) {
        a = own.ReduceMean(x)  b = EyeLike<dtype=7>(m)  c = Add(f, f)  d = Shape(f)  y = Add(x, x)
        }"""
    )
    shape = {"types": {"T": ["float"], "T1": ["int64"]}}
    backend = target(Add=types("float", "int64"), Shape=shape, EyeLike=True)
    narrowing = IntegerNarrowing(model.analysis(ranges), lambda node: "", backend)
    reasons = {name: narrowing.keep(made_by(model, name)) for name in "abcdy"}
    assert reasons == dict.fromkeys("abcd", "") | {"y": "chip has no Add of int32"}


def test_an_operator_that_a_target_does_not_take_at_all_may_change() -> None:
    text = "(int64[2] x) => (int64[2] y) <int64[2] k = {1,2}> { y = Add(x, k) }"
    _, found, nodes, _ = narrowed(text, bounds=("x=0:9",), backend=target(Mul=True))
    assert (len(found), nodes) == (1, {})


def test_numbers_are_clipped_to_int32() -> None:
    model = parsed(ADD)
    narrowing = IntegerNarrowing(model.analysis(ranges), lambda node: "")
    found, is_clamped = narrowing.converted(np.array([LOW - 1, 5, HIGH + 1]))
    assert (found.dtype, found.tolist(), is_clamped) == (np.int32, [LOW, 5, HIGH], False)
    assert ops(model) == ["Add", "Mul"]
