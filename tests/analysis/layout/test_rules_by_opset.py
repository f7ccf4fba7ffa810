"""Rules in the opsets that say an operator in another way, and of operators of one opset alone."""

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from tests.analysis.layout import test_rules
from tests.analysis.layout.test_rules import Drawn, check, property_test
from tiered.analysis.layout.rules import LAYOUTS
from tiered.graph.queries.op_traits import BROADCASTING, UNARY

Text = Callable[[Drawn], str]


def _forward(axes: list[int], d: Drawn) -> list[int]:
    """Return axes as opsets before 11 want them: none counted from the end."""
    return [axis % d.rank for axis in axes]


def _reduce(name: str) -> Text:
    def text(d: Drawn) -> str:
        keepdims, axes = d.integer(0, 1), _forward(d.axes(), d)
        out = d.without(axes, keepdims=bool(keepdims))
        return (
            f"(float[{d.shape}] x) => (float[{out}] y) "
            f"{{ y = {name}<axes={axes}, keepdims={keepdims}>(x) }}"
        )

    return text


def _arg(d: Drawn) -> str:
    out = d.without([d.front], keepdims=True)
    return f"(float[{d.shape}] x) => (int64[{out}] y) {{ y = ArgMax<axis={d.front}>(x) }}"


def _squeeze(d: Drawn) -> str:
    axes = _forward(d.axes(), d)
    for axis in axes:
        d.dims[axis] = 1
    shape = ",".join(map(str, d.dims))
    return f"(float[{shape}] x) => (float[{d.without(axes)}] y) {{ y = Squeeze<axes={axes}>(x) }}"


def _unsqueeze(d: Drawn) -> str:
    axes = sorted(_forward(d.axes(), d))
    for axis in axes:
        d.dims[axis] = 1
    shape = ",".join(map(str, d.dims))
    return f"(float[{d.without(axes)}] x) => (float[{shape}] y) {{ y = Unsqueeze<axes={axes}>(x) }}"


def _pad(d: Drawn) -> str:
    pads = [d.integer(0, 2) for _ in range(2 * d.rank)]
    out = ",".join(str(n + pads[at] + pads[at + d.rank]) for at, n in enumerate(d.dims))
    return f"(float[{d.shape}] x) => (float[{out}] y) {{ y = Pad<pads={pads}, value=1.5>(x) }}"


def _slice(d: Drawn) -> str:
    axes = _forward(d.axes(), d)
    out = ",".join("1" if at in axes else str(n) for at, n in enumerate(d.dims))
    named = f", axes={axes}" if axes != list(range(len(axes))) else ""
    return (
        f"(float[{d.shape}] x) => (float[{out}] y) "
        f"{{ y = Slice<starts={[0] * len(axes)}, ends={[1] * len(axes)}{named}>(x) }}"
    )


def _split(d: Drawn) -> str:
    d.dims[d.front] = 4
    shape = ",".join(map(str, d.dims))
    return (
        f"(float[{shape}] x) => (float[{d.resized(3)}] y, float[{d.resized(1)}] z) "
        f"{{ y, z = Split<axis={d.front}, split=[3,1]>(x) }}"
    )


def _top_k(d: Drawn) -> str:
    out = d.resized(1)
    return (
        f"(float[{d.shape}] x) => (float[{out}] y, int64[{out}] i) "
        f"{{ y, i = TopK<axis={d.front}, k=1>(x) }}"
    )


def _same(use: str) -> Text:
    """Return the text of an operator whose result has the shape of its operand."""
    return lambda d: (
        f"(float[{d.shape}] x) => (float[{d.shape}] y) {{ y = {use.format(axis=d.front)} }}"
    )


def _scales(attribute: bool) -> Text:
    def text(d: Drawn) -> str:
        scales = [1, 1, *(d.integer(1, 2) for _ in range(2))]
        out = ",".join(str(n * k) for n, k in zip(d.dims, scales, strict=True))
        numbers = ",".join(f"{k}.0" for k in scales)
        if attribute:
            return (
                f"(float[{d.shape}] x) => (float[{out}] y) "
                f'{{ y = Upsample<mode="nearest", scales=[{numbers}]>(x) }}'
            )
        return (
            f"(float[{d.shape}] x) => (float[{out}] y) <float[4] s = {{{numbers}}}> "
            '{ y = Upsample<mode="nearest">(x, s) }'
        )

    return text


def _resize(d: Drawn) -> str:
    return _scales(attribute=False)(d).replace("Upsample", "Resize")


def _scatter(d: Drawn) -> str:
    d.dims[d.front] = 2
    shape = ",".join(map(str, d.dims))
    return (
        f"(float[{shape}] x, int64[{shape}] i, float[{shape}] u) => (float[{shape}] y) "
        f"{{ y = Scatter<axis={d.front}>(x, i, u) }}"
    )


def _size(d: Drawn) -> str:
    return f"(float[{d.shape}] x) => (int64 y) {{ y = Size(x) }}"


def _vectors(use: str, count: int) -> Text:
    """Return the text of an operator that reads a number for each channel, `count` times."""

    def text(d: Drawn) -> str:
        names = [f"q{at}" for at in range(count)]
        vectors = ", ".join(f"float[{d.dims[1]}] {name}" for name in names)
        return (
            f"(float[{d.shape}] x, {vectors}) => (float[{d.shape}] y) "
            f"{{ y = {use.format(', '.join(names), groups=d.dims[1])} }}"
        )

    return text


def _rms(d: Drawn) -> str:
    tail = ",".join(map(str, d.dims[d.front :]))
    return (
        f"(float[{d.shape}] x, float[{tail}] s) => (float[{d.shape}] y) "
        f"{{ y = RMSNormalization<axis={d.axis}>(x, s) }}"
    )


def _mean_variance(d: Drawn) -> str:
    return _same(f"MeanVarianceNormalization<axes={d.axes()}>(x)")(d)


AS_ATTRIBUTES = [7, 9, 11]

# In another order their sums are rounded differently.
ROUNDED = {
    "LRN", "LogSoftmax", "MeanVarianceNormalization", "RMSNormalization", "ReduceLogSum",
    "ReduceLogSumExp", "Softmax",
}  # fmt: skip

CASES: dict[str, tuple[Text, list[int], dict[str, int]]] = {
    "ArgMax": (_arg, [7, 11], {}),
    "BatchNormalization": (
        _vectors("BatchNormalization(x, {})", 4), [7, 9, 14], {"least": 3},
    ),
    "Clip": (_same("Clip<min=-1.0, max=2.0>(x)"), [7, 10], {}),
    "Dropout": (_same("Dropout<ratio=0.5>(x)"), [7, 10], {}),
    "GroupNormalization": (
        _vectors("GroupNormalization<num_groups={groups}>(x, {})", 2), [21], {"least": 4},
    ),
    "Hardmax": (_same("Hardmax<axis={axis}>(x)"), [7, 11], {}),
    "LRN": (_same("LRN<size=3>(x)"), [7, 13], {"least": 4}),
    "LogSoftmax": (_same("LogSoftmax<axis={axis}>(x)"), [7, 11], {}),
    # Of rank 3: onnx infers no type where the axes are the default ones, of rank 4.
    "MeanVarianceNormalization": (_mean_variance, [13], {"least": 3, "most": 3}),
    "Pad": (_pad, [7, 10], {}),
    "RMSNormalization": (_rms, [23], {"least": 3}),
    **{
        f"Reduce{kind}": (_reduce(f"Reduce{kind}"), AS_ATTRIBUTES, {})
        for kind in ("L1", "LogSum", "LogSumExp", "Max", "Mean", "Prod", "Sum", "SumSquare")
    },
    "Resize": (_resize, [10], {"least": 4}),
    "Scatter": (_scatter, [9, 10], {}),
    "Size": (_size, [13, 21], {}),
    "Slice": (_slice, [7, 9], {}),
    "Softmax": (_same("Softmax<axis={axis}>(x)"), [7, 11], {}),
    "Split": (_split, [7, 11], {}),
    "Squeeze": (_squeeze, AS_ATTRIBUTES, {}),
    "TopK": (_top_k, [7, 9], {}),
    "Unsqueeze": (_unsqueeze, AS_ATTRIBUTES, {}),
    "Upsample": (_scales(attribute=False), [9], {"least": 4}),
    "Upsample by an attribute": (_scales(attribute=True), [7], {"least": 4}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@property_test
@given(data=st.data())
def test_an_operator_as_its_opset_says_it(name: str, data: st.DataObject) -> None:
    text, opsets, limits = CASES[name]
    opset = data.draw(st.sampled_from(opsets), label="opset")
    check(text(Drawn(data, **limits)), data, opset=opset, is_rounded=name in ROUNDED)


# --- operators of onnxruntime ---------------------------------------------------------------------

QUANTIZED = "<float s = {{0.5}}, uint8 z = {{3}}> "

MICROSOFT = {
    "FastGelu": "(float[{0}] x) => (float[{0}] y) {{ y = com.microsoft.FastGelu(x) }}",
    "Gelu": "(float[{0}] x) => (float[{0}] y) {{ y = com.microsoft.Gelu(x) }}",
    "QuickGelu": "(float[{0}] x) => (float[{0}] y) {{ y = com.microsoft.QuickGelu(x) }}",
    "QLinearSigmoid": "(uint8[{0}] q) => (uint8[{0}] y) " + QUANTIZED
    + "{{ y = com.microsoft.QLinearSigmoid(q, s, z, s, z) }}",
    "QLinearLeakyRelu": "(uint8[{0}] q) => (uint8[{0}] y) " + QUANTIZED
    + "{{ y = com.microsoft.QLinearLeakyRelu(q, s, z, s, z) }}",
    "QLinearAdd": "(uint8[{0}] q, uint8[{1}] r) => (uint8[{0}] y) " + QUANTIZED
    + "{{ y = com.microsoft.QLinearAdd(q, s, z, r, s, z, s, z) }}",
    "QLinearMul": "(uint8[{0}] q, uint8[{1}] r) => (uint8[{0}] y) " + QUANTIZED
    + "{{ y = com.microsoft.QLinearMul(q, s, z, r, s, z, s, z) }}",
    "DequantizeLinear": "(uint8[{0}] q) => (float[{0}] y) " + QUANTIZED
    + "{{ y = com.microsoft.DequantizeLinear(q, s, z) }}",
    "QuantizeLinear": "(float[{0}] x) => (uint8[{0}] y) " + QUANTIZED
    + "{{ y = com.microsoft.QuantizeLinear(x, s, z) }}",
}  # fmt: skip


@pytest.mark.parametrize("name", MICROSOFT)
@property_test
@given(data=st.data())
def test_an_operator_of_onnxruntime(name: str, data: st.DataObject) -> None:
    d = Drawn(data)
    # Kernels compute what is left over after the last full vector in another way.
    dims = [*map(str, d.dims), "16"]
    text = MICROSOFT[name].format(",".join(dims), ",".join(dims[d.integer(0, len(dims)) :]))
    imports = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]> g '
    check(imports + text, data)


def test_every_rule_is_tested() -> None:
    tested = {name.split()[0] for name in (*test_rules.CASES, *CASES)}
    # CumProd is CumSum by another name, and onnxruntime does not have it.
    assert _known_of("") - tested == {"CumProd"}
    assert _known_of("com.microsoft") <= set(MICROSOFT)


def test_what_computes_element_by_element_has_no_rule() -> None:
    """Its axis map says all of it; each is written in other orders in these tests too."""
    assert {*UNARY, *BROADCASTING}.isdisjoint(_known_of(""))
    assert set(MICROSOFT) - _known_of("com.microsoft") == {
        "FastGelu", "Gelu", "QLinearAdd", "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid",
        "QuickGelu",
    }  # fmt: skip


def _known_of(domain: str) -> set[str]:
    return {op_type for each, op_type in LAYOUTS.rules if each == domain}
