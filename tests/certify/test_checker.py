"""The checker proves what is equal, and nothing else."""

import subprocess
import sys

import pytest

from tiered import Model
from tiered.certify.checker import Checker, Proof
from tiered.certify.regions.whole import whole_problem
from tiered.testing import parse


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
