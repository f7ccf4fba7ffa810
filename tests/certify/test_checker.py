"""The checker proves what is equal, and nothing else."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar, Self, cast

import ml_dtypes
import numpy as np
import pytest

from tests.certify.call import FLOAT, INT64, free, known
from tiered import DataType, Model
from tiered.certify import checker
from tiered.certify.checker import METHODS, Checker, Proof, ProofMethod
from tiered.certify.domains.bits import Bits
from tiered.certify.evaluation.values import CheckedTensor, Misfit, TensorList, Unproved
from tiered.certify.problem import Assumed, Border, Given, Problem, Side
from tiered.certify.regions.whole import whole_problem
from tiered.certify.trial_sizes import TrialSizes
from tiered.graph.core.tensor import Tensor
from tiered.testing import parse

DOUBLE = int(DataType.DOUBLE)


def proof(before: str, after: str, opset: int = 21) -> Proof:
    models = [Model.from_proto(parse(text, opset=opset)) for text in (before, after)]
    return Checker().prove(whole_problem(*models))


F6, F23 = "(float[2,3] x, float[2,3] z) => (float[2,3] y)", "(float[2,3] x) => (float[?,?] y)"
EQUAL = {
    "commuted": (f"{F6} {{ y = Add(x, z) }}", f"{F6} {{ y = Add(z, x) }}"),
    "sub": (f"{F6} {{ y = Sub(x, z) }}", f"{F6} {{ n = Neg(z)  y = Add(n, x) }}"),
    "sign of a product": (
        f"{F6} {{ n = Neg(x)  y = Mul(n, z) }}",
        f"{F6} {{ p = Mul(z, x)  y = Neg(p) }}",
    ),
    "divided by a power of two": (
        f"{F6} <float c = {{4}}> {{ y = Div(x, c) }}",
        f"{F6} <float c = {{0.25}}> {{ y = Mul(c, x) }}",
    ),
    "times one": (f"{F6} <float c = {{1}}> {{ y = Mul(x, c) }}", f"{F6} {{ y = Identity(x) }}"),
    "plus the negative zero": (
        f"{F6} <float c = {{-0.0}}> {{ y = Add(x, c) }}", f"{F6} {{ y = Identity(x) }}",
    ),
    "greater": (
        "(float[2] x, float[2] z) => (bool[2] y) { y = Greater(x, z) }",
        "(float[2] x, float[2] z) => (bool[2] y) { y = Less(z, x) }",
    ),
    "not not": (
        "(bool[2] x) => (bool[2] y) { n = Not(x)  y = Not(n) }",
        "(bool[2] x) => (bool[2] y) { y = Identity(x) }",
    ),
    "casts to wider and back": (
        "(float16[2] x) => (float16[2] y) { w = Cast<to = 1>(x)  y = Cast<to = 10>(w) }",
        "(float16[2] x) => (float16[2] y) { y = Identity(x) }",
    ),
    "transposes": (
        "(float[2,3,4] x) => (float[4,2,3] y) { t = Transpose<perm = [1,0,2]>(x)"
        "  y = Transpose<perm = [2,1,0]>(t) }",
        "(float[2,3,4] x) => (float[4,2,3] y) { y = Transpose<perm = [2,0,1]>(x) }",
    ),
    "a pad of zeros": (
        "(float[2,3] x) => (float[2,3] y) <int64[4] p = {0,0,0,0}> { y = Pad(x, p) }",
        "(float[2,3] x) => (float[2,3] y) { y = Identity(x) }",
    ),
    "slices and a concat": (
        """(float[4] x) => (float[4] y) <int64[1] a = {0}, int64[1] b = {1}, int64[1] c = {4}> {
            s = Slice(x, a, b)  t = Slice(x, b, c)  y = Concat<axis = 0>(s, t) }""",
        "(float[4] x) => (float[4] y) { y = Identity(x) }",
    ),
    "relu before or after a transpose": (
        "(float[N,3] x) => (float[3,N] y) { r = Relu(x)  y = Transpose(r) }",
        "(float[N,3] x) => (float[3,N] y) { t = Transpose(x)  y = Relu(t) }",
    ),
    "shapes of symbolic dims": (
        """(float[N,4] x) => (float[?,?] y) <int64[1] i = {0}, int64[1] m = {-1}> {
            s = Shape(x)  n = Gather(s, i)  t = Concat<axis = 0>(n, m)  y = Reshape(x, t) }""",
        "(float[N,4] x) => (float[?,?] y) { y = Identity(x) }",
    ),
    "a product without its batch": (
        "(float[1,2,3] x) => (float[1,2,2] y) <float[3,2] w = {1,2,3,4,5,6}> { y = MatMul(x, w) }",
        """(float[1,2,3] x) => (float[1,2,2] y) <float[3,2] w = {1,2,3,4,5,6},
            int64[2] s = {2,3}, int64[3] t = {1,2,2}> {
            f = Reshape(x, s)  p = MatMul(f, w)  y = Reshape(p, t) }""",
    ),
    "a folded constant": (
        f"{F6} <float[3] a = {{1,2,3}}, float[3] b = {{4,5,6}}> {{ c = Add(a, b)  y = Mul(x, c) }}",
        f"{F6} <float[3] c = {{5,7,9}}> {{ y = Mul(x, c) }}",
    ),
    "a known condition": (
        """(float[2] x) => (float[2] y) <bool c = {1}> {
            y = If(c)<then_branch = g () => (a) { a = Neg(x) },
            else_branch = h () => (b) { b = Abs(x) }> }""",
        "(float[2] x) => (float[2] y) { y = Neg(x) }",
    ),
    "a loop with a simpler body": (
        """(float[2] x, int64 n) => (float[2] y) <bool c = {1}> {
            y = Loop(n, c, x)<body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) {
                l = Identity(k)  a = Neg(s)  d = Neg(a)  t = Add(d, x) }> }""",
        """(float[2] x, int64 n) => (float[2] y) <bool c = {1}> {
            y = Loop(n, c, x)<body = b (int64 i, bool k, float[2] s) => (bool k, float[2] t) {
                t = Add(x, s) }> }""",
    ),
}  # fmt: skip
DIFFERENT = {
    "plus zero": (f"{F6} <float c = {{0}}> {{ y = Add(x, c) }}", f"{F6} {{ y = Identity(x) }}"),
    "minus minus": (f"{F6} {{ y = Sub(x, z) }}", f"{F6} {{ y = Sub(z, x) }}"),
    "a sum in another order": (
        "(float[2] x, float[2] z, float[2] w) => (float[2] y) { a = Add(x, z)  y = Add(a, w) }",
        "(float[2] x, float[2] z, float[2] w) => (float[2] y) { a = Add(z, w)  y = Add(x, a) }",
    ),
    "divided by three": (
        f"{F6} <float c = {{3}}> {{ y = Div(x, c) }}",
        f"{F6} <float c = {{0.3333333433}}> {{ y = Mul(x, c) }}",
    ),
    "not less": (
        "(float[2] x, float[2] z) => (bool[2] y) { a = Less(x, z)  y = Not(a) }",
        "(float[2] x, float[2] z) => (bool[2] y) { y = GreaterOrEqual(x, z) }",
    ),
    "a negative of a narrow integer": (
        "(int8[2] x) => (int32[2] y) { n = Neg(x)  y = Cast<to = 6>(n) }",
        "(int8[2] x) => (int32[2] y) { w = Cast<to = 6>(x)  y = Neg(w) }",
    ),
    "casts to narrower and back": (
        "(float[2] x) => (float[2] y) { w = Cast<to = 10>(x)  y = Cast<to = 1>(w) }",
        "(float[2] x) => (float[2] y) { y = Identity(x) }",
    ),
    "a sum of halves or of floats": (
        "(float16[2] x) => (float[2] y) { a = Add(x, x)  y = Cast<to = 1>(a) }",
        "(float16[2] x) => (float[2] y) { w = Cast<to = 1>(x)  y = Add(w, w) }",
    ),
    "two draws": (
        "(float[2] x) => (float[2] y) { r = RandomNormalLike(x)  y = Sub(r, r) }",
        "(float[2] x) => (float[2] y) { r = RandomNormalLike(x)"
        "  s = RandomNormalLike(x)  y = Sub(r, s) }",
    ),
    "another axis": (
        "(float[2,2] x) => (float[2,2] y) { y = Softmax<axis = 0>(x) }",
        "(float[2,2] x) => (float[2,2] y) { y = Softmax<axis = 1>(x) }",
    ),
    "an op that nobody knows": (
        "(float[2] x) => (float[2] y) { y = com.microsoft.NoSuch(x) }",
        "(float[2] x) => (float[2] y) { y = com.microsoft.NoSuch(x) }",
    ),
    "a loop with another body": (
        """(float[2] x, int64 n) => (float[2] y) <bool c = {1}> {
            y = Loop(n, c, x)<body = b (int64 i, bool k, float[2] s) => (bool k, float[2] t) {
                t = Add(s, x) }> }""",
        """(float[2] x, int64 n) => (float[2] y) <bool c = {1}> {
            y = Loop(n, c, x)<body = b (int64 i, bool k, float[2] s) => (bool k, float[2] t) {
                t = Add(s, s) }> }""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_is_proved(name: str) -> None:
    found = proof(*EQUAL[name])
    assert found.domain == "bits", found.reason


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_in_a_bit_is_not_proved_bit_for_bit(name: str) -> None:
    found = proof(*DIFFERENT[name])
    assert found.domain != "bits"
    assert found.reason or found.domain


def test_dims_without_a_size_are_tried_at_several() -> None:
    reduced = "(float[N,3] x) => (float[1,3] y) <int64[1] axis = {0}> { %s }"
    found = proof(
        reduced % "r = Relu(x) y = ReduceMax(r, axis)",
        reduced % "r = Relu(x) z = ReduceMax(r, axis) y = Identity(z)",
    )
    assert [dict(sizes) for sizes in found.sizes][:3] == [{"N": 2}, {"N": 3}, {"N": 1}]


def test_one_size_is_enough_where_it_proves_all() -> None:
    found = proof(*EQUAL["relu before or after a transpose"])
    assert found.is_for_all
    assert [dict(sizes) for sizes in found.sizes] == [{"N": 2}]


def test_a_product_at_another_place_needs_an_axiom_of_the_runtime() -> None:
    found = proof(*EQUAL["a product without its batch"])
    assert "one-product-for-each-element" in found.axioms
    assert found.trusts_runtime


def test_axioms_that_were_used_are_named() -> None:
    assert "div-power-of-two" in proof(*EQUAL["divided by a power of two"]).axioms
    assert not proof(*EQUAL["transposes"]).axioms


def test_the_checker_knows_no_pass() -> None:
    """What it loads is of the graph, the extraction of regions and the runtime."""
    code = (
        "import sys, tiered.certify.checker, tiered.certify.regions.problems;"
        "import tiered.certify.regions.whole;"
        "print(*sorted(name for name in sys.modules if name.startswith('tiered.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in done.stdout.split()}
    assert rooms.isdisjoint(
        {"passes", "rewriter", "pipeline", "layout", "idioms", "function_passes", "module_passes"}
    )


HELD = """<float[1] zero = {0}, float[1] less = {-1}, float[1] nought = {-0.0}, int64[1] one = {1},
    int64[1] two = {2}, float[1] half = {0.5}>"""


@pytest.mark.parametrize(
    ("kind", "one", "other", "is_same"),
    [
        ("float", "Add(half, zero)", "Identity(half)", True),
        ("float", "Add(half, half)", "Identity(half)", False),
        ("float", "Identity(zero)", "Identity(nought)", False),
        ("float", "Sqrt(less)", "Div(zero, zero)", True),
        ("float", "Sqrt(less)", "Identity(half)", False),
        ("int64", "Add(one, one)", "Identity(two)", True),
        ("int64", "Add(one, two)", "Identity(two)", False),
    ],
)
def test_numbers_are_the_same_if_their_bits_are_and_every_nan_is_one(
    kind: str, one: str, other: str, is_same: bool
) -> None:
    head = f"(float x) => ({kind}[1] y) {HELD}"
    found = proof(f"{head} {{ y = {one} }}", f"{head} {{ y = {other} }}")
    assert (found.domain == "bits") is is_same


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("SequenceConstruct(x, z)", "SequenceConstruct(x, z)", True),
        ("SequenceConstruct(x, z)", "SequenceConstruct(z, x)", False),
        ("SequenceConstruct(x, z)", "SequenceConstruct(x)", False),
        ("SequenceConstruct(x)", "SequenceConstruct(x, z)", False),
    ],
)
def test_sequences_are_the_same_tensor_by_tensor(one: str, other: str, is_same: bool) -> None:
    head = "(float[2] x, float[2] z) => (seq(float[2]) y)"
    found = proof(f"{head} {{ n = Neg(x)  y = {one} }}", f"{head} {{ y = {other} }}")
    assert (found.domain == "bits") is is_same


# --- what is tried, in which order ----------------------------------------------------------------

TRUSTING, PLAIN, UNROLLING, _, REALS = METHODS
YES, TRUSTED = Proof("bits", is_plain=True), Proof("bits", axioms=frozenset(["no-zeros-meet"]))
NO, OTHER, DIFFERS = Proof("", reason="no"), Proof("", reason="other"), Proof("", differs=("y", {}))

LATER = replace(DIFFERS, reason="later")


def small(after: str = "y = Neg(x)", head: str = "(float[2] x) => (float[2] y)") -> Problem:
    models = [Model.from_proto(parse(f"{head} {{ {text} }}")) for text in ("y = Neg(x)", after)]
    return whole_problem(*models)


LOOPING = small(
    "y = Loop(n, c, x)<body = b (int64 i, bool k, float[2] s) => (bool k, float[2] t)"
    " { t = Neg(s) }>",
    "(float[2] x, int64 n, bool c) => (float[2] y)",
)


def test_methods_of_a_domain_are_tried_until_one_proves(monkeypatch: pytest.MonkeyPatch) -> None:
    both, all_three = (TRUSTING, PLAIN), (TRUSTING, PLAIN, UNROLLING)
    tried = list[ProofMethod]()
    for methods, given, problem, expected, count in (
        (both, [(YES, True)], small(), YES, 1),
        (both, [(TRUSTED, False)], small(), TRUSTED, 1),
        (both, [(TRUSTED, True), (YES, True)], small(), YES, 2),
        (all_three, [(TRUSTED, True), (NO, True)], LOOPING, TRUSTED, 2),
        ((REALS, PLAIN), [(replace(TRUSTED, domain="reals"), True)], small(),
         replace(TRUSTED, domain="reals"), 1),
        (both, [(DIFFERS, True)], small(), DIFFERS, 1),
        (all_three, [(DIFFERS, True), (YES, True)], LOOPING, YES, 2),
        (both, [(NO, True), (OTHER, True)], small(), NO, 2),
        (both, [(NO, True), (DIFFERS, True)], small(), DIFFERS, 2),
        (all_three, [(DIFFERS, True), (LATER, True)], LOOPING,
         DIFFERS, 2),
        (all_three, [(NO, True), (OTHER, True), (YES, True)], LOOPING, YES, 3),
        (all_three, [(NO, True), (OTHER, True)], small(), NO, 2),  # without a loop
        ((PLAIN, PLAIN), [(NO, True)], small(), NO, 1),
    ):  # fmt: skip
        tried.clear()

        def prove(_: Problem, method: ProofMethod, __: object, given: Any = given) -> Any:
            tried.append(method)
            return given[len(tried) - 1]

        monkeypatch.setattr(checker, "_proof", prove)
        assert checker._first(problem, frozenset(), methods) == expected
        assert len(tried) == count


def test_a_method_says_more_by_trust_loops_or_a_rule_of_its_own() -> None:
    rule: Any = len
    rules = [replace(PLAIN, rules={**PLAIN.rules, op: rule}) for op in ("Neg", "Exp")]
    for one, other, problem, says_more in (
        (PLAIN, TRUSTING, small(), True),
        (TRUSTING, PLAIN, small(), True),
        (PLAIN, PLAIN, small(), False),
        (rules[0], PLAIN, small(), True),
        (rules[1], PLAIN, small(), False),
        (UNROLLING, TRUSTING, small(), False),
        (UNROLLING, TRUSTING, LOOPING, True),
        (TRUSTING, UNROLLING, LOOPING, True),
    ):
        assert one.says_more(other, problem) == says_more


def test_the_domain_and_trust_of_a_similar_proof_come_first() -> None:
    def names(like: Proof | None) -> list[str]:
        order = [method for group in Checker()._by_domain(like) for method in group]
        return ["".join("BPURD"[METHODS.index(method)]) for method in order]

    assert "".join(names(None)) == "BPURD"
    assert "".join(names(Proof("bits"))) == "BPURD"
    assert "".join(names(Proof("bits", is_plain=True))) == "PBURD"
    assert "".join(names(Proof("reals"))) == "RDBPU"


def test_a_proof_is_searched_once_for_each_domain_and_set_of_constants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[tuple[str, int]]()
    proofs = dict[tuple[str, int], Proof]()

    def first(_: Problem, abstract: frozenset[str], methods: Sequence[ProofMethod]) -> Proof:
        asked.append((methods[0].name, len(abstract)))
        return proofs.get(asked[-1], NO)

    monkeypatch.setattr(checker, "_first", first)
    weights = f"<float[17] k = {{{','.join('1' * 17)}}}>"
    problem = small("y = Mul(x, k)", f"(float[17] x) => (float[17] y) {weights}")
    problem = replace(problem, sides=(problem.sides[1], problem.sides[1]))
    assert problem.shared() == {"k"}
    bits, reals = Proof("bits"), Proof("reals")
    all_numbers = [("bits", 0), ("reals", 0)]
    every = [("bits", 1), ("bits", 0), ("reals", 1), ("reals", 0)]
    for given, how, expected, order in (
        ({("bits", 1): bits}, {}, bits, every[:1]),
        ({("bits", 0): bits}, {}, replace(bits, needs_numbers=True), every[:2]),
        ({("reals", 1): reals}, {}, reals, every[:3]),
        ({("reals", 1): reals}, {"bits_only": True}, NO, every[:2]),
        ({}, {}, NO, every),
        ({("bits", 0): DIFFERS}, {}, DIFFERS, every),
        ({("bits", 1): DIFFERS, ("reals", 0): LATER}, {}, DIFFERS, every),
        ({("reals", 1): reals}, {"like": Proof("reals")}, reals, every[2:3]),
        ({("bits", 0): bits}, {"like": Proof("bits", needs_numbers=True)},
         replace(bits, needs_numbers=True), all_numbers[:1]),
        ({("bits", 1): bits}, {"like": Proof("bits", needs_numbers=True)}, bits,
         [*all_numbers, ("bits", 1)]),
        ({("reals", 0): reals}, {"like": Proof("bits", needs_numbers=True), "bits_only": True}, NO,
         [("bits", 0), ("bits", 1)]),
    ):  # fmt: skip
        proofs, found = cast("Any", given), Checker()
        for _ in range(2):  # the second time all is known
            assert found.prove(problem, **cast("Any", how)) == expected
        assert asked == order, (given, how)
        asked.clear()


def test_proofs_at_sizes_of_their_own_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Problem]()

    def first(problem: Problem, *_: object) -> Proof:
        asked.append(problem)
        return YES

    monkeypatch.setattr(checker, "_first", first)
    for is_fitted, count in ((False, 1), (True, 2)):
        asked.clear()
        monkeypatch.setattr(Problem, "is_fitted_to_values", is_fitted)
        found = Checker()
        for _ in range(2):
            assert found.prove(small()) == YES
        assert len(asked) == count


def test_integers_are_assumed_where_nothing_is_proved_or_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = "(float[2] x, int64[1] s) => (float[?] y)"
    problem = small("y = Reshape(x, s)", head)
    for given, expected, count in (([YES], YES, 1), ([DIFFERS], DIFFERS, 1), ([NO, NO], NO, 3),
                                   ([NO, YES], YES, 2), ([NO, DIFFERS, YES], YES, 3)):  # fmt: skip
        asked = list[Problem]()

        def proof_of(*them: Any, of: Any = (given, asked), **_: Any) -> Proof:
            of[1].append(them[1])
            found: Proof = of[0][min(len(of[1]), len(of[0])) - 1]
            return found

        monkeypatch.setattr(Checker, "_proof_of", proof_of)
        assert Checker().prove(problem) == expected
        assert len(asked) == count


# --- sizes that fit -------------------------------------------------------------------------------


def test_a_dim_gets_the_size_that_operands_need() -> None:
    problem = small(head="(float[N] x) => (float[?] y)")
    rows: list[tuple[list[tuple[int, int]], int, tuple[str, ...], int | None]] = [
        ([(2, 5)], 2, (), 5),
        ([(2, 2), (2, 4)], 2, (), 4),
        ([(3, 5)], 2, (), None),  # no dim of this size
        ([(2, 128)], 2, (), 128),
        ([(2, 129)], 2, (), None),
        ([(2, 0)], 2, (), None),
        ([(2, 1)], 2, (), 1),
        ([(3, 5)], 2, ("N",), 4),
        ([(1, 5)], 2, ("N",), None),  # larger already
    ]
    for repairs, size, data_dims, expected in rows:
        sizes = problem.sizes[0]
        sizes.clear()
        sizes["N"] = size
        problem.fitted.clear()
        at = cast("Any", SimpleNamespace(data_dims=data_dims))
        found = checker._fitted(problem, at, sizes, Misfit("why", repairs))
        assert (found and found["N"]) == expected, (repairs, size)
        assert problem.fitted == ({id(sizes): found} if found else {})
        assert checker._fitted(problem, at, sizes, Unproved("why")) is None
        if found is not None:
            again = Misfit("why", [(found["N"], 7)])
            assert checker._fitted(problem, at, found, again) is None  # it was changed
            other = TrialSizes((2,), 1)
            other["N"] = size
            assert checker._fitted(problem, at, other, Misfit("why", repairs)) is None


def test_tensors_are_equal_by_type_and_elements() -> None:
    domain = Bits()
    x, z, wide = free("x", 2), free("z", 2), free("x", 2, dtype=DOUBLE)
    one, two = known([1, 2]), known([1, 2])
    for a, b, is_equal in (
        (x, x, True), (x, free("x", 2), True), (x, z, False), (x, wide, False),
        (x, free("x", 3), False), (x, None, False), (None, x, False), (None, None, True),
        (one, two, True), (one, known([2, 1]), False), (one, x, False),
        (one, free("n", 2, dtype=INT64), False), (free("n", 2, dtype=INT64), one, False),
        (known(["a"], object), known(["a"], object), True),
        (known(["a"], object), known(["b"], object), False),
        (known([0, 1], ml_dtypes.bfloat16), known([0, 1], ml_dtypes.bfloat16), True),
        (known([0], ml_dtypes.bfloat16), known([-0.0], ml_dtypes.bfloat16), False),
        (TensorList(FLOAT, [x, z]), TensorList(FLOAT, [x, z]), True),
        (TensorList(FLOAT, [x]), TensorList(FLOAT, [x, z]), False),
        (x, TensorList(FLOAT, [x]), False),
        (TensorList(FLOAT, [x]), x, False),
    ):  # fmt: skip
        assert checker._equal(domain, a, b) is is_equal
    large = [CheckedTensor(FLOAT, (1 << 23,), lambda: np.zeros(1)) for _ in range(2)]
    with pytest.raises(checker.Illegal, match="a tensor of more than"):
        checker._equal(domain, *large)


def test_reals_are_as_coarse_as_the_constants_and_borders() -> None:
    half, whole = Tensor.of(np.ones(1, np.float16)), Tensor.of(np.ones(1, np.int64))
    rows: list[tuple[dict[str, Tensor], dict[str, Border], float]] = [
        ({}, {"x": Border(FLOAT, ())}, 2.0**-23),
        ({"h": half}, {"x": Border(FLOAT, ())}, 2.0**-10),
        ({"i": whole}, {"x": Border(DOUBLE, ()), "y": Border(FLOAT, ())}, 2.0**-23),
        ({"i": whole}, {"i": Border(INT64, ())}, 2.0**-52),
    ]
    for constants, borders, eps in rows:
        sides = Side((), constants), Side((), {})
        problem = replace(small(), sides=sides, borders=borders)
        assert checker._affine(problem).epsilon == eps


def test_what_a_proof_says() -> None:
    assert (YES.is_proved, YES.word, YES.trusts_runtime) == (True, "bits", False)
    assert (NO.is_proved, TRUSTED.trusts_runtime) == (False, True)
    assert not Proof("bits", [{}]).has_named_sizes
    assert Proof("bits", [{"N": 2}]).has_named_sizes


# --- sizes that are tried -------------------------------------------------------------------------

NAMED = small(head="(float[N] x) => (float[?] y)")
RANKS = replace(NAMED, borders={"x": Border(FLOAT, None, "x")})
FIXED = replace(NAMED, borders={"x": Border(FLOAT, (2,))})
ASSUMING = replace(FIXED, given=Assumed(Given(), {"s": Border(INT64, (1,))}))


class TriedSizes:
    """A problem at some sizes, with outcomes that are given: see the test."""

    outcomes = ""
    given: Mapping[str, Any] = {}
    tried: ClassVar[list[TrialSizes]] = []

    def __init__(self, problem: Problem, method: object, sizes: TrialSizes, _: object) -> None:
        problem.given.at(sizes)
        self.tried.append(sizes)
        self.outcome = self.outcomes[len(self.tried) - 1]
        self.data_dims = self.given.get("data_dims", ())
        self.uses_sizes = self.given.get("uses_sizes", False)
        self.has_asked = self.outcome == "a"
        self.bound = float(len(self.tried))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def outputs(self, index: int) -> dict[str, str]:
        if self.outcome == "?x"[index]:
            raise Unproved(f"unproved {len(self.tried)}")
        return {"y": "a tensor"}

    def equal(self, one: str, other: str) -> bool:
        if self.outcome == "i":
            raise checker.Illegal(f"illegal {len(self.tried)}")
        return self.outcome != "!"

    def axioms(self) -> set[str]:
        return {f"axiom {len(self.tried)}"}


def test_sizes_are_tried_until_they_show_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outcomes: = equal, ! different, ? and x: no terms before or after, i: illegal, a: asked."""
    monkeypatch.setattr(checker, "_At", TriedSizes)
    excused = replace(NAMED, excuses_empty=True)
    from_zero = replace(excused, sizes=excused.sizes[3::-1])
    zero_inside = replace(excused, sizes=[excused.sizes[at] for at in (0, 3, 1)])
    unlike = "y is not computed alike"
    rows: list[tuple[Problem, str, int, Mapping[str, Any], str]] = [
        (NAMED, "====", 9, {}, "bits at 2 3 1 0"),
        (NAMED, "!", 9, {}, f"{unlike} at N=2"),
        (FIXED, "!", 9, {}, unlike),
        (NAMED, "===!", 9, {}, f"{unlike} at N=0"),
        (excused, "===!", 9, {}, "bits at 2 3 1 but y at N=0"),
        (excused, "==!", 9, {}, f"{unlike} at N=1"),
        (from_zero, "!", 9, {}, f"{unlike} at N=0"),
        (zero_inside, "=!=", 2, {}, "bits at 2 3 but y at N=0"),
        (NAMED, "?===", 9, {}, "bits at 3 1 0"),
        (NAMED, "??==", 9, {}, "unproved 1"),
        (NAMED, "?i?=", 9, {}, "unproved 1"),
        (NAMED, "i?i=", 9, {}, "illegal 1"),
        (NAMED, "i===", 9, {}, "bits at 3 1 0"),
        (NAMED, "ii==", 9, {}, "illegal 1"),
        (NAMED, "????", 9, {}, "unproved 1"),
        (NAMED, "=x", 9, {}, "unproved 2"),
        (replace(NAMED, sizes=()), "", 9, {}, "no sizes were tried"),
        (NAMED, "=", 1, {}, "bits at 2 for all"),
        (NAMED, "?===", 1, {}, "bits at 3 1 0 for all"),
        (NAMED, "====", 1, {"data_dims": ("d",)}, "bits at 2,3 3,2 1,1 0,0 for all"),
        (FIXED, "=", 9, {}, "bits at "),
        (FIXED, "====", 9, {"uses_sizes": True}, "bits at    "),
        (RANKS, "=====", 9, {}, "bits at 2,3,5 3,2 1,1,1,1 0 2,1,1,1"),
        (RANKS, "??===", 9, {}, "bits at 1,1,1,1 0 2,1,1,1"),
        (ASSUMING, "??==", 9, {}, "bits at 1 0"),
        (NAMED, "a===", 9, {}, "bits at 2 3 1 0, asked"),
        (NAMED, "===a", 9, {}, "bits at 2 3 1 0, asked"),
    ]
    for problem, outcomes, enough, given, expected in rows:
        for sizes in problem.sizes:
            sizes.clear()
        monkeypatch.setattr(TriedSizes, "outcomes", outcomes)
        monkeypatch.setattr(TriedSizes, "given", given)
        TriedSizes.tried.clear()
        monkeypatch.setattr(
            checker, "why_not_for_all", lambda _, held, n=enough: "" if len(held) >= n else "why"
        )
        found, has_asked = checker._proof(problem, PLAIN, frozenset())
        held = " ".join(",".join(map(str, sizes.values())) for sizes in found.sizes)
        text = f"{found.domain} at {held}" if found.is_proved else found.reason
        text += f" but {found.except_for}" if found.except_for else ""
        text += " for all" if found.is_for_all else ""
        text += ", asked" if has_asked else ""
        assert text == expected, (outcomes, given)
        assert len(TriedSizes.tried) == len(outcomes)
        assert bool(found.differs) == expected.startswith(unlike)
        if found.is_proved:
            assert found.bound == max(at + 1 for at, each in enumerate(outcomes) if each in "=a!")
            assert found.is_plain


def test_without_a_named_size_nothing_is_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "why_not_for_all", lambda *_: "")
    for held, is_for_all in (([{}], False), ([], False), ([{"N": 2}], True)):
        assert checker._is_for_all(NAMED, held) == is_for_all


def test_other_sizes_are_tried_where_the_first_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "_At", TriedSizes)
    monkeypatch.setattr(checker, "why_not_for_all", lambda *_: "why")
    for made, count, reason in ((TrialSizes((7,), 1), 5, ""), (None, 4, "")):
        TriedSizes.tried.clear()
        monkeypatch.setattr(TriedSizes, "outcomes", "?====")
        monkeypatch.setattr(checker, "_fitted", lambda *_, found=made: found)
        found, _ = checker._proof(NAMED, PLAIN, frozenset())
        assert (len(TriedSizes.tried), found.reason) == (count, reason)
        assert (TriedSizes.tried[1] is made) == (made is not None)


def test_constants_of_both_sides_are_one_tensor_with_numbers_or_unknown() -> None:
    texts = "y = Mul(x, k)", "y = Mul(k, x)"
    weights = f"<float[17] k = {{{','.join('1' * 17)}}}>"
    head = f"(float[17] x) => (float[17] y) {weights}"
    one, other = (small(text, head).sides[1] for text in texts)
    problem = replace(
        small("y = Mul(x, k)", head), sides=(one, replace(other, constants=one.constants))
    )
    for abstract, is_known in ((frozenset[str](), True), (frozenset("k"), False)):
        with checker._At(problem, PLAIN, problem.sizes[0], abstract) as at:
            at.outputs(0)
            at.outputs(1)
            first, second = (scope.values["k"] for scope in at._scopes)
            assert first is second
            assert first is not None
            assert (first.known is not None) == is_known
            assert (at.bound, [*at.data_dims], at.has_asked, at.uses_sizes) == (
                0.0,
                [],
                False,
                False,
            )
    with checker._At(problem, REALS, problem.sizes[0], frozenset()) as at:
        at.outputs(0)
        cast("Any", at._setting.domain).bound = 2.0
        assert at.bound == 2.0


def test_axioms_of_nodes_on_both_sides_do_not_count() -> None:
    head = "(float[2] x, float[2] z) => (float[2] y)"
    for before, after, axioms in (
        ("a = Add(x, z)  y = Exp(a)", "a = Add(x, z)  y = Sin(a)", set()),
        ("a = Add(x, z)  y = Exp(a)", "y = Exp(x)", {"add-commutes"}),
        ("y = Exp(x)", "a = Add(x, z)  y = Exp(a)", {"add-commutes"}),
    ):
        models = [Model.from_proto(parse(f"{head} {{ {text} }}")) for text in (before, after)]
        problem = whole_problem(*models)
        with checker._At(problem, PLAIN, problem.sizes[0], frozenset()) as at:
            for index in (0, 1):
                output = at.outputs(index)["y"]
                assert output is not None
                assert output.terms.shape == (2,)
            assert at.axioms() == axioms, (before, after)


def test_a_border_without_a_shape_or_with_known_numbers() -> None:
    unknown = replace(NAMED, borders={"x": Border(FLOAT, (None,))})
    assert Checker().prove(unknown).reason == "no shape of x is known: float[?]"

    class Ones(Given):
        def at(self, sizes: TrialSizes) -> Mapping[str, Any]:
            return {"x": np.ones(2, np.float32)}

    known_ones = replace(unknown, given=Ones())
    with checker._At(known_ones, PLAIN, known_ones.sizes[0], frozenset()) as at:
        x = at._border("x")
        assert x.known is not None
        assert (x.known.tolist(), at.uses_sizes) == ([1, 1], True)
