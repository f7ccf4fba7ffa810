"""Passes that make operators which only some targets have."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.targets.test_backend import backend
from tiered import Graph, Model, PassContext, Sequential, Value, op, register, rewrite, var
from tiered.passes.interface.registry import registry
from tiered.testing import assert_rewrites, assert_unchanged, parse

SILU = "({dtype}[2] x) => ({dtype}[2] y) {{ s = Sigmoid(x) y = Mul(x, s) }}"


@rewrite(
    op.Mul(var.x, op.Sigmoid(var.x)),
    opt_level=3,
    makes=["com.microsoft::QuickGelu"],
    numerics="reassociating",
)
def fuse_silu_for_a_target(graph: Graph, x: Value) -> Value:
    """Mul(x, Sigmoid(x))  =>  QuickGelu(x)"""
    return graph.op("com.microsoft").QuickGelu(x, alpha=1.0)


@rewrite(op.Mul(var.x, var.x), opt_level=3, numerics="reassociating")
def square(graph: Graph, x: Value) -> Value:
    """Mul(x, x)  =>  Pow(x, 2)"""
    return graph.op.Pow(x, np.array(2, np.float32))


PASS = fuse_silu_for_a_target.name


@rewrite(op.Sub(var.x, var.x), opt_level=3, quantization="operators", numerics="reassociating")
def integers_for_a_target(graph: Graph, x: Value) -> Value:
    """Sub(x, x)  =>  Mul(x, x)"""
    return graph.op.Mul(x, x)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    for pass_ in (fuse_silu_for_a_target, square, integers_for_a_target):
        register(pass_)
    yield
    for pass_ in (fuse_silu_for_a_target, square, integers_for_a_target):
        registry.unregister(pass_.name)


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
        SILU.format(dtype="bfloat16"),
        backend="onnxruntime_cpu",
        because="onnxruntime_cpu does not take QuickGelu: X, Y are bfloat16; it takes float",
    )
    assert_unchanged(PASS, SILU.format(dtype="float"), because="portable does not take QuickGelu")


def test_no_standard_operator_comes_in_that_the_target_lacks() -> None:
    target = backend("[operators]\nMul = true")
    assert_unchanged(
        square.name,
        "(float[2] x) => (float[2] y) { y = Mul(x, x) }",
        backend=target,
        because="npu has no Pow, and has what it would replace",
    )
    without = backend("[operators]\nRelu = true")
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Mul(x, x) }"))
    with PassContext(opt_level=3, backend=without):
        square(model)
    assert [node.op_type for node in model.main.nodes] == ["Pow"]


def test_a_rule_looks_again_for_another_target() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Mul(x, x) }"))
    for operators, left in (("Mul = true", "Mul"), ("Mul = true\nPow = true", "Pow")):
        with PassContext(opt_level=3, backend=backend(f"[operators]\n{operators}")):
            square(model)
        assert [node.op_type for node in model.main.nodes] == [left]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (
            "portable",
            "makes quantised operators; the backend portable does not want quantised models",
        ),
        ("tensorrt", "makes quantised operators; the backend tensorrt wants qdq"),
        ("onnxruntime_cpu", "opt_level 3 includes level 3"),
    ],
)
def test_operators_of_integers_are_made_for_those_who_want_them(target: str, reason: str) -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Sub(x, x) }"))
    with PassContext(opt_level=3, backend=target) as ctx:
        Sequential([integers_for_a_target.name])(model)
    (result,) = [r for r in ctx.report.results if r.info.name == integers_for_a_target.name]
    assert result.reason == reason
