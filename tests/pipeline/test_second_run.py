"""What a level makes of a model is all that it can make of it: a second run agrees.

Each model is what is left of a random one (`make fuzz-passes`, `make at-rest`) for which that was
not so.
"""

import random
from itertools import cycle

import onnx
import pytest

from tests.conformance.at_rest import BACKENDS, LEVELS, unrest
from tests.conformance.judge import Subject, judge, open_on_onnxruntime, optimize
from tests.conformance.random_graphs import random_model
from tests.conformance.random_networks import random_network
from tiered.testing import parse


def once(state: str) -> str:
    """Return a Loop that gives x back, with a state of that type."""
    return (
        f"Loop(n, , x) <body = b (int64 i, bool k, {state} s) => (bool c, {state} t) "
        "{ c = Identity(k) t = Identity(s) }>"
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "(float[1] x) => (float[?,?] y) "
            "<int64 n = {1}, int64 zero = {0}, int64[1] axes = {0}, int64[1] rest = {-1}> {"
            f" l = {once('float[1]')} s = Shape(l) d = Gather(s, zero) u = Unsqueeze(d, axes)"
            " t = Concat<axis=0>(u, rest) y = Reshape(l, t) }",
            id="the shape of what a loop gave is a constant when the loop is gone",
        ),
        pytest.param(
            "(float[1,3] x) => (int64[?,?] y, bool[?,?] z) "
            "<float zero = {0}, float[2] f = {-1,2},"
            " int64[1,3] a = {1,2,3}, int64[1,3] b = {1,2,4}> {"
            " m = ReduceMax<keepdims=0>(f) c = Less(m, zero) z = Equal(y, b)"
            " y = If(c) <then_branch = t () => (int64[1,3] p) { p = Neg(a) },"
            " else_branch = e () => (int64[1,3] q) { q = Identity(a) }> }",
            id="what compares the result of a branch is a constant when the branch is chosen",
        ),
        pytest.param(
            "(bool[2,m,3] x) => (int64[2,2,3] y) "
            "<int64[3] s = {2,2,1}, float[1,2] f = {0.5,1.75}, int64[1] one = {1}> {"
            " e = Expand(x, s) a = ArgMax<axis=1, keepdims=0>(f) y = Where(e, a, one) }",
            id="a choice between equal numbers is a constant when the first is computed",
        ),
        pytest.param(
            "(float[2,2] x, int64 n, bool[2,2] w) => (float[?,?] y, float[?,?] z) "
            "<bool[2] no = {0,0}, float[2,2] f = {1,2,3,4}> {"
            f" l = {once('float')} d = Cast<to=11>(l) y = Cast<to=1>(d)"
            " h = Where(no, l, f) z = Neg(h) }",
            id="what is declared of an output is known of the value that becomes it",
        ),
        pytest.param(
            "(float[2] x, bool c) => (float[?] y) "
            "<int64 n = {1}, bool[1] no = {0}, float[2] f = {1,2}> {"
            f" k = If(c) <then_branch = t () => (float p) {{ p = {once('float')} }},"
            " else_branch = e () => (float q) { q = Neg(x) }>"
            " h = Where(no, k, f) y = Neg(h) }",
            id="what a body makes known is known of the node that has it",
        ),
        pytest.param(
            "(float[1] x) => (int64[1] y, int64[1] z) <bool c = {1}> {"
            " k = If(c) <then_branch = t () => (int64[1] p) {"
            " p = Constant<value = int64[1] {3}>() },"
            " else_branch = e () => (int64[1] q) { q = Shape(x) }> z = Shape(k) y = Neg(k) }",
            id="a constant that a branch gave is an initializer",
        ),
    ],
)
def test_a_second_run_changes_nothing(text: str) -> None:
    subject = Subject(parse(text), open_on_onnxruntime)
    for level in (1, 2):
        _, failures = judge(subject, level, optimize, lambda stage: None)
        assert not failures, onnx.printer.to_text(optimize(subject.model, level))


def numbers(count: int, step: int = 7) -> str:
    return ",".join(str(at * step % 11 - 5) for at in range(count))


IMAGES = "float[1,4,4,8]"


@pytest.mark.parametrize(
    ("text", "level"),
    [
        pytest.param(
            f"(float[1,16,4,4] x) => ({IMAGES} y, {IMAGES} z, {IMAGES} v) <"
            + ", ".join(f"float[8,16,1,1] {name} = {{{numbers(128)}}}" for name in "abc")
            + "> { p = Conv(x, a) q = Conv(x, b) r = Conv(x, c)"
            " y = Transpose<perm=[0,2,3,1]>(p) z = Transpose<perm=[0,2,3,1]>(q)"
            " v = Transpose<perm=[0,2,3,1]>(r) }",
            4,
            id="Transposes of branches that were merged are one",
        ),
        pytest.param(
            "(float[1,S,4] x) => (float[1,1,S,S] y) <float s = {0.3}, float[4] b = {1,2,3,4}, "
            f"float[4,4] a = {{{numbers(16)}}}, float[4,4] d = {{{numbers(16, 3)}}}, "
            "int64[2] r = {-1,4}, int64[3] t = {1,-1,4}, int64[4] u = {1,-1,1,4}> {"
            " f = Reshape(x, r) g = Gemm(f, a, b) h = Reshape(g, t) q = Mul(h, s)"
            " i = Gemm(f, d, b) k = Reshape(i, u) l = Transpose<perm=[0,2,3,1]>(k)"
            " o = Reshape(q, u) p = Transpose<perm=[0,2,1,3]>(o) m = MatMul(p, l) y = Softmax(m) }",
            3,
            id="Reshapes around a scale that was folded are one",
        ),
    ],
)
def test_issue_19_late_passes_make_no_work_for_a_second_run(text: str, level: int) -> None:
    assert not unrest(parse(text), level)


@pytest.mark.parametrize(("backend", "number"), zip(BACKENDS, cycle((2, 7, 11)), strict=False))
def test_issue_19_networks_are_at_rest_after_one_run(backend: str, number: int) -> None:
    for level in LEVELS[3:]:
        assert not unrest(random_network(number), level, backend)


REST_OF_A_TARGET = {
    "portable13": """<ir_version: 9, opset_import: ["": 20]>
        g (float[N,S,4] x) => (float[?,?,?] y)
        <float[4] w = {1,2,3,4}, float[4] b = {0,1,0,1}, int64[1] four = {4}> {
            n = Shape<start = 0, end = 2>(x)  t = Concat<axis = 0>(n, four)
            r = Reshape<allowzero = 1>(x, t)  p = LayerNormalization(r, w, b)
            q = Add(p, x)  y = LayerNormalization(q, w, b) }""",
    "coreml": """<ir_version: 8, opset_import: ["": 17]>
        g (float[3,2] s, float[2] h) => (float[3,2] y) {
            k, y = Scan<num_scan_inputs = 1, body = b (float[2] a, float[2] x) =>
                (float[2] n, float[2] o) {
                    l = ReduceSum<keepdims = 0>(x)  r = ReduceSum<keepdims = 0>(a)
                    e = Less(l, r)  w = Where(e, a, x)  n = Add(w, x)  o = Neg(w) }>(h, s) }""",
    "tensorrt": """<ir_version: 8, opset_import: ["": 17]>
        g (float[1,4] x) => (float[1,4] y) <float s = {0.3}, uint8 z = {12}> {
            q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  y = Relu(d) }""",
}
"""A late conversion to another opset, Casts of a condition that becomes an index, a late Div."""


@pytest.mark.parametrize("backend", REST_OF_A_TARGET)
def test_what_a_target_needs_late_leaves_no_work_for_a_second_run(backend: str) -> None:
    for level in LEVELS[2:]:
        assert not unrest(parse(REST_OF_A_TARGET[backend]), level, backend)


@pytest.mark.parametrize("level", LEVELS)
def test_random_graphs_are_at_rest_after_one_run(level: int) -> None:
    for number in range(3):
        assert not unrest(random_model(random.Random(number)), level), f"graph {number}"


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_target_refuses_is_expanded_once(backend: str) -> None:
    model = parse("(float[2,4] x) => (float[2,4] y) { y = Gelu(x) }")
    for level in LEVELS[1:]:
        assert not unrest(model, level, backend)
