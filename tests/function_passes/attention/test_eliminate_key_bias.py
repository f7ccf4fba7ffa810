import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_key_bias"
CONSTANTS = (
    *(
        "float[4] b = {1,-2,3,-4}",
        "float[1,4,1] column = {1,-2,3,-4}",
        "float[1,3,1] rows = {1,2,3}",
    ),
    *("float[1,1,3] wide = {1,2,3}", "float[4] broken = {1,nan,3,4}", "float half = {0.5}"),
    *("float[3] halves = {0.5,1,2}", "float endless = {inf}", "float low = {-10000}"),
    *("float[1,1,1] lowest = {-3e38}", "float nothing = {0}", "int64[4] heads = {0,0,2,2}"),
    *("int64[3] merged = {0,4,3}", "int64[3] spread = {1,3,3}", "int64[4] apart = {-1,2,2,3}"),
)
Q, K = "float[N,3,4] q", "float[N,3,4] k"


def graph(nodes: str, inputs: str = f"{Q}, {K}", y: str = "float[N,3,3] y") -> str:
    return f"({inputs}) => ({y}) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


SCORES = "t = Transpose<perm=[0,2,1]>({k}) s = MatMul(q, t)"


@pytest.mark.parametrize("add", ["Add(k, b)", "Add(b, k)"])
@pytest.mark.parametrize("axis", [-1, 2])
def test_a_bias_of_keys_is_dropped(add: str, axis: int) -> None:
    end = f" y = Softmax<axis={axis}>(s)"
    assert_rewrites(
        PASS,
        graph(f"kb = {add} {SCORES.format(k='kb')}{end}"),
        graph(f"{SCORES.format(k='k')}{end}"),
    )


@pytest.mark.parametrize("scale", ["Mul(s, half)", "Mul(half, s)", "Div(s, half)"])
@pytest.mark.parametrize(
    ("mask", "chosen"),
    [
        ("r = Add({}, lowest)", ""),
        ("r = Add(wide, {})", ""),
        ("seen = Where(chosen, half, lowest) r = Add({}, seen)", ", bool[1,3,3] chosen"),
        (
            "c = Where(chosen, wide, lowest) m = Expand(c, spread) n = Add(m, wide) r = Add({}, n)",
            ", bool[1,3,1] chosen",
        ),
    ],
)
def test_scores_may_be_scaled_and_masked(scale: str, mask: str, chosen: str) -> None:
    rest = f"u = {scale} {mask.format('u')} y = Softmax(r)"
    assert_rewrites(
        PASS,
        graph(f"kb = Add(k, b) {SCORES.format(k='kb')} {rest}", f"{Q}, {K}{chosen}"),
        graph(f"{SCORES.format(k='k')} {rest}", f"{Q}, {K}{chosen}"),
    )


def test_keys_may_be_split_into_heads() -> None:
    inputs = "float[N,2,3,2] q, float[N,3,4] k"
    rest = "h = Reshape({}, heads) t = Transpose<perm=[0,2,3,1]>(h) s = MatMul(q, t) y = Softmax(s)"
    assert_rewrites(
        PASS,
        graph(f"kb = Add(k, b) {rest.format('kb')}", inputs, "float[N,2,3,3] y"),
        graph(rest.format("k"), inputs, "float[N,2,3,3] y"),
    )


def test_keys_may_be_columns_before_they_are_split() -> None:
    inputs = "float[N,2,3,2] q, float[N,4,3] k"
    rest = "h = Reshape({}, apart) s = MatMul(q, h) y = Softmax(s)"
    assert_rewrites(
        PASS,
        graph(f"kb = Add(k, column) {rest.format('kb')}", inputs, "float[N,2,3,3] y"),
        graph(rest.format("k"), inputs, "float[N,2,3,3] y"),
    )


@pytest.mark.parametrize(
    ("nodes", "inputs", "because"),
    [
        (
            f"kb = Add(k, rows) {SCORES.format(k='kb')} y = Softmax(s)",
            f"{Q}, {K}",
            "the addend is not the same for all keys",
        ),
        (
            f"kb = Add(k, broken) {SCORES.format(k='kb')} y = Softmax(s)",
            f"{Q}, {K}",
            "the addend is not finite",
        ),
        (
            f"kb = Add(k, b) {SCORES.format(k='kb')} y = Softmax<axis=1>(s)",
            f"{Q}, {K}",
            "the Softmax is not over the keys",
        ),
        (
            f"kb = Add(k, b) {SCORES.format(k='kb')} y = Sigmoid(s)",
            f"{Q}, {K}",
            "no Softmax follows",
        ),
        ("kb = Add(k, b) y = MatMul(kb, t)", "float[N,4,3] t, " + K, "no product of queries"),
        (
            f"kb = Add(k, b) {SCORES.format(k='kb')} r = Mul(s, halves) y = Softmax(r)",
            f"{Q}, {K}",
            "the scores are not scaled by one number",
        ),
        (
            f"kb = Add(k, b) {SCORES.format(k='kb')} r = Mul(s, endless) y = Softmax(r)",
            f"{Q}, {K}",
            "the scores are not scaled by one number",
        ),
        (
            f"kb = Add(k, b) {SCORES.format(k='kb')} r = Div(half, s) y = Softmax(r)",
            f"{Q}, {K}",
            "the scores are not scaled by one number",
        ),
        (
            f"kb = Add(k, b) {SCORES.format(k='kb')} r = Add(s, low) y = Softmax(r)",
            f"{Q}, {K}",
            "beside the numbers of a mask, scores are rounded",
        ),
        (
            f"kb = Add(k, b) {SCORES.format(k='kb')} r = Add(s, m) y = Softmax(r)",
            f"{Q}, {K}, float[1,3,3] m",
            "the numbers of a mask are not known",
        ),
        (
            f"kb = Add(k, b) {SCORES.format(k='kb')} r = Sub(s, half) y = Softmax(r)",
            f"{Q}, {K}",
            "no Softmax follows",
        ),
        (
            f"kb = Add(k, b) {SCORES.format(k='kb')} r0 = Mul(s, half) r1 = Mul(r0, half)"
            " r2 = Mul(r1, half) r3 = Mul(r2, half) y = Softmax(r3)",
            f"{Q}, {K}",
            "more than 4 operators precede the Softmax",
        ),
        (
            "kb = Add(k, b) f = Reshape(kb, merged) s = MatMul(q, f) y = Softmax(s)",
            f"{Q}, {K}",
            "Reshape takes the axes of the addend apart",
        ),
    ],
)
def test_it_declines(nodes: str, inputs: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes, inputs), because=because)


def test_keys_and_scores_that_others_read_stay() -> None:
    assert_unchanged(
        PASS,
        graph(
            f"kb = Add(k, b) {SCORES.format(k='kb')} y = Softmax(s)",
            y="float[N,3,3] y, float[N,3,4] kb",
        ),
        because="kb has other consumers",
    )
    assert_unchanged(
        PASS,
        graph(
            f"kb = Add(k, b) {SCORES.format(k='kb')} y = Softmax(s)",
            y="float[N,3,3] y, float[N,3,3] s",
        ),
        because="the scores have other consumers",
    )


@pytest.mark.parametrize("k", ["float[1,3]", "float[M,3]", "float[3]"])
def test_an_addend_must_keep_the_shape(k: str) -> None:
    assert_unchanged(
        PASS,
        f"({k} k, float[2,4] q) => (float[2,3] y) <float[4,1] b = {{1,2,3,4}}>"
        " { kb = Add(k, b)  y = MatMul(q, kb) }",
        because="the addend may change the shape",
    )


def test_integers_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(int32[2,3] k, int32[2,2] q) => (int32[2,3] y) <int32 b = {1}>"
        " { kb = Add(k, b)  y = MatMul(q, kb) }",
        because="the dtype is not a float",
    )


def test_a_vector_is_no_keys() -> None:
    assert_unchanged(
        PASS,
        "(float[3] k, float[2,3] q) => (float[2] y) <float b = {1}>"
        " { kb = Add(k, b)  s = MatMul(q, kb)  y = Softmax(s) }",
        because="no product of queries and keys follows",
    )


def test_masked_queries_get_what_they_got() -> None:
    # Beside -3e38 no score is seen: all keys of a query that is masked have the same weight.
    mask = "m = Where(chosen, nothing, lowest) r = Add(s, m) y = Softmax(r)"
    inputs = f"{Q}, {K}, bool[1,3,1] chosen"
    assert_rewrites(
        PASS,
        graph(f"kb = Add(k, b) {SCORES.format(k='kb')} {mask}", inputs),
        graph(f"{SCORES.format(k='k')} {mask}", inputs),
    )


# The last is 20, as bits.
@pytest.mark.parametrize(
    ("number", "dtype"), [("2000", "float"), ("-2000", "double"), ("19712", "float16")]
)
def test_keys_that_are_rounded_beside_the_addend_stay(number: str, dtype: str) -> None:
    text = f"(float[N,3,4] q, float[N,3,4] k) => (float[N,3,3] y) <float[4] b = {{1,1,{number},1}}>"
    nodes = f"kb = Add(k, b) {SCORES.format(k='kb')} y = Softmax(s)"
    assert_unchanged(
        PASS,
        f"{text.replace('float', dtype)} {{ {nodes} }}",
        because="beside the addend, keys are rounded",
    )


def test_scores_of_halves_are_rounded_beside_smaller_numbers() -> None:
    text = "(float[N,3,4] q, float[N,3,4] k) => (float[N,3,3] y) <float[4] b = {0,0,15360,0}, float m = {52480}>"
    nodes = f"kb = Add(k, b) {SCORES.format(k='kb')} r = Add(s, m) y = Softmax(r)"
    assert_unchanged(
        PASS,
        f"{text.replace('float', 'float16')} {{ {nodes} }}",
        because="beside the numbers of a mask, scores are rounded",
    )
