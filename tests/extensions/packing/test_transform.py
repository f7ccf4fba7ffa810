"""Packing as a whole: its inputs, outputs, refusals, and what it says that it did."""

from collections.abc import Sequence

import pytest

from tiered import Model, ModelError, UsageError
from tiered.extensions.packing.transform import pack_rows
from tiered.testing import parse

FIRST = "(float[B,S,4] x) => (float[B,4] y) <int64 z = {0}> { y = Gather<axis=1>(x, z) }"
ATTENTION = """(float[B,S,4] x) => (float[B,S,4] y, float[B,4] f) <int64 z = {0}> {
    k = Transpose<perm=[0,2,1]>(x) s = MatMul(x, k) p = Softmax(s) y = MatMul(p, x)
    f = Gather<axis=1>(y, z) }"""


def packed(text: str, inputs: Sequence[str] = (), *, max_valid_num: int = 0) -> Model:
    model = Model.from_proto(parse(text))
    pack_rows(model, inputs, max_valid_num=max_valid_num)
    return model


def names(model: Model) -> list[str]:
    return [value.name for value in model.main.inputs]


def test_it_says_what_was_done() -> None:
    said = {
        FIRST: "0 attentions masked by sequence, 1 value taken from whole sequences",
        ATTENTION: "1 attention masked by sequence, 1 value taken from whole sequences",
    }
    for text, expected in said.items():
        assert pack_rows(Model.from_proto(parse(text))) == expected


def test_the_new_inputs_have_the_dims_of_the_rows() -> None:
    model = packed(ATTENTION)
    types = {value.name: value.shape for value in model.main.inputs}
    assert types == {"x": ("B", "S", 4), "sequence_ids": ("B", "S"),
                     "sequence_starts": ("sequences", 2)}  # fmt: skip


@pytest.mark.parametrize(("number", "dim"), [(0, "sequences"), (1, 1), (3, 3)])
def test_an_output_of_whole_sequences_has_a_row_for_each(number: int, dim: int | str) -> None:
    model = packed(ATTENTION, max_valid_num=number)
    assert [value.shape for value in model.main.outputs] == [("B", "S", 4), (dim, 4)]
    assert model.main.values["sequence_starts"].shape == (dim, 2)


def test_the_axis_of_sequences_may_be_any() -> None:
    model = packed(
        "(float[B,S,4] x) => (float[4,B] y) <int64 z = {0}> {"
        " f = Gather<axis=1>(x, z) y = Transpose<perm=[1,0]>(f) }"
    )
    assert model.main.outputs[0].shape == (4, "sequences")


def test_the_interface_remembers_the_packing() -> None:
    model = packed(ATTENTION, max_valid_num=2)
    found = model.interface_since().packed
    assert found is not None
    assert (found.inputs, found.pooled, found.most) == (("x",), frozenset({"f"}), 2)


def test_a_negative_number_of_sequences_is_refused() -> None:
    with pytest.raises(UsageError, match="max_valid_num is a number from 0 on, not -1"):
        packed(FIRST, max_valid_num=-1)


BODY = "{ a = Add(x, w) y = Gather<axis=1>(a, z) }"


@pytest.mark.parametrize(
    ("inputs", "given", "reason"),
    [
        ("float[2,S,4] x", [], "no input has dynamic dims for batch and length; declare them"),
        ("float[B,3,4] x", [], "no input has dynamic dims"),
        ("float[S,S,4] x", [], "no input has dynamic dims"),
        ("float[S] x", [], "no input has dynamic dims"),
        ("float[B,S,4] x, float[B,T,4] w", [],
         "the inputs have the lengths S, T; expected one: name the inputs of tokens by `inputs`"),
        ("float[B,S,4] x, float[S,4] w", ["x"], "'w' is float.S,4., and its first two dims are "
         "not batch and length"),
        ("float[B,S,4] x, float[2,B,4] w", [], "name the packed inputs by `inputs`"),
        ("float[B,S,S] x", [], "'x' has an axis of tokens beside the second"),
        ("float[B,S,B] x", [], "'x' has an axis of tokens beside the second"),
        ("float[B,S,4] x, float[4] w", ["w"], "'w' is float.4.; expected dynamic dims for batch"),
        ("float[B,S,4] x, float[B,B] w", ["x", "w"], "expected dynamic dims for batch and length"),
        ("float[B,S,4] x, float[B,2] w", ["x", "w"], "expected dynamic dims for batch and length"),
        ("float[B,S,4] x", ["q"], "'q'"),
        ("float[2,S,4] x", ["x"], "'x' is float.2,S,4.; expected dynamic dims for batch and"),
        ("float[B,2,4] x", ["x"], "'x' is float.B,2,4.; expected dynamic dims for batch and"),
        ("float[] x", [], "no input has dynamic dims"),
        ("float[B,S,4] x, float[] w", ["x"], "'w' is .*, and its first two dims are not batch"),
    ],
)  # fmt: skip
def test_inputs_that_cannot_be_packed_are_named(inputs: str, given: list[str], reason: str) -> None:
    constant = "" if " w" in inputs else ", float w = {1}"
    text = f"({inputs}) => (float y) <int64 z = {{0}}{constant}> {BODY}"
    with pytest.raises(UsageError, match=reason):
        packed(text, given)


def test_an_input_of_a_named_dim_of_its_own_is_the_same_for_all_rows() -> None:
    text = f"(float[B,S,4] x, float[1,1,4] w) => (float[B,4] y) <int64 z = {{0}}> {BODY}"
    assert names(packed(text)) == ["x", "w", "sequence_starts"]


@pytest.mark.parametrize(
    ("nodes", "output", "reason"),
    [
        ("k = ReduceMax(x, l1) y = Neg(k)", "float[B,1,4] y",
         "ReduceMax '.*': it combines the tokens of a row; output 'y' depends on it"),
        ("y = Shape(x)", "int64[3] y", "output 'y' is neither .batch, length, .... nor one value"),
        ("y = Transpose<perm=[1,0,2]>(x)", "float[S,B,4] y", "output 'y' is neither"),
        ("k = Transpose<perm=[0,2,1]>(x) y = MatMul(x, k)", "float[B,S,S] y", "'y' is neither"),
        ("y = Reshape(x, flat)", "float[N,4] y", "output 'y' is neither"),
        ("y = ArgMax<axis=1, keepdims=0>(ids)", "int64[B] y", "output 'y' is neither"),
        ("n = Shape<start=1, end=2>(x) s = Squeeze(n, l0) y = Range(z, s, one)", "int64[S] y",
         "output 'y' is neither"),
        ("y = com.acme.F(x)", "float y", "F '.*': the operator may mix tokens: it has no rule"),
    ],
)  # fmt: skip
def test_outputs_that_cannot_be_computed_from_rows_are_named(
    nodes: str, output: str, reason: str
) -> None:
    text = f"""(float[B,S,4] x, int64[B,S] ids) => (float[B,4] ok, {output})
        <int64 z = {{0}}, int64 one = {{1}}, int64[1] l0 = {{0}}, int64[1] l1 = {{1}},
         int64[2] flat = {{-1, 4}}> {{ ok = Gather<axis=1>(x, z) {nodes} }}"""
    model = Model.from_proto(parse(text))
    before = model.to_proto()
    with pytest.raises(ModelError, match=reason):
        pack_rows(model)
    assert model.to_proto() == before


def test_a_constant_output_stays_one() -> None:
    text = """(float[B,S,4] x) => (float[B,4] y, float[4] c)
        <int64 z = {0}, float[4] w = {1,2,3,4}> {
        y = Gather<axis=1>(x, z) c = Neg(w) }"""
    assert packed(text).main.outputs[1].shape == (4,)


def test_a_model_that_mixes_no_tokens_is_refused() -> None:
    with pytest.raises(ModelError, match="mixes no tokens: its rows may hold several sequences"):
        packed("(float[B,S,4] x) => (float[B,S,4] y) { y = Relu(x) }")


def test_declared_types_of_whole_sequences_are_forgotten() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
        g (float[B,S,4] x) => (float[B,4] y)
        <int64 z = {0}, float[B,4] h, float[B,S,4] r, int64[2] n> {
            r = Relu(x) h = Gather<axis=1>(r, z) n = Shape(h) k = Reshape(h, n) y = Neg(k) }"""
    model = Model.from_proto(parse(text))
    pack_rows(model)
    declared = {value.name for value, _ in model.main.declarations if value}
    assert declared == {"r", "n"}


def test_a_default_is_no_packed_input() -> None:
    text = """(float[B,S,4] x, float[B,T] d) => (float[B,4] y) <int64 z = {0}, float[1,1] d = {1}> {
        e = ReduceSum<keepdims=0>(d) a = Add(x, e) y = Gather<axis=1>(a, z) }"""
    with pytest.raises(UsageError, match=r"'d' is float.B,T., and its first two dims are not"):
        packed(text)
