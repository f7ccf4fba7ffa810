import pytest

from tests.constants import spoken_of
from tests.small import model
from tiered import get_pass
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_rotary_embedding"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("int64[1] zero = {0}", "int64[1] two = {2}", "int64[1] most = {9223372036854775807}"),
    *("int64[1] last = {3}", "int64[1] one = {1}", "int64[2] halves = {2,2}"),
    *("int64[1] i = {0}", "int64[2] outer = {0,1}", "int64[2] outside = {0,1}"),
    *("int64[1] once = {1}", "int64[1] j = {0}", "int64[2] uneven = {1,3}"),
)
SLICED = "a = Slice(x, zero, two, last, one) b = Slice(x, two, most, last, one)"
TURNED = f"{SLICED} n = Neg(b) r = Concat<axis=-1>(n, a)"
ANGLES = "ff = Concat<axis=-1>(f, f) c = Cos(ff) s = Sin(ff)"
SUM = "xc = Mul(x, c) rs = Mul(r, s) y = Add(xc, rs)"
HALVES = "hc = Cos(f) hs = Sin(f)"
INPUTS = "float[B,3,S,4] x, float[S,2] f"


def graph(nodes: str, inputs: str = INPUTS, dims: str = "B,3,S,4") -> str:
    return f"({inputs}) => (float[{dims}] y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def test_halves_that_are_turned_round() -> None:
    assert_rewrites(
        PASS,
        graph(f"{ANGLES} {TURNED} {SUM}"),
        graph(f"{HALVES} y = com.microsoft.RotaryEmbedding(x, i, hc, hs)"),
        backend=ORT,
    )


def test_a_split_and_angles_with_dims_in_front() -> None:
    turned = "a, b = Split<axis=3>(x, halves) n = Neg(b) r = Concat<axis=3>(n, a)"
    angles = (
        "ff = Concat<axis=2>(f, f) cc = Cos(ff) ss = Sin(ff)"
        " c = Unsqueeze(cc, one) s = Unsqueeze(ss, one)"
    )
    inputs = INPUTS.replace("[S,2] f", "[1,S,2] f")
    halves = (
        f"{HALVES} c = Unsqueeze(hc, one) s = Unsqueeze(hs, one)"
        " c2 = Squeeze(c, outer) s2 = Squeeze(s, outside)"
    )
    assert_rewrites(
        PASS,
        graph(f"{angles} {turned} {SUM}", inputs),
        graph(f"{halves} y = com.microsoft.RotaryEmbedding(x, i, c2, s2)", inputs),
        backend=ORT,
    )


def test_tables_of_which_rows_are_taken() -> None:
    tables = ("float[2,4] cs = {1,2,1,2,3,4,3,4}", "float[2,4] sn = {5,6,5,6,7,8,7,8}")
    halves = ("float[2,2] cs = {1,2,3,4}", "float[2,2] sn = {5,6,7,8}")
    inputs = "float[B,3,S,4] x, int64[S] p"
    nodes = f"c = Gather<axis=0>(cs, p) s = Gather<axis=0>(sn, p) {TURNED} {SUM}"
    rows = "c = Gather<axis=0>(cs, p) s = Gather<axis=0>(sn, p)"
    fused = f"{rows} y = com.microsoft.RotaryEmbedding(x, i, c, s)"
    head = f"({inputs}) => (float[B,3,S,4] y)"
    assert_rewrites(
        PASS,
        f"{head} {spoken_of(nodes, *CONSTANTS, *tables)} {{ {nodes} }}",
        f"{head} {spoken_of(fused, *CONSTANTS, *halves)} {{ {fused} }}",
        backend=ORT,
    )


def test_the_standard_operator_where_the_opset_has_it() -> None:
    inputs = "float[1,3,S,4] x, float[1,S,2] f"
    assert_rewrites(
        PASS,
        graph(f"{ANGLES} {TURNED} {SUM}", inputs, "1,3,S,4"),
        graph(f"{HALVES} y = RotaryEmbedding(x, hc, hs)", inputs, "1,3,S,4"),
        opset=23,
    )


def test_angles_for_each_entry_of_a_batch_are_standard() -> None:
    inputs = "float[B,3,S,4] x, float[B,1,S,2] f"
    nodes = f"{HALVES} c = Squeeze(hc, one) s = Squeeze(hs, once) y = RotaryEmbedding(x, c, s)"
    assert_rewrites(PASS, graph(f"{ANGLES} {TURNED} {SUM}", inputs), graph(nodes, inputs), opset=23)


def test_halves_side_by_side() -> None:
    nodes = (
        "a, b = Split<axis=-1>(x, halves) ac = Mul(a, c) bs = Mul(b, s) bc = Mul(b, c)"
        " as = Mul(a, s) l = Sub(ac, bs) h = Add(bc, as) y = Concat<axis=-1>(l, h)"
    )
    inputs = "float[1,1,2,4] x, float[2,2] c, float[2,2] s"
    made = "c1 = Unsqueeze(c, i) s1 = Unsqueeze(s, j) y = RotaryEmbedding(x, c1, s1)"
    assert_rewrites(PASS, graph(nodes, inputs, "1,1,2,4"), graph(made, inputs, "1,1,2,4"), opset=23)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            graph(f"{ANGLES} {TURNED} {SUM}", "float[B,3,S,M] x, float[S,2] f", "B,3,S,4"),
            "the head size is odd or unknown",
        ),
        (
            graph(f"{ANGLES} {TURNED} {SUM}").replace("Slice(x, zero, two,", "Slice(x, one, most,"),
            "the rotated parts are not halves",
        ),
        (
            graph(
                "c = Cos(f) s = Sin(f) a, b = Split<axis=3>(x, uneven) n = Neg(b)"
                f" r = Concat<axis=3>(n, a) {SUM}",
                "float[B,3,S,4] x, float[S,4] f",
            ),
            "the rotated parts are not halves",
        ),
        (
            graph(f"c = Cos(f) s = Sin(f) {TURNED} {SUM}", "float[B,3,S,4] x, float[S,4] f"),
            "halves of cosines or sines may differ",
        ),
        (
            graph(f"{ANGLES} {TURNED} {SUM}", "float[B,3,S,4] x, float[T,2] f"),
            "there is not one cosine per token pair",
        ),
        (
            graph(f"{ANGLES} {TURNED} {SUM}", "float[B,3,S,4] x, float[3,S,2] f"),
            "the cosines differ by head",
        ),
        (
            graph(f"{ANGLES} {TURNED} {SUM}", "float[B,3,S,4] x, float[B,1,S,2] f"),
            "the cosines differ by batch entry",
        ),
        (
            # Numbers that are taken from a row of twins need not be twins.
            f"(float[B,3,S,4] x, int64[S,4] p) => (float[B,3,S,4] y) <float[4] cs = {{1,2,1,2}},"
            f" int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] most = {{9223372036854775807}},"
            f" int64[1] last = {{3}}, int64[1] one = {{1}}>"
            f" {{ c = Gather<axis=0>(cs, p) s = Gather<axis=0>(cs, p) {TURNED} {SUM} }}",
            "halves of cosines or sines may differ",
        ),
    ],
)
def test_rotations_unsupported_by_the_operator_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_other_targets_keep_it_before_opset_23() -> None:
    assert_unchanged(PASS, graph(f"{ANGLES} {TURNED} {SUM}"))


def test_nothing_is_built_for_a_target_that_lacks_the_operator() -> None:
    rotated = model(f"g {graph(f'{ANGLES} {TURNED} {SUM}')}")
    first_new = rotated.peek_serial()
    get_pass(PASS).apply(rotated)
    assert rotated.peek_serial() == first_new
