import re

import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_gelu"
IMAGE = "(float[N,4] x) => (float[N,4] y)"
NUMBERS = {
    "r": 1.41421356, "q": 0.70710678, "n": -0.70710678, "o": 1, "h": 0.5, "two": 2,
    "k": 0.044715, "s": 0.7978845608, "p": 3, "u": 0.0356774081,
}  # fmt: skip


def graph(nodes: str, interface: str = IMAGE, **changed: float) -> str:
    """Return the text of a graph with the constants that its nodes read."""
    read = set(re.findall(r"\w+", nodes)) - set(re.findall(r"(\w+) =", nodes))
    numbers = {name: value for name, value in {**NUMBERS, **changed}.items() if name in read}
    constants = ", ".join(f"float {name} = {{{value}}}" for name, value in numbers.items())
    return f"{interface} <{constants}> {{ {nodes} }}"


INNER = {
    "divided": "d = Div(x, r) e = Erf(d) f = Add(e, o)",
    "multiplied": "d = Mul(q, x) e = Erf(d) f = Add(o, e)",
    "complement": "m = Neg(x) d = Mul(m, q) e = Erf(d) f = Sub(o, e)",
    "negative root": "d = Mul(x, n) e = Erf(d) f = Sub(o, e)",
}
OUTER = {
    "product first": "g = Mul(x, f) y = Mul(g, h)",
    "half first": "g = Mul(h, x) y = Mul(f, g)",
    "half of the gate": "g = Mul(f, h) y = Mul(x, g)",
    "divided by two": "g = Mul(f, x) y = Div(g, two)",
}


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
@pytest.mark.parametrize("outer", OUTER.values(), ids=OUTER)
def test_every_association_of_the_erf_form(inner: str, outer: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"{inner} {outer}"),
        f"{IMAGE} {{ y = Gelu(x) }}",
    )


CUBES = {
    "power": "a = Pow(x, p) b = Mul(a, k) c = Add(x, b) d = Mul(c, s)",
    "products": "i = Mul(x, x) a = Mul(i, x) b = Mul(k, a) c = Add(b, x) d = Mul(s, c)",
    "constant first": "i = Mul(x, k) a = Mul(i, x) b = Mul(a, x) c = Add(b, x) d = Mul(s, c)",
    "x in front": "i = Mul(x, x) a = Mul(i, k) b = Add(a, o) c = Mul(x, s) d = Mul(c, b)",
    "x inside": "i = Mul(x, x) a = Mul(i, k) b = Add(a, o) c = Mul(x, b) d = Mul(c, s)",
}


@pytest.mark.parametrize("inner", CUBES.values(), ids=CUBES)
@pytest.mark.parametrize("outer", list(OUTER.values())[:3], ids=list(OUTER)[:3])
def test_every_association_of_the_tanh_form(inner: str, outer: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"{inner} e = Tanh(d) f = Add(e, o) {outer}"),
        f'{IMAGE} {{ y = Gelu<approximate="tanh">(x) }}',
    )


def test_the_tanh_form_multiplied_out() -> None:
    assert_rewrites(
        PASS,
        graph(
            "i = Mul(x, x) a = Mul(i, u) b = Add(a, s) d = Mul(x, b) e = Tanh(d) f = Mul(e, h)"
            " g = Add(f, h) y = Mul(x, g)"
        ),
        f'{IMAGE} {{ y = Gelu<approximate="tanh">(x) }}',
    )


def test_sixteen_bits_have_their_own_root_of_two() -> None:
    interface = "(float16[N,4] x) => (float16[N,4] y)"
    # 1.4140625, 1 and 0.5, as bits.
    constants = "float16 r = {15784}, float16 o = {15360}, float16 h = {14336}"
    assert_rewrites(
        PASS,
        f"{interface} <{constants}> {{ {INNER['divided']} {OUTER['product first']} }}",
        f"{interface} {{ y = Gelu(x) }}",
        runtime="none",  # 16 bits round the chain more often than the operator
    )


CHAIN = f"{INNER['divided']} {OUTER['product first']}"


@pytest.mark.parametrize("root", [1.4140625, 1.4])
def test_a_rough_root_is_another_function(root: float) -> None:
    assert_unchanged(PASS, graph(CHAIN, r=root))


def test_another_factor_is_another_function() -> None:
    assert_unchanged(PASS, graph(CHAIN, h=0.25))


def test_two_different_operands_are_no_gelu() -> None:
    nodes = "d = Div(z, r) e = Erf(d) f = Add(e, o) g = Mul(x, f) y = Mul(g, h)"
    assert_unchanged(PASS, graph(nodes, "(float[4] x, float[4] z) => (float[4] y)"))


def test_a_constant_may_not_add_dims() -> None:
    text = graph(CHAIN, "(float[4] x) => (float[1,4] y)").replace("float h", "float[1,1] h")
    assert_unchanged(PASS, text, because="a constant may give x more dims")


def test_before_opset_20_there_is_no_gelu() -> None:
    assert_unchanged(
        PASS,
        graph(CHAIN),
        opset=19,
        because="ONNX has Gelu from opset 20 on; the model's opset is 19",
    )


@pytest.mark.parametrize(
    ("nodes", "made"),
    [
        (f"{INNER['divided']} {OUTER['product first']}", "Gelu"),
        (f"{CUBES['power']} t = Tanh(d) f = Add(t, o) {OUTER['half first']}", "FastGelu"),
    ],
)
def test_before_opset_20_it_is_that_of_onnxruntime(nodes: str, made: str) -> None:
    assert_rewrites(
        PASS,
        graph(nodes),
        f"{IMAGE} {{ y = com.microsoft.{made}(x) }}",
        opset=17,
        backend="onnxruntime_cpu",
    )


def test_an_inner_value_that_others_see_stays() -> None:
    assert_unchanged(
        PASS,
        graph(CHAIN, "(float[4] x) => (float[4] y, float[4] f)"),
        because="an inner value is a graph output",
    )


def test_doubles_keep_their_constants() -> None:
    text = graph(CHAIN, "(double[4] x) => (double[4] y)").replace("float ", "double ")
    assert_unchanged(PASS, text, because="the operator's constants are float32")
