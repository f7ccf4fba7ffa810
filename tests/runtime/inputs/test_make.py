"""Making inputs: each rule, through the operators between, and the search that runs the model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

from tiered.runtime import Inputs, Session, feasible_inputs, make_inputs, run
from tiered.support.errors import ModelError, RuntimeFailure
from tiered.testing import parse

HEADER = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1, "local": 1]>'


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model(f"{HEADER} {text}")


def accepted(text: str, **options: Any) -> Inputs:
    """Make inputs for a model and prove that onnxruntime takes them, at both bindings."""
    proto = model(text)
    session = Session(proto)
    for binding in (1, 0):
        made = make_inputs(proto, binding=binding, **options)
        session.run(made.feeds)
    return made


TABLE = "float[5, 3] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}"

BETWEEN = {
    "directly": "y = Gather(w, x)",
    "through Identity and Cast": "a = Identity(x)  b = Cast<to=6>(a)  y = Gather(w, b)",
    "through Unsqueeze and Squeeze": (
        "s = Constant<value_ints=[0]>()  a = Unsqueeze(x, s)  b = Squeeze(a, s)  y = Gather(w, b)"
    ),
    "through Reshape": "s = Constant<value_ints=[-1]>()  a = Reshape(x, s)  y = Gather(w, a)",
    "through Transpose": "a = Transpose(x)  y = Gather(w, a)",
    "through Concat": "a = Concat<axis=0>(x, x)  y = Gather(w, a)",
    "through Slice": (
        "s = Constant<value_ints=[0]>()  e = Constant<value_ints=[2]>()  a = Slice(x, s, e)"
        "  y = Gather(w, a)"
    ),
    "through Where": (
        "z = Constant<value_int=0>()  c = Less(x, z)  a = Where(c, z, x)  y = Gather(w, a)"
    ),
    "through Gather's data": (
        "z = Constant<value_ints=[0, 1]>()  a = Gather(x, z)  y = Gather(w, a)"
    ),
    "in an If body": """c = Constant<value = bool {1}>()
        y = If(c) <
            then_branch = t () => (float[K, L] a) { a = Gather(w, x) },
            else_branch = e () => (float[K, L] b) { b = Gather(w, x) }>""",
    "as the result of an If": """c = Constant<value = bool {1}>()
        i = If(c) <
            then_branch = t () => (int64[N] a) { a = Identity(x) },
            else_branch = e () => (int64[N] b) { b = Abs(x) }>
        y = Gather(w, i)""",
    "in a local function": "y = local.look_up(w, x)",
}


@pytest.mark.parametrize("between", list(BETWEEN))
def test_indices_stay_inside_the_table(between: str) -> None:
    function = (
        '<domain: "local", opset_import: ["": 21]> look_up (t, i) => (r) '
        "{ j = Identity(i)  r = Gather(t, j) }"
    )
    text = f"g (int64[N] x) => (float[K, L] y) <{TABLE}> {{ {BETWEEN[between]} }}"
    if "function" in between:
        text += function
    proto = model(text)
    x = make_inputs(proto, dims={"N": 60}).feeds["x"]
    assert x.min() >= 0
    assert x.max() <= 4
    assert set(x.tolist()) == {0, 1, 2, 3, 4}
    run(proto, {"x": x})


@pytest.mark.parametrize(
    ("arithmetic", "low", "high"),
    [
        ("c = Constant<value_int=2>()  i = Add(x, c)", -2, 2),
        ("c = Constant<value_int=2>()  i = Sub(x, c)", 2, 6),
        ("c = Constant<value_int=4>()  i = Sub(c, x)", 0, 4),
        ("c = Constant<value_int=2>()  i = Mul(x, c)", 0, 2),
        ("i = Neg(x)", -4, 0),
    ],
)
def test_arithmetic_on_the_way_moves_the_bounds(arithmetic: str, low: int, high: int) -> None:
    proto = model(
        f"g (int32[N] x) => (float[K, L] y) <{TABLE}> "
        f"{{ z = Cast<to=7>(x)  {arithmetic}  y = Gather(w, i) }}".replace("(x, c)", "(z, c)")
        .replace("(c, x)", "(c, z)")
        .replace("Neg(x)", "Neg(z)")
    )
    x = make_inputs(proto, dims={"N": 80}).feeds["x"]
    assert (x.min(), x.max()) == (low, high)
    run(proto, {"x": x})


@pytest.mark.parametrize(
    "body",
    [
        "y = Gather<axis=1>(t, i)",
        "y = GatherElements<axis=1>(t, i)",
        "y = GatherND(t, i)",
        "y = ScatterElements<axis=1>(t, i, u)",
    ],
)
def test_every_gather_and_scatter_is_bounded(body: str) -> None:
    accepted(f"g (float[3, 4] t, int64[3, 2] i, float[3, 2] u) => (float[K] y) {{ {body} }}")


def test_the_bound_is_read_from_another_inputs_shape() -> None:
    made = accepted("g (float[rows, 4] t, int64[N] i) => (float[K, 4] y) { y = Gather(t, i) }")
    assert made.feeds["i"].max() < made.dims["rows"]


def test_an_unknown_axis_gets_small_indices() -> None:
    text = """g (float[N] x, int64[20] i) => (float[K] y)
        { c = NonZero(x)  f = Cast<to=1>(c)  s = Constant<value_ints=[-1]>()
          r = Reshape(f, s)  y = Gather(r, i) }"""
    made = accepted(text)
    assert set(made.feeds["i"].tolist()) == {0, 1}
    assert "unknown axis" in made.rules["i"]


def test_scatter_hits_no_place_twice() -> None:
    text = """g (float[9, 2] t, int64[7, 2] i, float[7, 2] u, int64[5, 1] j, float[5, 2] v)
        => (float[9, 2] y, float[9, 2] z)
        { y = ScatterElements(t, i, u)  z = ScatterND(t, j, v) }"""
    made = accepted(text)
    for column in made.feeds["i"].T:
        assert len(set(column.tolist())) == 7
    assert len(set(made.feeds["j"].reshape(-1).tolist())) == 5


def test_one_hot_and_loss_targets_name_a_class() -> None:
    made = accepted("""g (int64[50] i, float[20, 6] s, int64[20] t) => (float[K, L] y, float l)
        { d = Constant<value_int=4>()  v = Constant<value_floats=[0.0, 1.0]>()
          y = OneHot(i, d, v)  l = SoftmaxCrossEntropyLoss(s, t) }""")
    assert set(made.feeds["i"].tolist()) == {0, 1, 2, 3}
    assert made.feeds["t"].max() < 6


def test_a_float_that_becomes_an_index_is_one() -> None:
    text = f"g (float[40] x) => (float[K, 3] y) <{TABLE}> {{ i = Cast<to=7>(x)  y = Gather(w, i) }}"
    assert set(accepted(text).feeds["x"].tolist()) == {0, 1, 2, 3, 4}


def test_embedding_operators_have_tables() -> None:
    text = """g (int32[batch, seq] ids, int32[batch, seq] segs) => (float[B, S, 2] y, int32[B] m)
        <float[3, 2] w = {1,2,3,4,5,6}, float[2, 2] s = {1,2,3,4}, float[2] b = {1,1}>
        { n = Constant<value_ints=[30, 2]>()  p = ConstantOfShape(n)
          y, m = com.microsoft.EmbedLayerNormalization(ids, segs, w, p, s, b, b) }"""
    made = accepted(text)
    assert made.feeds["ids"].max() <= 2
    assert made.feeds["segs"].max() <= 1


MASKED = """{ m = Cast<to=1>(attend)  o = Constant<value_float=1.0>()  r = Sub(o, m)
    b = Constant<value_float=-1000.0>()  a = Mul(r, b)  s = Add(scores, a)  y = Softmax(s) }"""


def test_masks_are_ones_and_padded_at_odd_bindings() -> None:
    text = f"g (int64[batch, seq] attend, float[batch, seq] scores) => (float[A, B] y) {MASKED}"
    proto = model(text)
    made = make_inputs(proto)
    assert made.feeds["attend"].all()
    assert "mask of ones" in made.rules["attend"]
    padded = make_inputs(proto, binding=1).feeds["attend"]
    assert padded[:-1].all()
    assert padded[-1].tolist() == [1] * 10 + [0] * 3


@pytest.mark.parametrize("kind", ["int64", "bool", "float", "int32"])
def test_an_input_named_mask_is_a_mask(kind: str) -> None:
    made = make_inputs(
        model(f"g ({kind}[2, 8] attention_mask) => (float[K] y) {{ y = Identity(attention_mask) }}")
    )
    assert made.feeds["attention_mask"].all()


def test_a_mask_that_is_added_is_zero() -> None:
    text = "g (float[2, 8] mask, float[2, 8] x) => (float[2, 8] y) { y = Add(x, mask) }"
    assert not accepted(text).feeds["mask"].any()
    text = text.replace("Add", "Mul")
    assert accepted(text).feeds["mask"].all()


def test_a_mask_that_is_compared_is_one() -> None:
    text = """g (int64[2, 8] keep, float[2, 8] x) => (float[2, 8] y)
        { z = Constant<value_int=0>()  c = Equal(keep, z)  f = Constant<value_float=-9.0>()
          y = Where(c, f, x) }"""
    assert accepted(text).feeds["keep"].all()


def test_ids_that_are_compared_and_looked_up_are_indices() -> None:
    text = f"""g (int64[2, 40] ids) => (float[A, B, C] y, bool[2, 40] c) <{TABLE}>
        {{ z = Constant<value_int=0>()  e = Equal(ids, z)  c = Not(e)  y = Gather(w, ids) }}"""
    assert accepted(text).feeds["ids"].max() == 4


def test_a_mask_that_is_counted_into_positions_is_one() -> None:
    text = """g (int64[2, 4] keep, float[6, 3] t) => (float[A, B, C] y)
        { a = Constant<value_int=1>()  c = CumSum(keep, a)  p = Sub(c, a)  y = Gather(t, p) }"""
    assert accepted(text).feeds["keep"].all()


def test_positions_count_and_stay_in_their_table() -> None:
    text = f"g (int64[2, N] position_ids) => (float[A, B, C] y) <{TABLE}> " + (
        "{ y = Gather(w, position_ids) }"
    )
    made = make_inputs(model(text), dims={"N": 7})
    assert made.feeds["position_ids"].tolist() == [[0, 1, 2, 3, 4, 0, 1]] * 2
    accepted(text)


def test_token_types_of_an_unknown_table_are_small() -> None:
    made = make_inputs(
        model("g (int64[2, 30] token_type_ids) => (int64[K] y) { y = Neg(token_type_ids) }")
    )
    assert set(made.feeds["token_type_ids"].reshape(-1).tolist()) == {0, 1}


def test_lengths_are_positive_and_one_is_full() -> None:
    text = """g (float[7, 3, 2] x, int64[3] lens) => (float[7, 3, 2] y)
        { y = ReverseSequence<time_axis=0, batch_axis=1>(x, lens) }"""
    lens = accepted(text).feeds["lens"]
    assert lens.min() >= 1
    assert lens.max() == 7


def test_recurrent_lengths_fit_the_sequence() -> None:
    text = """g (float[seq, batch, 2] x, int32[batch] sequence_lens, float[1, 12, 2] w,
        float[1, 12, 3] r) => (float[A, 1, B, 3] y)
        { y = LSTM<hidden_size=3>(x, w, r, , sequence_lens) }"""
    made = accepted(text)
    assert made.feeds["sequence_lens"].max() == made.dims["seq"]


SIZES = {
    "Reshape": "int64[1] s) => (float[K] y) { y = Reshape(x, s) }",
    "Reshape of higher rank": "int64[4] s) => (float[A,B,C,D] y) { y = Reshape(x, s) }",
    "Expand": "int64[3] s) => (float[A, B, C] y) { y = Expand(x, s) }",
    "Tile": "int64[2] s) => (float[A, B] y) { y = Tile(x, s) }",
    "ConstantOfShape": "int64[3] s) => (float[A, B, C] y) { y = ConstantOfShape(s) }",
    "TopK": "int64[1] s) => (float[A, B] y, int64[A, B] z) { y, z = TopK(x, s) }",
    "Resize sizes": ('int64[2] s) => (float[A, B] y) { y = Resize<mode="nearest">(x, , , s) }'),
    "Resize scales": 'float[2] s) => (float[A, B] y) { y = Resize<mode="nearest">(x, , s) }',
    "Slice": "int64[2] s, int64[2] e, int64[2] a, int64[2] p) => (float[A, B] y)"
    " { y = Slice(x, s, e, a, p) }",
    "Pad": 'int64[4] s) => (float[A, B] y) { y = Pad<mode="reflect">(x, s) }',
    "Unsqueeze": "int64[1] s) => (float[A, B, C] y) { y = Unsqueeze(x, s) }",
    "Split": "int64[2] s) => (float[A, B] y, float[A, B] z) { y, z = Split<axis=1>(x, s) }",
    "ReduceSum": "int64[1] s) => (float[A, B] y) { y = ReduceSum(x, s) }",
    "Range": "int64 s, int64 e, int64 p) => (int64[K] y) { y = Range(s, e, p) }",
    "CumSum": "int64 s) => (float[A, B] y) { y = CumSum(x, s) }",
    "Trilu": "int64 s) => (float[A, B] y) { y = Trilu(x, s) }",
    "Clip": "float s, float e) => (float[A, B] y) { y = Clip(x, s, e) }",
    "a size made of scalars": """int64 s) => (float[A, B] y)
        { z = Constant<value_ints=[0]>()  u = Unsqueeze(s, z)  o = Constant<value_ints=[3]>()
          c = Concat<axis=0>(u, o)  y = ConstantOfShape(c) }""",
}


@pytest.mark.parametrize("case", list(SIZES))
def test_inputs_that_give_sizes_and_axes_are_valid(case: str) -> None:
    out = accepted(f"g (float[batch, 6] x, {SIZES[case]}")
    assert ("size" in out.rules["s"]) or ("values for" in out.rules["s"])


def test_loops_have_few_iterations_and_index_by_iteration() -> None:
    text = """g (int64 n, bool go, float[2, 4] t) => (float[A, 4] y) {
        y = Loop(n, go) <body = b (int64 i, bool c) => (bool c2, float[4] r)
            { c2 = Identity(c)  r = Gather(t, i) }> }"""
    made = accepted(text)
    assert made.feeds["n"] == 2
    assert made.feeds["go"]


def test_loop_carried_indices_are_followed() -> None:
    text = f"""g (int64[9] x) => (int64[9] last, float[A, 9, 3] y) <{TABLE}> {{
        n = Constant<value_int=2>()  go = Constant<value = bool {{1}}>()
        last, y = Loop(n, go, x) <body = b (int64 i, bool c, int64[9] k) =>
            (bool c2, int64[9] k2, float[9, 3] r)
            {{ c2 = Identity(c)  k2 = Identity(k)  r = Gather(w, k2) }}> }}"""
    assert accepted(text).feeds["x"].max() <= 4


def test_bindings_alternate_the_branches_of_a_condition() -> None:
    text = """g (bool c, float[2] x) => (float[2] y) { y = If(c) <
        then_branch = t () => (float[2] a) { a = Neg(x) },
        else_branch = e () => (float[2] b) { b = Abs(x) }> }"""
    proto = model(text)
    assert [bool(make_inputs(proto, binding=b).feeds["c"]) for b in (0, 1)] == [True, False]


def test_booleans_hold_both_values() -> None:
    text = "g (bool[4] c, float[4] x) => (float[4] y) { y = Where(c, x, x) }"
    assert set(accepted(text).feeds["c"].tolist()) == {True, False}


def test_scales_and_divisors_are_never_zero() -> None:
    text = """g (float[4] x, float s, uint8 z, int32[200] a, int32[200] b, float[9] v)
        => (uint8[4] q, int32[200] d, float[9] r) { q = QuantizeLinear(x, s, z)  d = Div(a, b)
        r = Sqrt(v) }"""
    made = accepted(text, special=True)
    assert made.feeds["s"] > 0
    assert made.feeds["b"].min() > 0
    assert make_inputs(model(text)).feeds["v"].min() > 0


def test_dividends_have_no_extremes() -> None:
    text = (
        "g (int32[200] a) => (int32[200] y) { c = Constant<value = int32 {-1}>()  y = Div(a, c) }"
    )
    assert np.abs(accepted(text, special=True).feeds["a"]).max() <= 10


def test_training_is_off() -> None:
    text = "g (float[4] x, float r, bool t) => (float[4] y) { y = Dropout(x, r, t) }"
    assert not accepted(text).feeds["t"]


ALL_TYPES = [value.name for value in TensorProto.DESCRIPTOR.enum_types_by_name["DataType"].values][
    1:
]


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("name", ALL_TYPES)
def test_every_element_type_is_made(name: str, special: bool) -> None:
    number = TensorProto.DataType.Value(name)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", number, [3, 40])],
        [helper.make_tensor_value_info("y", number, [3, 40])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    try:
        dtype = np.dtype(object) if name == "STRING" else helper.tensor_dtype_to_np_dtype(number)
    except KeyError:
        with pytest.raises(ModelError, match="unknown element type"):
            make_inputs(proto)
        return
    x = make_inputs(proto, special=special).feeds["x"]
    assert x.dtype == dtype
    assert x.shape == (3, 40)
    assert len(set(map(str, x.reshape(-1)))) > 1


def test_narrow_integers_use_their_range() -> None:
    proto = model(
        "g (int8[900] x, uint8[900] z) => (int8[900] y, uint8[900] t) "
        "{ y = Identity(x)  t = Identity(z) }"
    )
    feeds = make_inputs(proto).feeds
    assert (feeds["x"].min(), feeds["x"].max()) == (-128, 127)
    assert feeds["z"].max() == 255


@pytest.mark.parametrize("name", ["FLOAT", "FLOAT16", "DOUBLE", "BFLOAT16"])
def test_special_values_are_all_there(name: str) -> None:
    kinds = {"FLOAT": "float", "FLOAT16": "float16", "DOUBLE": "double", "BFLOAT16": "bfloat16"}
    proto = model(f"g ({kinds[name]}[64] x) => ({kinds[name]}[64] y) {{ y = Identity(x) }}")
    x = make_inputs(proto, special=True).feeds["x"]
    info = ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call]  # ml_dtypes has no types
    wide = x.astype(np.float64)
    assert np.isnan(wide).any()
    assert {np.inf, -np.inf, float(info.max), float(info.min)} <= set(wide.tolist())
    assert float(info.smallest_subnormal) in wide
    zeros = wide[wide == 0]
    assert set(np.signbit(zeros).tolist()) == {True, False}
    assert np.isfinite(wide).sum() > 32
    assert np.isfinite(make_inputs(proto).feeds["x"].astype(np.float64)).all()


def test_special_integers_reach_both_ends_but_indices_do_not() -> None:
    text = f"g (int64[60] x, int64[60] i) => (int64[60] y, float[A, 3] z) <{TABLE}> " + (
        "{ y = Abs(x)  z = Gather(w, i) }"
    )
    made = accepted(text, special=True)
    ends = np.iinfo(np.int64)
    assert {ends.min, ends.max} <= set(made.feeds["x"].tolist())
    assert made.feeds["i"].max() <= 4


def test_small_tensors_get_few_special_values() -> None:
    proto = model("g (float[2] x, float s) => (float[2] y) { y = Mul(x, s) }")
    for seed in range(4):
        x = make_inputs(proto, special=True, seed=seed).feeds["x"]
        assert x.shape == (2,)


def test_strings_sequences_optionals_and_maps() -> None:
    made = accepted("""g (string[3] s, seq(float[N]) q, optional(float[2]) o)
        => (string[3] t, float[K] e, bool h)
        { t = Identity(s)  z = Constant<value_int=0>()  e = SequenceAt(q, z)
          h = OptionalHasElement(o) }""")
    assert made.feeds["s"].dtype == object
    assert [a.dtype for a in made.feeds["q"]] == [np.float32] * 2
    assert made.feeds["o"].shape == (2,)
    assert made.rules["o"] == "optional, present: normal distribution"


def test_sparse_and_untyped_inputs_are_refused_by_name() -> None:
    proto = model("g (float[N] x) => (float[N] y) { y = Identity(x) }")
    proto.graph.input[0].ClearField("type")
    with pytest.raises(ModelError, match=r"input 'x'.*not given"):
        make_inputs(proto)
    proto.graph.input[0].type.CopyFrom(helper.make_sparse_tensor_type_proto(1, [3]))
    with pytest.raises(ModelError, match="sparse_tensor_type"):
        make_inputs(proto)


def test_inputs_with_initializers_are_left_alone() -> None:
    proto = model("g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }")
    assert list(make_inputs(proto).feeds) == ["x"]


def test_the_model_is_not_touched() -> None:
    proto = model(f"g (int64[N] x) => (float[K, 3] y) <{TABLE}> {{ y = Gather(w, x) }}")
    before = proto.SerializeToString(deterministic=True)
    make_inputs(proto)
    assert proto.SerializeToString(deterministic=True) == before


def test_models_from_bytes_and_files(tmp_path: Path) -> None:
    proto = model("g (float[N] x) => (float[N] y) { y = Neg(x) }")
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    made = [make_inputs(m).feeds["x"].tobytes() for m in (proto, path, proto.SerializeToString())]
    assert len(set(made)) == 1
    with pytest.raises(ModelError, match="cannot read a model"):
        make_inputs(tmp_path / "gone.onnx")
    with pytest.raises(ModelError, match="from the bytes"):
        make_inputs(b"garbage")


def test_seed_and_binding_change_the_numbers_and_nothing_else_does() -> None:
    proto = model("g (float[9] x, float[9] z) => (float[9] y) { y = Add(x, z) }")
    x = [make_inputs(proto, seed=s, binding=b).feeds["x"].tobytes() for s in (0, 1) for b in (0, 1)]
    assert len(set(x)) == 4
    feeds = make_inputs(proto).feeds
    assert feeds["x"].tobytes() == x[0]
    assert feeds["x"].tobytes() != feeds["z"].tobytes()


def test_the_hash_seed_does_not_matter() -> None:
    code = (
        "from onnx import parser; from tiered.runtime import make_inputs; import hashlib\n"
        f"m = parser.parse_model('''{HEADER} g (float[batch, foo] x, int64[foo] i, bool[bar] b)"
        " => (float[K] y) { y = Gather(x, i) }''')\n"
        "made = make_inputs(m, special=True)\n"
        "print(made.dims, made.rules, "
        "hashlib.sha256(b''.join(v.tobytes() for v in made.feeds.values())).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_recursive_and_exploding_functions_do_not_hang() -> None:
    doubling = "".join(
        f'<domain: "local", opset_import: ["": 21, "local": 1]> f{i} (a) => (b) '
        f"{{ c = local.f{i + 1}(a)  b = local.f{i + 1}(c) }}"
        for i in range(40)
    )
    last = '<domain: "local", opset_import: ["": 21]> f40 (a) => (b) { b = Neg(a) }'
    proto = model(f"g (int64[4] x) => (int64[4] y) {{ y = local.f0(x) }} {doubling} {last}")
    assert make_inputs(proto).feeds["x"].shape == (4,)
    loop = '<domain: "local", opset_import: ["": 21, "local": 1]> f (a) => (b) { b = local.f(a) }'
    proto = model(f"g (int64[4] x) => (int64[4] y) {{ y = local.f(x) }} {loop}")
    assert make_inputs(proto).feeds["x"].shape == (4,)


def test_feasible_inputs_take_the_usual_sizes_where_they_fit() -> None:
    made = feasible_inputs(model("g (float[n, m] x) => (float[n, m] y) { y = Neg(x) }"))
    assert made.rules["*"] == "sizes as usual"


def test_feasible_inputs_find_equal_dims() -> None:
    proto = model("g (float[foo] x, float[bar] z) => (float[K] y) { y = Add(x, z) }")
    made = feasible_inputs(proto)
    assert made.dims["foo"] == made.dims["bar"]
    assert "try" in made.rules["*"]


def test_feasible_inputs_find_a_sum_whatever_its_name() -> None:
    proto = model("""g (float[foo] a, float[bar] b, float[baz] c) => (float[K] y)
        { ab = Concat<axis=0>(a, b)  y = Add(ab, c) }""")
    made = feasible_inputs(proto)
    assert made.dims["baz"] == made.dims["foo"] + made.dims["bar"]
    assert made.rules["*"].startswith("baz = foo + bar")


def test_feasible_inputs_find_a_rank() -> None:
    proto = model("g (float[N] x) => (float[N] y) { y = Transpose<perm=[2, 0, 1]>(x) }")
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    assert feasible_inputs(proto).feeds["x"].ndim == 3


def test_feasible_inputs_decode_one_token_where_only_that_fits() -> None:
    proto = model("""g (int64[batch, seq] ids, float[batch, past] cache, float[batch, all_len] m)
        => (float[K, L] y) { f = Cast<to=1>(ids)  s = Constant<value_ints=[-1, 1]>()
        r = Reshape(f, s)  c = Concat<axis=1>(cache, r)  y = Add(c, m) }""")
    made = feasible_inputs(proto)
    assert made.feeds["ids"].shape[1] == 1
    assert made.rules["*"].startswith("one new token after a past")


def test_feasible_inputs_give_up_with_the_first_failure() -> None:
    proto = model("""g (float[N] x) => (float[K] y)
        { s = Constant<value_ints=[-1, 1234567]>()  y = Reshape(x, s) }""")
    expected = r"no inputs .* tries; .*; the first failed with: .*Reshape"
    with pytest.raises(RuntimeFailure, match=expected):
        feasible_inputs(proto)
    with pytest.raises(RuntimeFailure, match="in 2 tries"):
        feasible_inputs(proto, max_tries=2)


@pytest.mark.parametrize("binding", [0, 1])
def test_a_decoder_with_a_past_works_at_once(binding: int) -> None:
    proto = model("""g (int64[batch, seq] input_ids, int64[batch, total] attention_mask,
        float[batch, past, 3] past_key) => (float[batch, total, 3] present, float[B, T] bias)
        <float[5, 3] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}>
        { e = Gather(w, input_ids)  present = Concat<axis=1>(past_key, e)
          m = Cast<to=1>(attention_mask)  r = ReduceSum<keepdims=0>(present, axes)
          axes = Constant<value_ints=[2]>()  bias = Mul(r, m) }""")
    made = make_inputs(proto, binding=binding)
    run(proto, made.feeds)
    assert made.feeds["input_ids"].max() <= 4


def test_values_that_double_are_not_propagated_without_end() -> None:
    steps = "".join(f" s{i + 1} = Concat<axis=0>(s{i}, s{i})" for i in range(60))
    proto = model(f"g (float[2] x) => (float[N] y) {{ s0 = Shape(x) {steps} y = Cast<to=1>(s60) }}")
    assert make_inputs(proto).feeds["x"].shape == (2,)


# A frame of sound is padded by reflection, cut into steps, and goes through a recurrent layer whose
# state is [2, batch, hidden]; the sampling rate chooses a branch.
DETECTOR = """g (float[a,b] input, float[2,c,4] state, int64 sr) => (float[K,L] y)
    <int64[4] pads = {0, 64, 0, 64}, int64 rate = {16000}, int64[3] form = {0, -1, 32},
     float[1,16,32] w = {WEIGHTS}, float[1,16,4] r = {RECURRENCE}, int64[1] zero = {0}> {
    is_fast = Equal(sr, rate)
    fast = If(is_fast) <then_branch = t () => (float[a,b] p) { p = Identity(input) },
                        else_branch = e () => (float[a,b] q) { q = Neg(input) }>
    padded = Pad <mode = "reflect"> (fast, pads)
    steps = Reshape(padded, form)
    x = Transpose <perm = [1,0,2]> (steps)
    h, cell = Split <axis = 0, num_outputs = 2> (state)
    all, last = LSTM <hidden_size = 4> (x, w, r, , , h, cell)
    y = Squeeze(last, zero) }"""


def detector(names: str = "") -> str:
    weights = ", ".join(["0.1"] * 512)
    recurrence = ", ".join(["0.2"] * 64)
    text = DETECTOR.replace("WEIGHTS", weights).replace("RECURRENCE", recurrence)
    return text if names == "named" else text.replace("[a,b]", "[?,?]").replace("c,4]", "?,4]")


def test_a_recurrent_detector_of_sound_is_fed() -> None:
    text = detector("named").replace("a,b] input", "batch,sequence] input")
    text = text.replace("2,c,4]", "2,batch,4]")
    made = feasible_inputs(model(text))
    assert made.feeds["input"].shape == (2, 512)
    assert made.feeds["state"].shape == (2, 2, 4)
    assert made.feeds["sr"] == 16000
    assert made.rules["sr"] == "sampling rate of 16000"
    assert feasible_inputs(model(text), binding=1).feeds["sr"] == 8000


def test_a_state_has_its_batch_in_the_middle() -> None:
    made = feasible_inputs(model(detector()))
    assert made.feeds["input"].shape[0] == made.feeds["state"].shape[1] == 2


def test_the_frames_of_a_spectrogram_are_many() -> None:
    text = """g (float[batch,8,time] mel) => (float[B,C,T] y)
        <float[4,8,41] w = {WEIGHTS}> { y = Conv(mel, w) }"""
    weights = ", ".join(["0.1"] * 4 * 8 * 41)
    made = feasible_inputs(model(text.replace("WEIGHTS", weights)))
    assert made.feeds["mel"].shape[2] >= 41


def test_sizes_that_are_given_are_kept() -> None:
    text = "g (float[a,b] x) => (float[c,77] y) <int64[2] s = {-1, 77}> { y = Reshape(x, s) }"
    with pytest.raises(RuntimeFailure, match=r"inputs of your own \(--inputs, .*--input-shape"):
        feasible_inputs(model(text), dims={"a": 3, "b": 5})
    made = feasible_inputs(model(text), dims={"b": 154})
    assert made.feeds["x"].shape[1] == 154


def test_sizes_that_shape_arithmetic_decides_bound_an_index() -> None:
    made = accepted(
        """g (float[3, 4] t, int64[N] i) => (float[K, L] y)
        <int64[1] first = {0}, int64[1] two = {2}> {
          s = Shape(t)  n = Gather(s, first)  m = Mul(n, two)  k = Concat<axis = 0>(m, two)
          w = Reshape(t, k)  y = Gather(w, i) }""",
        dims={"N": 60},
    )
    assert made.feeds["i"].max() == 5


def test_of_an_invalid_model_only_the_inputs_are_known() -> None:
    text = "g (float[3, 4] t, int64[2] i) => (float[K, L] y) { y = Gather(t, j) }"
    made = make_inputs(model(text))
    assert made.feeds["t"].shape == (3, 4)
    assert made.rules["i"] == make_inputs(model("g (int64[2] i) => (int64[2] i) {}")).rules["i"]


def test_varied_numbers_have_rows_of_every_kind() -> None:
    text = "g (float[N,16] x, float[N,3,4,5] v, float[N] s, int64[9] i) => (y) { y = Gather(x, i) }"
    made = make_inputs(model(text), binding=1, varied=True, dims={"N": 12})
    x = made.feeds["x"].reshape(2, 6, 16)
    for shifted, zero, decades, constant, normal, small in x:
        assert (np.abs(shifted - 100) < 10).all()
        assert not zero.any()
        assert np.abs(decades).min() < 1e-2
        assert np.abs(decades).max() > 1
        assert len(set(constant)) == 1
        assert 0.1 < np.abs(normal).max() < 10
        assert 0 < np.abs(small).max() < 1e-2
    planes = made.feeds["v"].reshape(6, 6, 20)
    assert (np.abs(planes[:, 0] - 100) < 10).all()
    assert (made.feeds["i"][0], made.feeds["i"][-1]) == (0, 11)
    assert made.rules["x"].startswith("rows shifted by 100, zero")
    assert made.is_varied
    again = make_inputs(model(text), binding=1, varied=True, dims={"N": 12})
    assert again.feeds["x"].tobytes() == made.feeds["x"].tobytes()


def test_varied_numbers_keep_what_the_model_demands() -> None:
    text = """g (float[2,3] x, float[2,3] d, float[2,3] mask, float16[2,3] h, float[3] few)
        => (y, z) {
        a = Log(x)  b = Div(a, d)  y = Add(b, mask)  z = Neg(h) }"""
    made = make_inputs(model(text), varied=True)
    assert (made.feeds["x"] > 0).all()
    assert made.feeds["d"].all()
    assert not made.feeds["mask"].any()
    assert np.abs(made.feeds["h"].astype(np.float64)).max() < 20
    assert made.rules["few"] == "normal distribution"


def test_positions_are_rows_of_the_caches() -> None:
    shapes = "float[1,2,3,8] x, float[10,4] c, float[10,4] s, int64[1,3] p"
    for call, opset in (
        ("RotaryEmbedding(x, c, s, p)", 23),
        ("com.microsoft.RotaryEmbedding(x, p, c, s)", 21),
    ):
        proto = parse(f"({shapes}) => (float[1,2,3,8] y) {{ y = {call} }}", opset=opset)
        for seed in range(3):
            positions = make_inputs(proto, seed=seed).feeds["p"]
            assert positions.min() >= 0
            assert positions.max() < 10


@pytest.mark.parametrize("seed", range(4))
def test_regions_of_an_image_have_their_lower_corner_first(seed: int) -> None:
    text = """(float[1,2,16,8] x, float[1,5,4] r) => (y)
        <int64[2] s = {-1,4}, int64[5] i = {0,0,0,0,0}> {
        f = Reshape(r, s)
        y = RoiAlign<output_height = 2, output_width = 2, spatial_scale = 0.5>(x, f, i) }"""
    inputs = feasible_inputs(parse(text, opset=16), seed=seed, special=True, varied=True)
    regions = inputs.feeds["r"]
    assert (regions[..., :2] < regions[..., 2:]).all()
    assert 0 <= regions.min() <= regions.max() <= 16


@pytest.mark.parametrize(
    ("key", "element", "expected"),
    [
        (TensorProto.STRING, TensorProto.FLOAT, {"a": 1.0, "b": 2.0}),
        (TensorProto.INT64, TensorProto.INT64, {0: 1, 1: 2}),
        (TensorProto.INT64, TensorProto.STRING, {0: "1.0", 1: "2.0"}),
    ],
)
def test_a_map_has_keys_and_values_of_its_types(
    key: int, element: int, expected: dict[Any, Any]
) -> None:
    value = helper.make_tensor_type_proto(element, [])
    info = helper.make_value_info("m", helper.make_map_type_proto(key, value))
    proto = helper.make_model(helper.make_graph([], "g", [info], []))
    found = make_inputs(proto).feeds["m"]
    assert found == expected
    assert [type(each) for each in found.values()] == [type(each) for each in expected.values()]
