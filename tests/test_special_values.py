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
    f"{ROW} <float o = {{1}}> {{ a = Exp(x) b = Add(a, o) s = Log(b) t = Tanh(s) y = Mul(x, t) }}"
)
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
SOFTMAX = (
    "(float[1,4] x) => (float[1,4] y) <int64[1] a = {-1}>"
    " { m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) y = Div(e, s) }"
)
CLIP = f"{ROW} <float z = {{0}}, float s = {{6}}> {{ m = Max(x, z) y = Min(m, s) }}"
RESIDUAL = CONV.format(w="2", s="0", nodes="c = Conv(x, w) a = Add(c, x) y = Relu(a)")
SCORES = (
    "(float[1,1,2,1] x) => (float[1,1,2,2] y) <float[1,1,1,2] k = {2,-2}, float s = {0.25}>"
    " { m = MatMul(x, k) t = Mul(m, s) y = Softmax(t) }"
)
ROTATION = (
    "(float[1,1,1,4] x) => (float[1,1,1,4] y) <int64[1] z = {0}, int64[1] h = {2},"
    " int64[1] e = {4}, int64[1] l = {-1}, float[1,1,1,4] c = {2,2,2,2}>"
    " { a = Slice(x, z, h, l) b = Slice(x, h, e, l) n = Neg(b) r = Concat<axis=-1>(n, a)"
    " p = Mul(x, c) q = Mul(r, c) y = Add(p, q) }"
)
TURNED = "Transpose<perm=[0,2,1,3]>"
HEADS = (
    "(float[1,2,2] x, float[1,2,2] q, float[1,2,2] k) => (float[1,2,2] y)"
    " <int64[4] d = {0,0,1,2}, int64[3] w = {0,0,2}> { q1 = Reshape(q, d)"
    f" q2 = {TURNED}(q1) k1 = Reshape(k, d) k2 = Transpose<perm=[0,2,3,1]>(k1) x1 = Reshape(x, d)"
    f" x2 = {TURNED}(x1) s = MatMul(q2, k2) p = Softmax(s) o = MatMul(p, x2) t = {TURNED}(o)"
    " y = Reshape(t, w) }"
)
ROWS: Any = [
    [-0.0, 0, 1, 2],
    [INF, 1, 2, 3],
    [-INF, 1, 2, 3],
    [-INF] * 4,
    [NAN, 1, 2, 3],
    [HUGE, -HUGE, 1, 2],
    [-0.0] * 4,
]
SOME = 7e7
"""Stands for any number that is none of the special ones."""
ZERO, TURNED_INF = [0, 1, INF, NAN], [-INF, -INF, INF, INF]
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
        ("fuse_pad_into_pool", POOL, [1, 1, 1, -0.0], [1, 1, 1, 0], [1, 1, 1, -0.0]),
        ("backward_fold_scale_axis", BACK, LARGE, OVERFLOWED, HELD),
        ("forward_fold_scale_axis", AHEAD, LARGE, OVERFLOWED, HELD),
        ("fuse_bn_into_conv", NORM, LARGE, OVERFLOWED, HELD),
        ("fuse_minmax_into_clip", CLIP, [-0.0, 7, INF, NAN], [0, 6, 6, NAN], [-0.0, 6, 6, NAN]),
        ("fuse_residual_into_conv", RESIDUAL, [-0.0, 1, INF, NAN], ZERO, [-0.0, 1, INF, NAN]),
        ("pre_scale", SCORES, [HUGE, 1], [NAN, NAN, SOME, SOME], [SOME, 0, SOME, SOME]),
        ("fuse_rotary_embedding", ROTATION, [HUGE] * 4, [NAN] * 2 + [INF] * 2, TURNED_INF),
        ("fuse_multi_head_attention", HEADS, [HUGE] * 4, [SOME] * 4, [INF] * 4),
    ],
)
def test_what_becomes_of_special_numbers(
    pass_: str, text: str, x: Sequence[float], was: Sequence[float], has: Sequence[float]
) -> None:
    source, result = _applied(pass_, text)
    feeds = _feeds(source, x)
    assert _kinds(Session(source).run(feeds)["y"]) == _kinds(was)
    assert _kinds(Session(result).run(feeds)["y"]) == _kinds(has)


@pytest.mark.parametrize("x", ROWS)
@pytest.mark.parametrize(
    ("pass_", "text"),
    [
        ("fuse_softmax", SOFTMAX),
        ("fuse_quick_gelu", f"{ROW} {{ s = Sigmoid(x) y = Mul(x, s) }}"),
        *(
            ("fuse_bias_gelu", f"{ROW} <float[4] b = {{{bias}}}> {{ t = Add(x, b) y = {gelu}(t) }}")
            for bias in ("1,1,1,1", "1e38,1e38,1e38,1e38")
            for gelu in ("Gelu", 'Gelu<approximate="tanh">')
        ),
        *(
            ("fuse_conv_activation", CONV.format(w=2, s=0, nodes=f"c = Conv(x, w) y = {act}(c)"))
            for act in ("Relu", "Sigmoid", "Tanh", "LeakyRelu")
        ),
        *(
            (
                "fuse_gemm_activation",
                "(float[1,4] x) => (float[1,2] y) <float[4,2] w = {2,2,2,2,2,2,2,2}>"
                f" {{ c = Gemm(x, w) y = {act}(c) }}",
            )
            for act in ("Relu", "Sigmoid", "Tanh", "LeakyRelu")
        ),
    ],
)
def test_special_numbers_stay_special(pass_: str, text: str, x: Sequence[float]) -> None:
    source, result = _applied(pass_, text)
    feeds = _feeds(source, x)
    assert _kinds(Session(source).run(feeds)["y"]) == _kinds(Session(result).run(feeds)["y"])


def test_masks_that_overflow_together_leave_nothing() -> None:
    layers = (
        "q = Neg(x) q1 = Add(q, a) q2 = Add(q1, b) y = Softmax(q2)"
        " r = Neg(t) r1 = Add(r, a) r2 = Add(r1, b) z = Softmax(r2)"
    )
    names = ("x", "t", "a", "b")
    inputs = ", ".join(f"float[1,1,1,2] {name}" for name in names)
    source, result = _applied(
        "fuse_consecutive_mask",
        f"({inputs}) => (float[1,1,1,2] y, float[1,1,1,2] z) {{ {layers} }}",
    )
    feeds = {name: np.full((1, 1, 1, 2), -HUGE, np.float32) for name in names}
    assert _kinds(Session(source).run(feeds)["y"]) == _kinds([SOME] * 2)
    assert _kinds(Session(result).run(feeds)["y"]) == _kinds([NAN] * 2)


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
    text = (
        "(float[1,1,2,1] q, float[1,1,2,1] k, float[2,2] m) => (float[1,1,2,1] y)"
        " <float o = {0}> { t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) z = Add(s, m)"
        f" p = Softmax(z) {nodes} }}"
    )
    source, result = _applied("fuse_attention", text, opset=23, backend=None)
    feeds = {**_feeds(source, [q, q]), "m": np.full((2, 2), mask, np.float32)}
    assert _kinds(Session(source).run(feeds)["y"]) == _kinds([was] * 2)
    assert _kinds(Session(result).run(feeds)["y"]) == _kinds([has] * 2)


def _applied(
    pass_: str, text: str, *, opset: int = 21, backend: str | None = "onnxruntime_cpu"
) -> tuple[Any, Any]:
    """Return a model, and what the pass made of it."""
    view = Model.from_proto(parse(text, opset=opset))
    source = view.to_proto()
    context = PassContext.isolated(opt_level=4, backend=backend)
    get_pass(pass_).apply(view, context)
    assert pass_ in [result.info.name for result in context.report.results if result.changed]
    return source, view.to_proto()


def _feeds(model: Any, x: Sequence[float]) -> dict[str, Any]:
    """Return the numbers for the first input, and ones for all others."""
    first, *others = model.graph.input
    feeds = {value.name: np.ones(_shape_of(value), np.float32) for value in others}
    return {first.name: np.array(x, np.float32).reshape(_shape_of(first)), **feeds}


def _shape_of(value: Any) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def _kinds(numbers: Any) -> list[str]:
    """Return NaN, infinities and zeros as they are written, any other number as one."""
    return [
        repr(float(number)) if number == 0 or not np.isfinite(number) else "a number"
        for number in np.ravel(numbers)
    ]
