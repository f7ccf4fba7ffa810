import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_zero_state"

# An empty batch ends the process in onnxruntime, so the batches have a size.
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _weights(kind: str, dtype: str = "float") -> str:
    rows = 2 * GATES[kind]
    return (
        f"{dtype}[5,3,3] x, {dtype}[1,{rows},3] w, {dtype}[1,{rows},2] r, {dtype}[1,{2 * rows}] b"
    )


def _model(
    kind: str, states: str, nodes: str = "", constants: str = "", dtype: str = "float"
) -> str:
    return (
        f"({_weights(kind, dtype)}) => ({dtype}[5,1,3,2] y, {dtype}[1,3,2] h) {constants}"
        f" {{ {nodes} y, h = {kind}<hidden_size=2>(x, w, r, b{states}) }}"
    )


ZEROS = "n = Shape<start=1, end=2>(x) d = Concat<axis=0>(one, n, two) z = ConstantOfShape{value}(d)"


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("value", ["", "<value = float[1] {0}>"])
def test_a_state_of_zeros_is_absent(kind: str, value: str) -> None:
    assert_rewrites(
        PASS,
        _model(
            kind,
            ", , z, z" if kind == "LSTM" else ", , z",
            ZEROS.replace("{value}", value),
            "<int64[1] one = {1}, int64[1] two = {2}>",
        ),
        _model(kind, ""),
    )


def test_a_constant_of_zeros_and_what_moves_zeros_make_zeros() -> None:
    image = "(float[5,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float[5,1,1,2] y)"
    assert_rewrites(
        PASS,
        f"{image} <float[1,1,2] z = {{0,0}}, float[2,2] v = {{0,0,0,0}}, int64[1] s = {{0}},"
        " int64[1] e = {1}, int64[3] d = {1,1,2}> { a = Slice(v, s, e) t = Transpose(a)"
        " c = Concat<axis=0>(t, t, t, t) f = Slice(c, s, e) g = Concat<axis=1>(f, f)"
        " q = Reshape(g, d) y = LSTM<hidden_size=2>(x, w, r, , , z, q) }",
        f"{image} {{ y = LSTM<hidden_size=2>(x, w, r) }}",
    )


def test_a_long_export_loses_all_that_made_its_states() -> None:
    # Two layers of a PyTorch model, whose states are slices of one tensor of zeros.
    image = "(float[5,3,2] x, float[1,8,2] w, float[1,8,2] r, float[1,16] b) => (float[5,1,3,2] y)"
    assert_rewrites(
        PASS,
        f"{image} <int64 one = {{1}}, int64[1] at = {{0}}, int64[1] first = {{1}},"
        " int64[1] layers = {2}, int64[1] squeezed = {1}> { s = Shape(x) n = Gather(s, one)"
        " u = Unsqueeze(n, at) d = Concat<axis=0>(layers, u, layers) z = ConstantOfShape(d)"
        " h1 = Slice(z, at, first, at) c1 = Slice(z, at, first, at)"
        " h2 = Slice(z, first, layers, at) c2 = Slice(z, first, layers, at)"
        " a = LSTM<hidden_size=2>(x, w, r, b, , h1, c1) i = Squeeze(a, squeezed)"
        " y = LSTM<hidden_size=2>(i, w, r, b, , h2, c2) }",
        f"{image} <int64[1] squeezed = {{1}}> {{ a = LSTM<hidden_size=2>(x, w, r, b)"
        " i = Squeeze(a, squeezed) y = LSTM<hidden_size=2>(i, w, r, b) }",
    )


def test_an_absent_operand_keeps_its_place() -> None:
    image = (
        "(float[5,1,3] x, float[1,8,3] w, float[1,8,2] r, float[1,1,2] c, float[1,6] p)"
        " => (float[5,1,1,2] y)"
    )
    assert_rewrites(
        PASS,
        f"{image} <float[1,1,2] z = {{0,0}}> {{ y = LSTM<hidden_size=2>(x, w, r, , , z, c, p) }}",
        f"{image} {{ y = LSTM<hidden_size=2>(x, w, r, , , , c, p) }}",
    )


@pytest.mark.parametrize(
    ("constants", "nodes"),
    [
        ("<float[1,1,2] z = {0,1}>", ""),
        ("<float[1,1,2] z = {0,-0.0}>", ""),
        ("<int64[3] d = {1,1,2}>", "z = ConstantOfShape<value = float[1] {1}>(d)"),
        ("<float[1,1,2] v = {0,0}>", "z = Exp(v)"),
        ("<float[1,1,2] v = {0,0}>", "z = Add(v, c)"),
        ("<float[1,1,1] v = {0}>", "q = Slice(c, one, two, two) z = Concat<axis=2>(v, q)"),
    ],
)
def test_another_state_stays(constants: str, nodes: str) -> None:
    assert_unchanged(
        PASS,
        "(float[5,1,3] x, float[1,8,3] w, float[1,8,2] r, float[1,1,2] c, int64[1] one, int64[1] two)"
        f" => (float[5,1,1,2] y) {constants} {{ {nodes} y = LSTM<hidden_size=2>(x, w, r, , , z) }}",
        because="initial_h is not known to be zero",
    )


def test_a_state_that_callers_feed_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[5,1,3] x, float[1,8,3] w, float[1,8,2] r, float[1,1,2] z = {0,0})"
        " => (float[5,1,1,2] y) { y = LSTM<hidden_size=2>(x, w, r, , , , z) }",
        because="initial_c is not known to be zero",
    )
