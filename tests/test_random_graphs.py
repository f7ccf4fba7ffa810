"""Random valid models: no exact level changes an output bit, the interface, or its own result."""

import random

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from tests.conformance.fuzz_passes import NotRunnable, faults_of
from tests.conformance.judge import canonical_bytes, optimize
from tests.conformance.random_graphs import random_feeds, random_model
from tiered.runtime import run
from tiered.runtime.compare.outputs import compare
from tiered.testing import parse


@settings(max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_no_exact_level_changes_what_a_random_model_computes(source: random.Random) -> None:
    try:
        model, failures = faults_of(source, (2,))
    except NotRunnable:
        assume(False)
    assert not failures, f"{failures}\n{onnx.printer.to_text(model)}"


@pytest.mark.parametrize(
    "text",
    [
        # What onnx infers of a Loop depends on how its body is written.
        "(float x) => (int64[3,1,1,1] y) <int64 n = {3}, int64[3] s = {-1,1,1}, bool c = {1}>"
        " { y = Loop(n, c) <body = b (int64 i, bool k) => (bool o, int64[1,1,1] r)"
        " { o = Identity(k) t = Reshape(i, s) r = Identity(t) }> }",
        # Where a Loop ends that never runs, shapes begin to be known.
        "(float[n,m,m] x) => (float[?,?,?] y, float[?,?,?] p) <int64 n = {0}, bool c = {1},"
        " int64[6] s = {1,0,0,1,0,1}> { a = Loop(n, c, x) <body = b (int64 i, bool k,"
        " float[?,?,?] s) => (bool o, float[?,?,?] r) { o = Identity(k) r = Identity(s) }>"
        " p = Pad(a, s) y = Where(c, p, p) }",
        # In the body of a Scan, onnx knows the state; a new node there has to be told.
        "(int64[m] x) => (float[?,?,?] y) <float[2,3] w = {1,2,3,4,5,6}, bool[3] f = {0,0,0},"
        " float z = {2}, int64 n = {1}, bool c = {1}> { v, y = Scan<num_scan_inputs = 1, body = b"
        " (float[?,?] s, int64 r) => (float[?,?] t, float[?,?] u) { t = Identity(s)"
        " u = Loop(n, c, s) <body = l (int64 i, bool k, float[?,?] p) => (bool o, float[?,?] q)"
        " { o = Identity(k) q = Where(f, p, z) }> }>(w, x) }",
        # A size that was composed of an unknown one is known once that one has gone.
        "(float[3] x) => (float[?,?] y) <int64 z = {0}, bool t = {1}, int64[1] c = {-1},"
        " int64 d = {4}, float[2] o = {0,1}> { l = Loop(z, t, c) <body = b (int64 i, bool k,"
        " int64[?] s) => (bool m, int64[?] r) { m = Identity(k) r = Identity(s) }>"
        " j = Concat<axis=0>(l, c) y = OneHot(j, d, o) }",
        # A constant that is an output with an open type has the size of its contents.
        "(float[1] x) => (float[?,?] y, int64[?] c, float[1] z) <int64[3] c = {-1,1,1},"
        " int64 d = {2}, float[2] o = {0,1}, bool t = {1}> { y = OneHot(c, d, o)"
        " z = If(t) <then_branch = h () => (float[?] p) { p = Neg(x) },"
        " else_branch = e () => (float[?] q) { q = Abs(x) }> }",
        # What a body has read is free for what fuses with its only reader left.
        "(float[2,2] x) => (float[2,1,2] z) <bool t = {1}, int64[1] a = {0}, int64[1] b = {1}>"
        " { u = Unsqueeze(x, a) v = Unsqueeze(u, b) s = Squeeze(v, a)"
        " z = If(t) <then_branch = h () => (float[?,?,?] p) { p = Identity(s) },"
        " else_branch = e () => (float[?,?,?] q) { q = Identity(u) }> }",
    ],
)
def test_what_was_unstable_is_the_same_in_a_second_run(text: str) -> None:
    once = optimize(parse(text), 2)
    assert canonical_bytes(optimize(once, 2)) == canonical_bytes(once)


def test_a_size_that_is_zero_is_a_copied_dim_in_a_reshape() -> None:
    model = parse(
        "(float[2,1,n] x) => (int64[1] y) <int64[1] last = {-1}, int64[1] minus = {-1}>"
        " { s = Shape(x) n = Gather(s, last) t = Concat<axis=0>(n, minus) r = Reshape(x, t)"
        " y = Shape<start=1>(r) }"
    )
    for size in (0, 1, 3):
        feeds = {"x": np.zeros((2, 1, size), np.float32)}
        assert compare(run(model, feeds), run(optimize(model, 2), feeds)).ok


def test_a_number_names_a_model() -> None:
    for seed in range(20):
        assert random_model(random.Random(seed)) == random_model(random.Random(seed))


def test_random_models_have_all_kinds_of_operators_numbers_and_dims() -> None:
    operators, dtypes, opsets, dims = set(), set(), set(), set()
    for seed in range(400):
        model = random_model(random.Random(seed), 20)
        operators |= {(node.domain, node.op_type) for node in model.graph.node}
        dtypes |= {info.type.tensor_type.elem_type for info in model.graph.input}
        opsets.add(model.opset_import[0].version)
        dims |= {
            dim.WhichOneof("value")
            for info in model.graph.input
            for dim in info.type.tensor_type.shape.dim
        }
    assert {("", "If"), ("", "Loop"), ("", "Scan"), ("local", "F"), ("local", "G")} <= operators
    assert len(operators) > 60
    rare = ("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT4E2M1", "INT4", "UINT4", "STRING")
    assert {getattr(onnx.TensorProto, name) for name in rare} <= dtypes
    assert min(opsets) == 7
    assert dims == {"dim_value", "dim_param", None}


def test_a_default_is_fed_sometimes() -> None:
    seen = set()
    for seed in range(200):
        source = random.Random(seed)
        model = random_model(source, 4)
        defaults = {tensor.name for tensor in model.graph.initializer}
        overridable = defaults & {info.name for info in model.graph.input}
        seen |= {bool(overridable & random_feeds(source, model).keys()) for _ in overridable}
    assert seen == {False, True}
