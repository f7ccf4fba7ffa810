"""Passes that make operators which only some targets have."""

from collections.abc import Iterator

import pytest

from tiered import Graph, Model, PassContext, Sequential, Value, op, register, rewrite, var
from tiered.registry import registry
from tiered.testing import assert_rewrites, assert_unchanged, parse

SILU = "({dtype}[2] x) => ({dtype}[2] y) {{ s = Sigmoid(x) y = Mul(x, s) }}"


@rewrite(
    op.Mul(var.x, op.Sigmoid(var.x)),
    opt_level=3,
    needs=["com.microsoft::QuickGelu"],
    numerics="reassociating",
)
def fuse_silu_for_a_target(graph: Graph, x: Value) -> Value:
    """Mul(x, Sigmoid(x))  =>  QuickGelu(x)"""
    return graph.op("com.microsoft").QuickGelu(x, alpha=1.0)


PASS = fuse_silu_for_a_target.name


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register(fuse_silu_for_a_target)
    yield
    registry.unregister(PASS)


def test_a_pass_runs_for_a_backend_that_has_what_it_makes() -> None:
    after = "(float[2] x) => (float[2] y) { y = com.microsoft.QuickGelu<alpha=1.0>(x) }"
    text = SILU.format(dtype="float")
    assert_rewrites(PASS, text, after, backend="onnxruntime_cpu", runtime="onnxruntime")


def test_another_backend_skips_it_and_says_why() -> None:
    model = Model.from_proto(parse(SILU.format(dtype="float")))
    with PassContext(opt_level=3) as ctx:
        Sequential([PASS])(model)
    (result,) = [result for result in ctx.report.results if result.info.name == PASS]
    assert not result.ran
    assert result.reason == (
        "needs com.microsoft::QuickGelu, which the backend portable does not have"
    )


def test_a_node_that_the_backend_does_not_take_is_not_made() -> None:
    assert_unchanged(
        PASS,
        SILU.format(dtype="double"),
        backend="onnxruntime_cpu",
        because="onnxruntime_cpu does not take QuickGelu: X, Y are double; it takes float",
    )
    assert_unchanged(PASS, SILU.format(dtype="float"), because="portable does not take QuickGelu")
