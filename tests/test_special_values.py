"""Where fused operators treat special numbers in another way: what docs/fusions.md says of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tiered import Model, PassContext, get_pass
from tiered.runtime import Session
from tiered.testing import parse

INF, NAN, HUGE = np.inf, np.nan, 3e38
ROW = "(float[4] x) => (float[4] y)"
LAYER_NORM = (
    "(float[1,4] x) => (float[1,4] y) <int64[1] a = {-1}, float p = {2}, float e = {0.00001}>"
    " { m = ReduceMean(x, a) d = Sub(x, m) q = Pow(d, p) v = ReduceMean(q, a) w = Add(v, e)"
    " r = Sqrt(w) y = Div(d, r) }"
)
GELU = (
    f"{ROW} <float r = {{1.41421356}}, float o = {{1}}, float h = {{0.5}}>"
    " { d = Div(x, r) e = Erf(d) f = Add(e, o) g = Mul(x, f) y = Mul(g, h) }"
)
HARD_SWISH = (
    f"{ROW} <float t = {{3}}, float z = {{0}}, float s = {{6}}>"
    " { a = Add(x, t) c = Clip(a, z, s) m = Mul(x, c) y = Div(m, s) }"
)
HARD_SIGMOID = (
    f"{ROW} <float t = {{3}}, float z = {{0}}, float s = {{6}}>"
    " { a = Add(x, t) c = Clip(a, z, s) y = Div(c, s) }"
)
MISH = (
    f"{ROW} <float o = {{1}}>"
    " { a = Exp(x) b = Add(a, o) s = Log(b) t = Tanh(s) y = Mul(x, t) }"
)
LOG_SOFTMAX = f"{ROW} {{ s = Softmax(x) y = Log(s) }}"
POOL = (
    "(float[1,1,1,4] x) => (float[1,1,1,4] y) <int64[8] p = {0,0,0,0,0,0,0,1}, float v = {0}>"
    " { r = Relu(x) t = Pad(r, p, v) y = MaxPool<kernel_shape=[1,2]>(t) }"
)
CONV = (
    "(float[1,1,1,4] x) => (float[1,1,1,4] y) <float[1,1,1,1] w = {{{w}}}, float s = {{{s}}}>"
    " {{ {nodes} }}"
)
BACK = CONV.format(w="2", s="0.5", nodes="c = Conv(x, w) y = Mul(c, s)")
AHEAD = CONV.format(w="0.5", s="2", nodes="m = Mul(x, s) y = Conv(m, w)")
NORM = (
    "(float[1,1,1,4] x) => (float[1,1,1,4] y) <float[1,1,1,1] w = {2}, float[1] s = {0.5},"
    " float[1] z = {0}, float[1] v = {1}>"
    " { c = Conv(x, w) y = BatchNormalization<epsilon=0.0>(c, s, z, z, v) }"
)
SOME = 7e7
"""Stands for any number that is none of the special ones."""
LARGE, OVERFLOWED, HELD = [HUGE, 1, INF, NAN], [INF, 1, INF, NAN], [SOME, 1, INF, NAN]


@pytest.mark.parametrize(
    ("pass_", "text", "x", "was", "has"),
    [
        ("fuse_layernorm", LAYER_NORM, [-0.0] * 4, [0.0] * 4, [-0.0] * 4),
        ("fuse_layernorm", LAYER_NORM, [INF, 1, 2, 3], [NAN] * 4, [NAN] * 4),
        ("fuse_gelu", GELU, [HUGE, INF, NAN, -0.0], [INF, INF, NAN, -0.0], [SOME, INF, NAN, -0.0]),
        ("fuse_hardswish", HARD_SWISH, LARGE, OVERFLOWED, HELD),
        ("fuse_hardsigmoid", HARD_SIGMOID, [HUGE, -INF, NAN, -5], [1, 0, NAN, 0], [1, 0, NAN, 0]),
        ("fuse_mish", MISH, [100, INF, NAN, 0], [SOME, INF, NAN, 0], [SOME, INF, NAN, 0]),
        ("fuse_log_softmax", LOG_SOFTMAX, [0, -200, 0, 0], [SOME, -INF, SOME, SOME], [SOME] * 4),
        ("fuse_pad_into_pool", POOL, [1, 1, 1, -0.0], [1, 1, 1, 0], [1, 1, 1, -0.0]),
        ("backward_fold_scale_axis", BACK, LARGE, OVERFLOWED, HELD),
        ("forward_fold_scale_axis", AHEAD, LARGE, OVERFLOWED, HELD),
        ("fuse_bn_into_conv", NORM, LARGE, OVERFLOWED, HELD),
    ],
)
def test_what_becomes_of_special_numbers(
    pass_: str, text: str, x: Sequence[float], was: Sequence[float], has: Sequence[float]
) -> None:
    before = Model.from_proto(parse(text, opset=21))
    source, feeds = before.to_proto(), {before.main.inputs[0].name: _shaped(text, x)}
    get_pass(pass_).apply(before, PassContext.isolated(opt_level=4))
    assert _kinds(Session(source).run(feeds)["y"]) == _kinds(was)
    assert _kinds(Session(before.to_proto()).run(feeds)["y"]) == _kinds(has)


@pytest.mark.parametrize(
    ("nodes", "q", "mask", "was", "has"),
    [
        ("y = MatMul(p, k)", 1, -INF, NAN, 0.0),
        ("y = MatMul(p, k)", NAN, 0, NAN, NAN),
        ("n = IsNaN(p) w = Where(n, o, p) y = MatMul(w, k)", 1, -INF, 0.0, 0.0),
        ("n = IsNaN(p) w = Where(n, o, p) y = MatMul(w, k)", NAN, 0, 0.0, NAN),
    ],
)
def test_what_becomes_of_rows_that_see_nothing_and_of_nan(
    nodes: str, q: float, mask: float, was: float, has: float
) -> None:
    before = Model.from_proto(
        parse(
            "(float[1,1,2,1] q, float[1,1,2,1] k, float[2,2] m) => (float[1,1,2,1] y)"
            " <float o = {0}> { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) z = Add(s, m)"
            f" p = Softmax(z) {nodes} }}",
            opset=23,
        )
    )
    source, ones = before.to_proto(), np.ones((1, 1, 2, 1), np.float32)
    feeds = {"q": ones * np.float32(q), "k": ones, "m": np.full((2, 2), mask, np.float32)}
    get_pass("fuse_attention").apply(before, PassContext.isolated(opt_level=4))
    assert _kinds(Session(source).run(feeds)["y"]) == _kinds([was] * 2)
    assert _kinds(Session(before.to_proto()).run(feeds)["y"]) == _kinds([has] * 2)


def _shaped(text: str, x: Sequence[float]) -> Any:
    shape = text.partition("float[")[2].partition("]")[0]
    return np.array(x, np.float32).reshape([int(dim) for dim in shape.split(",")])


def _kinds(numbers: Any) -> list[str]:
    """Return NaN, infinities and zeros as they are written, any other number as one."""
    return [
        repr(float(number)) if number == 0 or not np.isfinite(number) else "a number"
        for number in np.ravel(numbers)
    ]
