"""Samples through onnxruntime's own operators, which have the batch first."""

from tests.analysis.batching.facts_of import X, fact_or_why_not
from tiered.analysis.batching.sample_facts import BatchRows

E = "com.microsoft.EmbedLayerNormalization"
A = "com.microsoft.Attention<num_heads=2>"
M = "com.microsoft.MultiHeadAttention<num_heads=2>"
XG = {"x": 0, "g": 0}


def embedded(nodes: str) -> str:
    return f"""(int32[2,4] x, int32[2,4] g, float[9,6] w, float[9,6] p, float[9,6] s, float[6] a,
        int32[2,4] m, int32[1,4] q, int32[2,4] q2) => (y) {{ {nodes} }}"""


def attended(nodes: str, b: int = 2, mask: str = "2,4") -> str:
    return f"""(float[{b},4,6] x, float[{b},5,6] k, float[6,18] w, float[18] c, int32[{mask}] m,
        int32 n, float[2,1,2,4,3] p, float[1,2,4,4] r, float[{b},2,4,4] r2) => (y) {{ {nodes} }}"""


def test_embeddings_share_their_tables() -> None:
    for text, places, expected, edits in (
        (embedded(f'y, i = {E}(x, g, w, p, s, a, a)'), XG, BatchRows(0), 0),
        (embedded(f'y, i = {E}(x, , w, p, , a, a)'), X, BatchRows(0), 0),
        (embedded(f'y, i = {E}(x, g, w, p, s, a, a)'), X, "its value 'g' bakes the batch of 2: it may have other numbers for each sample", 0),
        (embedded(f'y, i = {E}(x, g, w, p, s, a, a, m)'), {**XG, 'm': 0}, BatchRows(0), 0),
        (embedded(f'y, i = {E}(x, g, w, p, s, a, a, m)'), XG, "its value 'm' bakes the batch of 2: it may have other numbers for each sample", 0),
        (embedded(f'y, i = {E}(x, g, w, p, s, a, a, m, q)'), {**XG, 'm': 0}, BatchRows(0), 0),
        (embedded(f'y, i = {E}(x, g, w, p, s, a, a, m, q2)'), {**XG, 'm': 0}, "its value 'q2' bakes the batch of 2: it may have other numbers for each sample", 0),
        (embedded(f'y, i = {E}(x, g, w, p, s, a, a, m, q2)'), {**XG, 'm': 0, 'q2': 0}, BatchRows(0), 0),
        (embedded(f'y, i = {E}(x, g, w, p, s, a, a)'), {**XG, 'w': 0}, "its operand 'w' differs from sample to sample", 0),
        (embedded(f'y, i = {E}(x, g, w, p, s, a, a)'), {'x': 1, 'g': 1}, "it computes a result from several samples: axis 1 of 'x' is the batch", 0),
    ):  # fmt: skip
        assert fact_or_why_not(text, places) == (expected, edits), text


def test_attention_shares_weights_and_has_masks_of_each_sample() -> None:
    for text, places, expected, edits in (
        (attended(f'y = {A}(x, w, c)'), X, BatchRows(0), 0),
        (attended(f'y = {A}(x, w, c, m)'), {'x': 0, 'm': 0}, BatchRows(0), 0),
        (attended(f'y = {A}(x, w, c, m)'), X, "its value 'm' bakes the batch of 2: it may have other numbers for each sample", 0),
        (attended(f'y = {A}(x, w, c, m)', mask='2'), {'x': 0, 'm': 0}, BatchRows(0), 0),
        (attended(f'y = {A}(x, w, c, m)', mask='8'), {'x': 0}, "its mask 'm' has more than a number for each sample", 0),
        (attended(f'y = {A}(x, w, c, m)', mask='1,4', b=1), {'x': 0}, BatchRows(0), 1),
        (attended(f'y = {A}(x, w, c, m)', mask='1', b=1), {'x': 0}, BatchRows(0), 1),
        (attended(f'y = {A}(x, w, c, m)', mask='2'), {'x': 0}, "its value 'm' bakes the batch of 2: it may have other numbers for each sample", 0),
        (attended(f'y = {A}(x, w, c, m)', mask='1,4,4', b=1), {'x': 0}, BatchRows(0), 0),
        (attended(f'y = {A}(x, w, c, m)', mask='2,4,4', b=2), {'x': 0}, "its value 'm' bakes the batch of 2: it may have other numbers for each sample", 0),
        (attended(f'y = {A}(x, w, c, , p)'), X, "its operand past has no rule", 0),
        (attended(f'y = {A}(x, w, c, , , r)'), X, BatchRows(0), 0),
        (attended(f'y = {A}(x, w, c, , , r2)'), X, "its value 'r2' bakes the batch of 2: it may have other numbers for each sample", 0),
        (attended(f'y = {A}(x, w, c, , , r2)'), {'x': 0, 'r2': 0}, BatchRows(0), 0),
        (attended(f'y = {A}(x, w, c, , , , n)'), X, "its operand past_sequence_length has no rule", 0),
        (attended(f'y, o = {A}(x, w, c)  z = Neg(o)'), X, "its output 'o' has no rule", 0),
        (attended(f'y, o = {A}(x, w, c)'), X, BatchRows(0), 0),
        (attended(f'y = {A}(x, w, c)'), {'x': 0, 'w': 0}, "its operand 'w' differs from sample to sample", 0),
        (attended(f'y = {A}(x, w, c)'), {'x': 1}, "it computes a result from several samples: axis 1 of 'x' is the batch", 0),
        (attended(f'y = {M}(x, k, k)'), {'x': 0, 'k': 0}, BatchRows(0), 0),
        (attended(f'y = {M}(x, k, k)'), {'x': 0}, "its value 'k' bakes the batch of 2: it may have other numbers for each sample", 0),
        (attended(f'y = {M}(x)'), {'x': 0}, BatchRows(0), 0),
        (attended(f'y = {M}(x, k, k, c)'), {'x': 0, 'k': 0}, BatchRows(0), 0),
        (attended(f'y = {M}(x, k, k, c)'), {'x': 0, 'k': 0, 'c': 0}, "its operand 'c' differs from sample to sample", 0),
        (attended(f'y = {M}(x, k, k, c, m)'), {'x': 0, 'k': 0, 'm': 0}, BatchRows(0), 0),
        (attended(f'y = {M}(x, k, k, , m, r)'), {'x': 0, 'k': 0, 'm': 0}, BatchRows(0), 0),
        (attended(f'y = {M}(x, k, k, , , , p)'), {'x': 0, 'k': 0}, "its operand 6 has no rule", 0),
        (attended(f'y = {M}(x, k, k, , , , , p)'), {'x': 0, 'k': 0}, "its operand 7 has no rule", 0),
        (attended(f'y, o, v = {M}(x, k, k)  z = Neg(v)'), {'x': 0, 'k': 0}, "its output 'v' has no rule", 0),
    ):  # fmt: skip
        assert fact_or_why_not(text, places) == (expected, edits), text
