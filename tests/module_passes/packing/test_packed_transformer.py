"""Packed rows give what each sequence gives alone; what may mix tokens is refused by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from tiered import Model, ModelError, UsageError, get_pass
from tiered.extensions.packing import pack_sequences
from tiered.runtime import Session
from tiered.testing import assert_unchanged, parse

PASS = "packed_transformer"
BERT = Path(__file__).parents[3] / "examples" / "models" / "bert.ts.onnx"
Arrays = dict[str, NDArray[Any]]

ATTENTION = """
    q = MatMul(x, wq)  k = MatMul(x, wk)
    kt = Transpose<perm=[0,2,1]>(k)
    scores = MatMul(q, kt)
"""
WEIGHTS = """float[4,4] wq = {1,-2,3,0.5, 2,1,-1,3, 0.1,0.2,2,1, -3,1,1,2},
    float[4,4] wk = {0.3,2,1,-0.5, -1,1,2,0.3, 1,0.2,-2,1, 0.7,-1,1,0.2}"""


def _packed(text: str | Path, **options: object) -> Model:
    model = Model.load(text) if isinstance(text, Path) else Model.from_proto(parse(text))
    get_pass(PASS).with_options(**options)(model)
    return model


def _check(text: str, lengths: Sequence[int] = (3, 1, 5, 2, 2), row: int = 6) -> Model:
    """Check that each sequence has the outputs that it has alone."""
    rng = np.random.default_rng(0)
    sequences = [{"x": rng.normal(size=(length, 4)).astype(np.float32)} for length in lengths]
    model = _packed(text)
    _compare(Session(parse(text)), Session(model.to_proto()), sequences, row)
    return model


def _compare(
    single: Session, packed: Session, sequences: Sequence[Mapping[str, NDArray[Any]]], row: int
) -> None:
    batch = pack_sequences(sequences, row)
    found = packed.run(batch.feeds(packed.inputs))
    for name, array in found.items():
        is_pooled = len(array) == len(sequences) and array.shape[:2] != (len(array), row)
        rows = array if is_pooled else batch.unpack(array)
        for arrays, result in zip(sequences, rows, strict=True):
            feeds = {key: each[None] for key, each in arrays.items()}
            expected = single.run(feeds)[name][0]
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


# --- BERT -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bert() -> tuple[Session, Session]:
    return Session(BERT), Session(_packed(BERT).to_proto())


def _texts(lengths: Sequence[int], seed: int) -> list[Arrays]:
    rng = np.random.default_rng(seed)
    return [
        {
            "input_ids": rng.integers(0, 300, length),
            "attention_mask": np.ones(length, np.int64),
            "token_type_ids": rng.integers(0, 2, length),
        }
        for length in lengths
    ]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 99))
def test_bert_gives_each_sequence_what_it_gives_it_alone(
    bert: tuple[Session, Session], lengths: list[int], seed: int
) -> None:
    _compare(*bert, _texts(lengths, seed), max(lengths) + seed)


def test_a_row_may_be_longer_than_the_table_of_positions(bert: tuple[Session, Session]) -> None:
    _compare(*bert, _texts([60, 64, 1, 30, 20], 1), 150)


def test_masked_tokens_inside_a_sequence_stay_masked(bert: tuple[Session, Session]) -> None:
    texts = _texts([12, 9, 20], 2)
    for arrays in texts:
        arrays["attention_mask"] = (np.arange(len(arrays["input_ids"])) % 3 > 0).astype(np.int64)
    _compare(*bert, texts, 32)


def test_without_segments_bert_would_mix_the_sequences(bert: tuple[Session, Session]) -> None:
    texts = _texts([12, 9], 3)
    feeds = pack_sequences(texts, 32).feeds(bert[1].inputs)
    apart = bert[1].run(feeds)["logits"]
    mixed = bert[1].run({**feeds, "sequence_ids": np.ones((1, 32), np.int64)})["logits"]
    assert np.abs(apart - mixed).max() > 1e-4


# --- attention ------------------------------------------------------------------------------------


def test_scores_without_a_mask_are_masked() -> None:
    model = _check(
        f"""(float[B,S,4] x) => (float[B,S,4] y) <{WEIGHTS}> {{
            {ATTENTION} p = Softmax<axis=-1>(scores) y = MatMul(p, x) }}"""
    )
    names = [value.name for value in model.main.inputs]
    assert names == ["x", "sequence_ids"]
    get_pass(PASS)(model)
    assert [value.name for value in model.main.inputs] == names


def test_positions_that_are_added_follow_the_sequence() -> None:
    model = _check(
        f"""(float[B,S,4] x) => (float[B,S,4] y) <{WEIGHTS}, int64 zero = {{0}}, int64 one = {{1}},
            int64[1] last = {{1}}, float[8,4] table = {{
            1,2,3,4, 2,3,1,0, 0,-1,1,2, 3,1,2,0, 4,4,1,1, 2,0,0,1, 5,1,0,0, 1,1,1,1}}> {{
            n = Shape<start=1, end=2>(x) limit = Squeeze(n)
            place = Range(zero, limit, one)
            embedded = Gather(table, place)
            z = Add(x, embedded)
            q = MatMul(z, wq) k = MatMul(z, wk) kt = Transpose<perm=[0,2,1]>(k)
            scores = MatMul(q, kt) p = Softmax<axis=-1>(scores) y = MatMul(p, z) }}"""
    )
    assert "position_ids" in [value.name for value in model.main.inputs]


def test_a_causal_mask_of_positions_is_that_of_each_sequence() -> None:
    _check(
        f"""(float[B,S,4] x) => (float[B,S,4] y) <{WEIGHTS}, int64 zero = {{0}}, int64 one = {{1}},
            int64[1] first = {{0}}, int64[1] second = {{1}}, float least = {{-1e30}}> {{
            n = Shape<start=1, end=2>(x) limit = Squeeze(n)
            place = Range(zero, limit, one)
            rows = Unsqueeze(place, second) columns = Unsqueeze(place, first)
            after = Less(rows, columns)
            distance = Sub(rows, columns) bias = Cast<to=1>(distance)
            {ATTENTION} biased = Add(scores, bias)
            causal = Where(after, least, biased)
            p = Softmax<axis=-1>(causal) y = MatMul(p, x) }}"""
    )


def test_a_flattened_batch_and_zeros_for_masked_rows() -> None:
    _check(
        f"""(float[B,S,4] x) => (float[B,S,4] y) <{WEIGHTS}, float nothing = {{0}},
            int64[2] flat = {{-1, 4}}> {{
            s = Shape(x) f = Reshape(x, flat) m = Gemm(f, wq) q = Reshape(m, s)
            kt = Transpose<perm=[0,2,1]>(x) scores = MatMul(q, kt)
            p = Softmax<axis=-1>(scores) unseen = IsNaN(p)
            seen = Where(unseen, nothing, p) y = MatMul(seen, x) }}"""
    )


def test_a_mask_that_is_indexed_by_row_and_column_is_that_of_each_token() -> None:
    _check(
        f"""(float[B,S,4] x) => (float[B,S,4] y) <{WEIGHTS}, int64 zero = {{0}}, int64 one = {{1}},
            int64[1] first = {{0}}, int64[1] last = {{2}}, float least = {{-1e30}}> {{
            s = Shape(x) b = Gather(s, zero) n = Gather(s, one)
            rows = Range(zero, b, one) columns = Range(zero, n, one)
            row = Unsqueeze(rows, axis) column = Unsqueeze(columns, first)
            both = Max(row, column) size = Shape(both)
            all = Slice(row, first, end, first)
            r = Expand(all, size) c = Expand(column, size)
            r1 = Unsqueeze(r, last) c1 = Unsqueeze(c, last) place = Concat<axis=-1>(r1, c1)
            total = ReduceSum<keepdims=0>(x, last) positive = Greater(total, limit)
            seen = GatherND(positive, place) key = Unsqueeze(seen, axis)
            {ATTENTION} masked = Where(key, scores, least)
            p = Softmax<axis=-1>(masked) y = MatMul(p, x) }}""".replace(
            "float least",
            "float limit = {-1}, int64[1] axis = {1}, int64[1] end = {2147483647}, float least",
        )
    )


@pytest.mark.parametrize(
    "line",
    [
        "a, sa, za = DynamicQuantizeLinear(wq) u = Clip(x, low, high) b = Cast<to=2>(u)"
        " i = MatMulInteger(b, a, three, za) m = Cast<to=1>(i)",
        "m = Pad(x, pads)",
    ],
)
def test_operators_are_packed_by_their_axis_maps(line: str) -> None:
    """They have no rule of their own: tokens go along parallel iterators."""
    _check(
        f"""(float[B,S,4] x) => (float[B,S,4] y) <{WEIGHTS}, uint8 three = {{3}},
            float low = {{0}}, float high = {{9}}, int64[6] pads = {{0,0,1,0,0,-1}}> {{
            {line} {ATTENTION} p = Softmax<axis=-1>(scores) y = MatMul(p, m) }}"""
    )


def test_indices_of_other_tokens_are_refused() -> None:
    text = """(float[B,S,4] x) => (float[B,4] y) <int64 zero = {0}, int64 one = {1},
        int64[1] first = {0}, int64[1] axis = {1}, int64[1] last = {2}> {
        s = Shape(x) b = Gather(s, zero) n = Gather(s, one)
        rows = Range(zero, b, one) columns = Range(zero, n, one)
        row = Unsqueeze(rows, axis) column = Unsqueeze(columns, first)
        both = Max(row, column) size = Shape(both) r = Expand(row, size) c = Expand(column, size)
        r1 = Unsqueeze(r, last) c1 = Unsqueeze(c, last) place = Concat<axis=-1>(ORDER)
        same = GatherND(x, place) y = Gather<axis=1>(same, zero) }"""
    _check(text.replace("ORDER", "r1, c1"))
    for order in ("c1, r1", "r1, r1"):
        with pytest.raises(ModelError, match="takes some of the tokens or rows"):
            _packed(text.replace("ORDER", order))


# --- values of whole sequences --------------------------------------------------------------------


@pytest.mark.parametrize(
    "pool",
    [
        "y = Gather<axis=1>(a, zero)",
        "t = Gather<axis=1>(a, list) y = Squeeze(t, one)",
        "t = Slice(a, list, one, one) y = Squeeze(t, one)",
        "y = ReduceMean<keepdims=0>(a, one)",
        "t = ReduceSum<keepdims=1>(a, one) u = Tanh(t) y = Squeeze(u, one)",
    ],
)
def test_pooling_is_of_each_sequence(pool: str) -> None:
    model = _check(
        f"""(float[B,S,4] x) => (float[B,4] y) <{WEIGHTS}, int64 zero = {{0}},
            int64[1] list = {{0}}, int64[1] one = {{1}}> {{
            {ATTENTION} p = Softmax<axis=-1>(scores) a = MatMul(p, x) {pool} }}"""
    )
    assert model.main.outputs[0].shape == ("sequences", 4)


def test_the_mean_of_unmasked_tokens_is_of_each_sequence() -> None:
    _check(
        """(float[B,S,4] x) => (float[B,4] y) <int64[1] one = {1}, float least = {1}> {
            a = Abs(x) m = ReduceSum<keepdims=0>(a, one)
            c = Clip(m, least) total = ReduceSum<keepdims=0>(x, one) y = Div(total, c) }"""
    )


def test_the_number_of_sequences_may_be_fixed() -> None:
    text = "(float[B,S,4] x) => (float[B,4] y) <int64 z = {0}> { y = Gather<axis=1>(x, z) }"
    model = _packed(text, max_valid_num=3)
    assert model.main.outputs[0].shape == (3, 4)
    sequences = [{"x": np.full((2, 4), number, np.float32)} for number in (1, 2)]
    batch = pack_sequences(sequences, 4, rows=2, max_valid_num=3)
    found = Session(model.to_proto()).run(batch.feeds(["x", "sequence_starts"]))["y"]
    np.testing.assert_array_equal(found[:, 0], [1, 2, 1])


# --- positions that are counted -------------------------------------------------------------------


ROBERTA = """(int64[B,S] ids) => (float[B,S,4] y, float[B,4] first)
    <int64 pad = {1}, int64 axis = {1}, float[9,4] words = {WORDS}, float[12,4] places = {PLACES},
     float[4,4] wq = {1,-2,3,0.5, 2,1,-1,3, 0.1,0.2,2,1, -3,1,1,2}, int64 zero = {0}> {
    is_pad = Equal(ids, pad) is_word = Not(is_pad) mask = Cast<to=7>(is_word)
    counted = CumSum<EXCLUSIVE>(mask, axis) own = Mul(counted, mask) at = Add(own, pad)
    w = Gather(words, ids) p = Gather(places, at) x = Add(w, p)
    q = MatMul(x, wq) k = Transpose<perm=[0,2,1]>(x) scores = MatMul(q, k)
    weights = Softmax<axis=-1>(scores) y = MatMul(weights, x) first = Gather<axis=1>(y, zero) }"""


@pytest.mark.parametrize("exclusive", ["", "exclusive=1"])
def test_positions_that_a_sum_counts_start_again(exclusive: str) -> None:
    """As RoBERTa and XLM-R do: the position is the number of tokens up to each."""
    rng = np.random.default_rng(0)
    text = ROBERTA.replace("<EXCLUSIVE>", f"<{exclusive}>" if exclusive else "")
    for name, size in (("WORDS", 36), ("PLACES", 48)):
        text = text.replace(name, ",".join(f"{each:.3f}" for each in rng.normal(size=size)))
    model = _packed(text)
    model.check_view()
    sequences = [{"ids": rng.integers(1, 9, length)} for length in (3, 1, 5, 2, 2)]
    _compare(Session(parse(text)), Session(model.to_proto()), sequences, 6)


def test_sums_over_tokens_of_several_features_start_again() -> None:
    text = """(int64[B,S,4] x) => (int64[B,S,4] y, int64[B,4] z) <int64 axis = {1}, int64 o = {0}> {
        y = CumSum(x, axis) z = Gather<axis=1>(y, o) }"""
    rng = np.random.default_rng(1)
    sequences = [{"x": rng.integers(-9, 9, (length, 4))} for length in (3, 1, 4)]
    model = _packed(text)
    _compare(Session(parse(text)), Session(model.to_proto()), sequences, 5)


# --- tokens that are chosen -----------------------------------------------------------------------


CLIP = """(int64[B,S] ids) => (float[B,4] y)
    <float[9,4] words = {WORDS}, int64 zero = {0}, int64 one = {1}, int64[1] last = {-1}> {
    x = Gather(words, ids) k = Transpose<perm=[0,2,1]>(x) scores = MatMul(x, k)
    weights = Softmax<axis=-1>(scores) h = MatMul(weights, x)
    shape = Shape(ids) count = Gather(shape, zero) rows = Range(zero, count, one)
    end = ArgMax<axis=-1, keepdims=0 MORE>(NUMBERS)
    r = Unsqueeze(rows, last) c = Unsqueeze(end, last) at = Concat<axis=-1>(r, c)
    y = GatherND(h, at) }"""


@pytest.mark.parametrize("more", ["", ", select_last_index=1"])
@pytest.mark.parametrize("numbers", ["ids", "least"])
def test_the_token_with_the_largest_number_is_that_of_each_sequence(
    numbers: str, more: str
) -> None:
    """As text towers of CLIP do, whose end of text has the largest number."""
    rng = np.random.default_rng(0)
    text = CLIP.replace("MORE", more).replace("NUMBERS", numbers)
    text = text.replace("WORDS", ",".join(f"{each:.3f}" for each in rng.normal(size=36)))
    if numbers == "least":  # all the smallest number: the first, or the last token
        text = text.replace(
            "end = ", "u = Mul(ids, zero) low = Cast<to=3>(u) least = Sub(low, big) end = "
        ).replace("int64[1] last", "int8 big = {127}, int64[1] last")
        text = text.replace("least = Sub(low, big)", "m = Sub(low, big) least = Sub(m, ones)")
        text = text.replace("int8 big = {127}", "int8 big = {127}, int8 ones = {1}")
    model = _packed(text)
    model.check_view()
    sequences = [{"ids": rng.integers(0, 9, length)} for length in (3, 1, 5, 2, 2)]
    _compare(Session(parse(text)), Session(model.to_proto()), sequences, 6)
    fixed = _packed(text, max_valid_num=8)
    batch = pack_sequences(sequences, 6, rows=4, max_valid_num=8)
    found = Session(fixed.to_proto()).run(batch.feeds(["ids", *fixed_inputs(fixed)]))["y"]
    assert found.shape == (8, 4)


def fixed_inputs(model: Model) -> list[str]:
    return [value.name for value in model.main.inputs if value.name != "ids"]


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("y = CumSum(x, one)", "it sums floats over the tokens of a row"),
        ("i = Cast<to=7>(x) c = CumSum<reverse=1>(i, one) y = Cast<to=1>(c)",
         "it sums from the last token on"),
        ("k = Transpose<perm=[1,0,2]>(x) i = Cast<to=7>(k) c = CumSum(i, zero) y = Cast<to=1>(c)",
         "it combines the tokens of a row"),
        ("p = Softmax<axis=1>(x) y = Mul(p, x)", "it normalizes over the tokens of a row"),
        ("t = Transpose<perm=[0,2,1]>(x) y = MatMul(t, x)", "it sums over the tokens of a row"),
        ("f = ReduceMax<keepdims=0>(x, two) a = ArgMax<axis=1, keepdims=0>(f) y = Cast<to=1>(a)",
         "it takes the largest of floats, which may be NaN"),
        ("f = ReduceMax<keepdims=0>(x, two) i = Cast<to=7>(f) a = ArgMax<axis=1, keepdims=0>(i)"
         " n = Neg(a) y = Cast<to=1>(n)", "it computes with row numbers"),
        ("f = ReduceMax<keepdims=0>(x, two) i = Cast<to=7>(f) a = ArgMax<axis=0, keepdims=0>(i)"
         " y = Cast<to=1>(a)", "it combines the rows of the batch"),
        ("y = Concat<axis=1>(x, x)", "it appends to an axis of tokens"),
        ("t = ReduceMax<keepdims=1>(x, list) y = Add(x, t)", "it combines the tokens of a row"),
        ("t = ReduceSum<keepdims=1>(x, list) y = Add(x, t)", "with a value of whole sequences"),
        ("y = Gather<axis=1>(x, list)", "it takes another token than the first"),
        ("y = Slice(x, list, ends, list)", "it takes some of the tokens or rows"),
        ("s = Size(x) f = Cast<to=1>(s) y = Div(x, f)", "a size of the batch"),
        ("y = Reshape(x, flat)", "it splits or merges an axis of tokens"),
        ("t = ReduceSum<keepdims=1>(x, first) y = Add(x, t)", "combines the rows of the batch"),
        ("y = LayerNormalization<axis=1>(x, w)", "it combines the tokens of a row"),
        ("y = InstanceNormalization(x, v, v)", "it joins an axis of tokens with another one"),
        ("y = com.microsoft.Inverse(x)", "the operator may mix tokens"),
        ("k = Transpose<perm=[0,2,1]>(x) s = MatMul(x, k) l = LogSoftmax<axis=-1>(s)"
         " y = MatMul(l, x)", "its result for other sequences is not 0"),
    ],
)  # fmt: skip
def test_operators_that_mix_tokens_are_named(nodes: str, reason: str) -> None:
    text = f"""(float[B,S,4] x) => (float[B,T,U] y) <int64 one = {{1}}, int64 zero = {{0}}, int64[1] two = {{2}}, int64[1] list = {{1}},
        int64[1] ends = {{3}}, int64[1] first = {{0}}, int64[3] flat = {{0, -1, 2}},
        float[4] w = {{1,1,1,1}}, float[4] v = {{1,1,1,1}}> {{ {nodes} }}"""
    model = Model.from_proto(parse(text))
    before = model.to_proto()
    with pytest.raises(ModelError, match=reason):
        get_pass(PASS)(model)
    assert model.to_proto() == before


def test_outputs_of_pairs_and_of_positions_are_refused() -> None:
    text = """(float[B,S,4] x) => (float[B,S,S] y) {
        k = Transpose<perm=[0,2,1]>(x) s = MatMul(x, k) y = Softmax<axis=-1>(s) }"""
    with pytest.raises(ModelError, match="output 'y' is neither"):
        _packed(text)


def test_a_model_that_mixes_no_tokens_needs_no_packing() -> None:
    with pytest.raises(ModelError, match="mixes no tokens"):
        _packed("(float[B,S,4] x) => (float[B,S,4] y) { y = Relu(x) }")


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ("float[2,S,4] x", "no input has dynamic dims"),
        ("float[B,S,4] x, float[B,T] z", "have the lengths S, T"),
        ("float[B,S,4] x, float[S] z", "its first two dims are not batch and length"),
        ("float[B,S,S] x", "has an axis of tokens beside the second"),
    ],
)
def test_inputs_that_cannot_be_packed_are_named(inputs: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        _packed(f"({inputs}) => (float[B,S,4] y) {{ y = Relu(x) }}")


def test_named_inputs_need_dynamic_dims() -> None:
    with pytest.raises(UsageError, match="expected dynamic dims for batch and length"):
        _packed("(float[B,S,4] x, float[3,4] z) => (float[B,S,4] y) { y = Relu(x) }", inputs=["z"])


def test_the_names_of_the_new_inputs_have_to_be_free() -> None:
    text = """(float[B,S,4] x, float[4] sequence_starts) => (float[B,4] y) <int64 z = {0}> {
        a = Add(x, sequence_starts) y = Gather<axis=1>(a, z) }"""
    with pytest.raises(ModelError, match="the name of an input of packed models"):
        _packed(text)


def test_a_packed_model_is_not_packed_again() -> None:
    assert_unchanged(
        PASS,
        "(float[B,S,4] x, int64[B,S] sequence_ids) => (float[B,S,4] y) { y = Relu(x) }",
        because="the model has sequence_ids already",
    )


@pytest.mark.parametrize("opset", [11, 13, 21])
def test_old_opsets_have_their_own_forms(opset: int) -> None:
    axes = "a, one" if opset >= 13 else "a"
    attribute = "" if opset >= 13 else ", axes=[1]"
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[B,S,4] x) => (float[B,4] y) <int64[1] one = {{1}}> {{
        k = Transpose<perm=[0,2,1]>(x) s = MatMul(x, k) p = Softmax<axis=2>(s) a = MatMul(p, x)
        y = ReduceSum<keepdims=0{attribute}>({axes}) }}"""
    model = Model.from_proto(onnx.parser.parse_model(text))
    get_pass(PASS)(model)
    onnx.checker.check_model(model.to_proto(), full_check=True)


def test_token_types_may_be_called_segment_ids() -> None:
    text = """(float[B,S,4] x, int64[B,S] segment_ids) => (float[B,4] y) <int64 z = {0},
        float[2,4] table = {1, 2, 3, 4, 5, 6, 7, 8}> {
        t = Gather(table, segment_ids) a = Add(x, t) y = Gather<axis=1>(a, z) }"""
    rng = np.random.default_rng(0)
    sequences: list[Arrays] = [
        {
            "x": rng.normal(size=(length, 4)).astype(np.float32),
            "segment_ids": rng.integers(0, 2, length),
        }
        for length in (3, 2, 4)
    ]
    _compare(Session(parse(text)), Session(_packed(text).to_proto()), sequences, 6)
