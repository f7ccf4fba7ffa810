import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_embed_layernorm"
ORT = "onnxruntime_cpu"
COUNTED = ",".join(map(str, range(99)))
CONSTANTS = (
    f"float[99,2] p = {{{','.join(str(number % 7) for number in range(198))}}}",
    *("float[3,2] w = {1,2, 3,5, 8,1}", f"int64[1,99] all = {{{COUNTED}}}"),
    *("float[2,2] t = {1,3, 2,1}", "float[2] s = {1,2}"),
    *("float[2] b = {3,4}", "float[1] one = {1}", "float[2] zero = {0,0}"),
    *("int64[1] i = {0}", "int64[1] j = {1}", "int64[1] k = {2}"),
)
INPUTS = "int64[B,S] ids, int64[B,S] kinds"
WORDS = "e = Gather(w, ids) k0 = Gather(t, kinds)"
# As exporters write positions: as many as there are ids, of all that there are.
PLACES = "n = Shape(ids) n1 = Slice(n, j, k) at = Slice(all, i, n1, j) q = Gather(p, at)"
SUM = "e1 = Add(e, k0) e2 = Add(e1, q)"
NORM = "y = LayerNormalization<epsilon=0.5>(e2, s, b)"
CASTS = "ids32 = Cast<to=6>(ids) kinds32 = Cast<to=6>(kinds) at32 = Cast<to=6>(at)"


def graph(nodes: str, inputs: str = INPUTS, outputs: str = "float[B,S,2] y") -> str:
    return f"({inputs}) => ({outputs}) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def embedded(
    operands: str = "ids32, kinds32, w, p, t, s, b, , at32", outputs: str = "y, unread, sum"
) -> str:
    call = f"com.microsoft.EmbedLayerNormalization<epsilon=0.5>({operands})"
    return f"{outputs} = {call}"


@pytest.mark.parametrize(
    "nodes",
    [f"{WORDS} {PLACES} {SUM} {norm}" for norm in (NORM, NORM.replace("<", "<axis=2, "))],
)
def test_words_segments_and_places_are_looked_up_at_once(nodes: str) -> None:
    places = PLACES.replace(" q = Gather(p, at)", "")
    assert_rewrites(PASS, graph(nodes), graph(f"{places} {CASTS} {embedded()}"), backend=ORT)


def test_words_and_places_alone_of_ids_of_32_bits_need_no_cast() -> None:
    inputs = "int32[B,S] ids, int32[1,S] at"
    assert_rewrites(
        PASS,
        graph(f"q = Gather(p, at) e = Gather(w, ids) e2 = Add(q, e) {NORM}", inputs),
        graph(embedded("ids, , w, p, , s, b, , at"), inputs),
        backend=ORT,
    )


def test_of_three_that_may_be_places_the_last_are() -> None:
    inputs = "int32[B,S] ids, int32[B,S] kinds, int32[B,S] at"
    nodes = f"{WORDS} q = Gather(p, at) {SUM} {NORM}"
    after = graph(embedded("ids, kinds, w, p, t, s, b, , at"), inputs)
    assert_rewrites(PASS, graph(nodes, inputs), after, backend=ORT)


def test_a_norm_without_a_bias_gets_zeros() -> None:
    inputs, norm = "int32[B,S] ids, int32[1,S] at", NORM.replace(", b)", ")")
    assert_rewrites(
        PASS,
        graph(f"q = Gather(p, at) e = Gather(w, ids) e2 = Add(q, e) {norm}", inputs),
        graph(embedded("ids, , w, p, , s, zero, , at"), inputs),
        backend=ORT,
    )


def test_a_norm_without_a_bias_may_have_a_sum_that_others_read() -> None:
    inputs, outputs = "int32[B,S] ids, int32[1,S] at", "float[B,S,2] y, int64[3] n"
    nodes = f"q = Gather(p, at) e = Gather(w, ids) e2 = Add(q, e) n = Shape(e2) {NORM}"
    assert_rewrites(
        PASS,
        graph(nodes.replace(", b)", ")"), inputs, outputs),
        graph(f"{embedded('ids, , w, p, , s, zero, , at')} n = Shape(sum)", inputs, outputs),
        backend=ORT,
    )


def test_other_users_of_the_sum_keep_it() -> None:
    inputs, outputs = "int32[B,S] ids, int32[1,S] at", "float[B,S,2] y, int64[3] n"
    assert_rewrites(
        PASS,
        graph(
            f"q = Gather(p, at) e = Gather(w, ids) e2 = Add(q, e) n = Shape(e2) {NORM}",
            inputs,
            outputs,
        ),
        graph(f"{embedded('ids, , w, p, , s, b, , at')} n = Shape(sum)", inputs, outputs),
        backend=ORT,
    )


PLAIN = f"e = Gather(w, ids) q = Gather(p, at) e2 = Add(q, e) {NORM}"
TWO = "int32[B,S] ids, int32[1,S] at"


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            graph(PLAIN, "int32[S] ids, int32[S] at", "float[S,2] y"),
            "the sum is not [batch, sequence, size]",
        ),
        (
            graph(PLAIN.replace("(p, at)", "(p3, at)"), TWO + ", float[4,1] p3"),
            "the tables differ in vector size",
        ),
        (
            graph(PLAIN, TWO.replace("1,S", "1,T")),
            "there is not one id per token",
        ),
        (
            graph(PLAIN, "int32[1,S] ids, int32[B,1] at"),
            "there is not one id per token",
        ),
        (graph(PLAIN, "int32[B,S] ids, int32[S] at"), "there is not one position per token"),
        (graph(PLAIN, "int32[B,S] ids, int32[1,1] at"), "there is not one position per token"),
        (
            graph(
                PLAIN.replace("<epsilon", "<axis=1, epsilon").replace("s, b)", "square)"),
                "int32[B,2] ids, int32[1,2] at, float[2,2] square",
                "float[B,2,2] y",
            ),
            "it is not over the last dim alone",
        ),
        (graph(PLAIN.replace("s, b)", "one, b)"), TWO), "scale or bias is not per element"),
        (
            graph(
                f"r = Relu(s) {PLAIN.replace('s, b)', 'r, b)')} n = Shape(e2)",
                TWO,
                "float[B,S,2] y, int64[3] n",
            ),
            "scale or bias is computed, perhaps from the sum",
        ),
        (
            graph(
                PLAIN.replace("(w,", "(u,").replace("(p,", "(v,").replace("s, b)", "r)"),
                f"{TWO}, float[U,D] u, float[V,D] v, float[D] r",
                "float[B,S,D] y",
            ),
            "the size of the missing bias is not known",
        ),
    ],
)
def test_lookups_unsupported_by_the_kernel_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_other_targets_keep_the_parts() -> None:
    assert_unchanged(PASS, graph(PLAIN, TWO))
