import numpy as np
import pytest

from tests.hidden_rows import assert_same_nan
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_attention"
HEADS = "float[2,2,3,4] q, float[2,2,5,4] k, float[2,2,5,4] v"
OUT = "=> (float[2,2,3,4] y)"
KEYS = "t = Transpose<perm=[0,1,3,2]>(k) m = MatMul(q, t)"


@pytest.mark.parametrize(
    ("constants", "scaled", "scale"),
    [
        ("<float d = {2}>", "s = Div(m, d)", 0.5),
        ("<float d = {0.25}>", "s = Mul(d, m)", 0.25),
        ("", "s = Identity(m)", 1.0),
    ],
)
def test_scores_of_heads(constants: str, scaled: str, scale: float) -> None:
    scores = "m" if "Identity" in scaled else "s"
    first = "" if "Identity" in scaled else scaled
    assert_rewrites(
        PASS,
        f"({HEADS}) {OUT} {constants} {{ {KEYS} {first} p = Softmax({scores}) y = MatMul(p, v) }}",
        f"({HEADS}) {OUT} {{ y = Attention<scale={scale}>(q, k, v) }}",
        opset=23,
    )


@pytest.mark.parametrize("shape", ["3,5", "1,1,3,5", "2,1,3,5", "2,2,3,5"])
def test_a_mask_is_added_to_the_scaled_scores(shape: str) -> None:
    interface = f"({HEADS}, float[{shape}] a) {OUT}"
    assert_rewrites(
        PASS,
        f"{interface} <float d = {{2}}> {{ {KEYS} s = Div(m, d) z = Add(s, a) p = Softmax(z)"
        " y = MatMul(p, v) }",
        f"{interface} {{ y = Attention<scale=0.5>(q, k, v, a) }}",
        opset=23,
    )


def test_rows_that_are_masked_altogether_are_0_already() -> None:
    assert_rewrites(
        PASS,
        f"({HEADS}) {OUT} <float z = {{0}}> {{ {KEYS} p = Softmax(m) i = IsNaN(p)"
        " w = Where(i, z, p) y = MatMul(w, v) }",
        f"({HEADS}) {OUT} {{ y = Attention<scale=1.0>(q, k, v) }}",
        opset=23,
    )


HIDDEN = "<float z = {0}, float low = {-inf}"


def test_rows_that_a_mask_hides_altogether_stay_nan() -> None:
    interface = f"({HEADS}, bool[2,1,3,5] sees) {OUT}"
    text = (
        f"{interface} {HIDDEN}> {{ {KEYS} a = Where(sees, z, low) s = Add(m, a) p = Softmax(s)"
        " y = MatMul(p, v) }"
    )
    assert_rewrites(
        PASS,
        text,
        f"{interface} {HIDDEN}, int64[1] last = {{-1}}> {{ a = Where(sees, z, low)"
        " b = Attention<scale=1.0>(q, k, v, a) c = ReduceMax(a, last) d = Sub(c, c) y = Add(b, d) }",
        opset=23,
    )
    sees = np.ones((2, 1, 3, 5), bool)
    sees[0, 0, 1] = False
    assert_same_nan(PASS, text, {"sees": sees}, opset=23)


def test_halves_of_rows_that_a_mask_hides_stay_nan() -> None:
    heads, out = (text.replace("float", "float16") for text in (HEADS, OUT))
    text = (
        f"({heads}, bool[2,1,3,5] sees) {out} <float16 z = {{0}}, float16 low = {{64512}}> {{ {KEYS}"
        " a = Where(sees, z, low) s = Add(m, a) p = Softmax(s) y = MatMul(p, v) }"
    )
    ones = {
        name: np.ones((2, 2, size, 4), np.float16) for name, size in (("q", 3), ("k", 5), ("v", 5))
    }
    assert_same_nan(PASS, text, {**ones, "sees": np.zeros((2, 1, 3, 5), bool)}, opset=23)


@pytest.mark.parametrize(
    ("mask", "is_added"), [("{0,-inf,0, 0,0,0}", False), ("{-inf,-inf,-inf, 0,0,0}", True)]
)
def test_nan_is_added_for_constant_rows_that_hide_all(mask: str, is_added: bool) -> None:
    heads = HEADS.replace("2,2,3,4", "2,2,2,4").replace("5", "3")
    made, last = "y = Attention<scale=1.0>(q, k, v, a)", ""
    if is_added:
        made = f"b{made[1:]} c = ReduceMax(a, last) d = Sub(c, c) y = Add(b, d)"
        last = ", int64[1] last = {-1}"
    assert_rewrites(
        PASS,
        f"({heads}) => (float[2,2,2,4] y) <float[2,3] a = {mask}>"
        f" {{ {KEYS} s = Add(m, a) p = Softmax(s) y = MatMul(p, v) }}",
        f"({heads}) => (float[2,2,2,4] y) <float[2,3] a = {mask}{last}> {{ {made} }}",
        opset=23,
    )


def test_keys_that_come_with_their_sequence_in_front() -> None:
    heads = HEADS.replace("float[2,2,5,4] k", "float[2,5,2,4] k")
    assert_rewrites(
        PASS,
        f"({heads}) {OUT} {{ t = Transpose<perm=[0,2,3,1]>(k) m = MatMul(q, t) p = Softmax(m)"
        " y = MatMul(p, v) }",
        f"({heads}) {OUT} {{ t = Transpose<perm=[0,2,1,3]>(k) y = Attention<scale=1.0>(q, t, v) }}",
        opset=23,
    )


def test_keys_that_are_ready_are_turned_back() -> None:
    heads = HEADS.replace("float[2,2,5,4] k", "float[2,2,4,5] k")
    assert_rewrites(
        PASS,
        f"({heads}) {OUT} {{ m = MatMul(q, k) p = Softmax(m) y = MatMul(p, v) }}",
        f"({heads}) {OUT} {{ t = Transpose<perm=[0,1,3,2]>(k) y = Attention<scale=1.0>(q, t, v) }}",
        opset=23,
    )


def test_three_dims_have_no_heads() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3,4] q, float[2,4,5] k, float[2,5,4] v) => (float[2,3,4] y)"
        " { m = MatMul(q, k) p = Softmax(m) y = MatMul(p, v) }",
        opset=23,
        because="the operands are not [batch, heads, sequence, size]",
    )


def test_heads_that_are_shared_stay() -> None:
    heads = HEADS.replace("float[2,2,5,4] v", "float[2,1,5,4] v")
    assert_unchanged(
        PASS,
        f"({heads}) {OUT} {{ {KEYS} p = Softmax(m) y = MatMul(p, v) }}",
        opset=23,
        because="batch or head counts may differ",
    )


@pytest.mark.parametrize("number", ["0", "-1"])
def test_a_scale_is_positive(number: str) -> None:
    assert_unchanged(
        PASS,
        f"({HEADS}) {OUT} <float d = {{{number}}}>"
        f" {{ {KEYS} s = Mul(m, d) p = Softmax(s) y = MatMul(p, v) }}",
        opset=23,
        because="the scale is not one positive number",
    )


@pytest.mark.parametrize(
    ("shape", "because"),
    [
        ("5", "the mask is not [batch, heads, queries, keys]"),
        ("2,1,1,5", "the mask is not [batch, heads, queries, keys]"),
        ("M,1,3,5", "the mask may be larger than the scores"),
    ],
)
def test_other_masks_stay(shape: str, because: str) -> None:
    assert_unchanged(
        PASS,
        f"({HEADS}, float[{shape}] a) => (y)"
        f" {{ {KEYS} z = Add(m, a) p = Softmax(z) y = MatMul(p, v) }}",
        opset=23,
        because=because,
    )


def test_another_axis_is_no_attention() -> None:
    assert_unchanged(
        PASS,
        f"({HEADS}) {OUT} {{ {KEYS} p = Softmax<axis=2>(m) y = MatMul(p, v) }}",
        opset=23,
    )


def test_before_opset_23_there_is_no_attention() -> None:
    assert_unchanged(
        PASS,
        f"({HEADS}) {OUT} {{ {KEYS} p = Softmax(m) y = MatMul(p, v) }}",
        opset=22,
        because="has no Attention",
    )


def test_a_batch_that_may_be_empty_stays() -> None:
    assert_unchanged(
        PASS,
        f"({HEADS}) {OUT} {{ {KEYS} p = Softmax(m) y = MatMul(p, v) }}".replace("[2,2", "[N,2"),
        opset=23,
        because="onnxruntime's kernel rejects an empty batch",
    )


@pytest.mark.parametrize("dims", ["[2,2,3,", "[2,2,5,"])
def test_where_there_is_nothing_to_attend_to_nothing_is_done(dims: str) -> None:
    text = f"({HEADS}) {OUT} {{ {KEYS} p = Softmax(m) y = MatMul(p, v) }}"
    assert_unchanged(
        PASS,
        text.replace(dims, f"{dims[:-2]}0,"),
        opset=23,
        because="onnxruntime's kernel rejects empty attention",
    )


LOWEST = "float low = {-3.4028235e38}, float none = {0}, float one = {1}"
HIDING = f"<{LOWEST}> {{ w = Where(b, none, low) {KEYS} z = Add(m, w) p = Softmax(z)"


@pytest.mark.parametrize(
    ("inputs", "nodes"),
    [
        ("bool[3,5] b", HIDING),
        (
            "int64[1,5] b",
            f"<{LOWEST}, int64[2] all = {{3,5}}> {{ f = Cast<to=1>(b) h = Sub(one, f)"
            f" u = Mul(h, low) w = Expand(u, all) {KEYS} z = Add(m, w) p = Softmax(z)",
        ),
    ],
)
def test_before_opset_25_a_row_that_the_lowest_number_masks_is_no_average(
    inputs: str, nodes: str
) -> None:
    text = f"({HEADS}, {inputs}) {OUT} {nodes} y = MatMul(p, v) }}"
    assert_unchanged(
        PASS,
        text,
        opset=24,
        because="onnxruntime's kernel zeroes rows masked by the minimum",
    )


def test_from_opset_25_on_it_is() -> None:
    assert_rewrites(
        PASS,
        f"({HEADS}, bool[3,5] b) {OUT} {HIDING} y = MatMul(p, v) }}",
        f"({HEADS}, bool[3,5] b) {OUT} <{LOWEST}> {{ w = Where(b, none, low)"
        " y = Attention<scale=1.0>(q, k, v, w) }",
        opset=25,
    )


@pytest.mark.parametrize(("first", "is_fused"), [("0", True), ("-3.4028235e38", False)])
def test_a_constant_mask_that_leaves_each_query_something_does_no_harm(
    first: str, is_fused: bool
) -> None:
    numbers = ",".join([first, *["-3.4028235e38"] * 4, *["0"] * 10])
    mask = f"float[3,5] w = {{{numbers}}}"
    text = f"({HEADS}) {OUT} <{mask}> {{ {KEYS} z = Add(m, w) p = Softmax(z) y = MatMul(p, v) }}"
    if is_fused:
        fused = f"({HEADS}) {OUT} <{mask}> {{ y = Attention<scale=1.0>(q, k, v, w) }}"
        assert_rewrites(PASS, text, fused, opset=23)
    else:
        assert_unchanged(
            PASS, text, opset=23, because="onnxruntime's kernel zeroes rows masked by the minimum"
        )


def test_doubles_stay_as_they_are_scaled_in_32_bits() -> None:
    heads = HEADS.replace("float", "double")
    assert_unchanged(
        PASS,
        f"({heads}) => (double[2,2,3,4] y) <double d = {{2}}>"
        f" {{ {KEYS} s = Div(m, d) p = Softmax(s) y = MatMul(p, v) }}",
        opset=23,
        because="the kernel's scale is float32",
    )
