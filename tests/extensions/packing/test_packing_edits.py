"""The edits of packing: the inputs that they make, the nodes that they write, once each."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.extensions.gradients.differences import Reference
from tests.recorded import assert_values
from tests.written import Writer
from tiered import Model, ModelError
from tiered.extensions.packing import pack_sequences
from tiered.extensions.packing.transform import pack_rows
from tiered.testing import parse

Arrays = dict[str, Any]

PLACES = """sh = Shape(x) n = Gather(sh, one) at = Range(zero, n, one)
    rowp = Unsqueeze(at, l1) colp = Unsqueeze(at, l0) away = Sub(rowp, colp)
    bias = Cast<to=1>(away) """
SCORES = "k = Transpose<perm=[0,2,1]>(x) s = MatMul(x, k) "
END = "y = MatMul(p, x)"
CONSTANTS = (
    """int64 zero = {0}, int64 one = {1}, int64[1] l0 = {0}, int64[1] l1 = {1},
    int64[1] l2 = {2}, int64[2] l12 = {1,2}, float[9,4] table = {"""
    + ",".join(str(number % 7) for number in range(36))
    + "}"
)


def packed(nodes: str, outputs: str = "float[B,S,4] y", inputs: str = "float[B,S,4] x") -> Model:
    model = Model.from_proto(parse(f"({inputs}) => ({outputs}) <{CONSTANTS}> {{ {nodes} }}"))
    pack_rows(model)
    return model


def compare(nodes: str, outputs: str = "float[B,S,4] y", *, row: int = 4) -> Model:
    """Check that each of four sequences in rows has what it has alone; return the packed model."""
    model = packed(nodes, outputs)
    single = Reference(parse(f"(float[B,S,4] x) => ({outputs}) <{CONSTANTS}> {{ {nodes} }}"))
    rng = np.random.default_rng(0)
    sequences = [{"x": rng.normal(size=(length, 4)).astype(np.float32)} for length in (3, 1, 2, 2)]
    batch = pack_sequences(sequences, row)
    feeds = batch.feeds([value.name for value in model.main.inputs])
    found = Reference(model.to_proto())(feeds)["y"]
    rows = found if "S" not in outputs else batch.unpack(found)
    for arrays, result in zip(sequences, rows, strict=True):
        expected = single({"x": arrays["x"][None]})["y"][0]
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    return model


def operators(model: Model) -> Counter[str]:
    return Counter(node.op_type for node in model.main.nodes)


def inputs(model: Model) -> list[str]:
    return [value.name for value in model.main.inputs][1:]


def test_what_no_output_needs_is_gone() -> None:
    nodes = "t = Gather<axis=1>(x, zero) u = Unsqueeze(t, l1) dead = Add(x, u) y = Tanh(t)"
    assert operators(compare(nodes, "float[B,4] y")) == {"GatherND": 1, "Tanh": 1}


# --- positions ------------------------------------------------------------------------------------


def test_positions_of_one_axis_are_gathered_by_row() -> None:
    model = compare(f"{PLACES} e = Gather(table, at) q = Add(x, e) t = ReduceSum(q, l1) "
                    "y = Squeeze(t, l1)", "float[B,4] y")  # fmt: skip
    assert "position_ids" in inputs(model)


def test_one_operand_of_positions_is_gathered_once_for_all_users() -> None:
    model = compare(f"{PLACES} e = Gather(table, at) q = Add(x, e) r = Mul(e, q) y = Sub(r, e)")
    assert operators(model)["Gather"] == 3  # of the size, of the table, by the positions


def test_pairs_of_positions_are_gathered_by_both() -> None:
    model = compare(f"{PLACES} {SCORES} b = Add(s, bias) p = Softmax(b) {END}")
    assert inputs(model) == ["position_ids", "sequence_ids"]


def test_pairs_of_positions_with_an_axis_of_rows_in_front() -> None:
    compare(f"{PLACES} {SCORES} w = Unsqueeze(bias, l0) b = Add(s, w) p = Softmax(b) {END}")


def test_positions_in_an_axis_after_others() -> None:
    compare(
        f"{PLACES} e = Gather(table, at) et = Transpose<perm=[1,0]>(e) "
        "xt = Transpose<perm=[0,2,1]>(x) q = Add(xt, et) r = Transpose<perm=[0,2,1]>(q) "
        "t = ReduceSum(r, l1) y = Squeeze(t, l1)",
        "float[B,4] y",
    )


def test_new_axes_between_the_rows_and_positions() -> None:
    compare(
        f"{PLACES} x4 = Unsqueeze(x, l1) e = Gather(table, at) q = Add(x4, e) r = Squeeze(q, l1) "
        "t = ReduceSum(r, l1) y = Squeeze(t, l1)",
        "float[B,4] y",
    )


def test_a_term_of_an_einsum_gets_the_rows() -> None:
    model = compare(
        f'{PLACES} e = Gather(table, at) q = Einsum<equation="bik,ik->bik">(x, e) '
        "t = ReduceSum(q, l1) y = Squeeze(t, l1)",
        "float[B,4] y",
    )
    (node,) = [node for node in model.main.nodes if node.op_type == "Einsum"]
    assert node.attr("equation") == "bik,bik->bik"


def test_two_terms_of_an_einsum_get_the_rows() -> None:
    model = compare(
        f'{PLACES} e = Gather(table, at) q = Einsum<equation="ik,bik,ik->bik">(e, x, e) '
        "t = ReduceSum(q, l1) y = Squeeze(t, l1)",
        "float[B,4] y",
    )
    (node,) = [node for node in model.main.nodes if node.op_type == "Einsum"]
    assert node.attr("equation") == "bik,bik,bik->bik"


# --- masks ----------------------------------------------------------------------------------------


def test_scores_without_a_mask_get_one() -> None:
    model = compare(f"{SCORES} p = Softmax(s) {END}")
    assert operators(model) == Counter(
        ["Transpose", "MatMul", "Softmax", "MatMul", "Unsqueeze", "Unsqueeze", "Equal", "Where"]
    )
    assert inputs(model) == ["sequence_ids"]


def test_a_mask_of_the_model_is_masked_instead_of_all_scores() -> None:
    nodes = """split = Constant<value_ints=[0,0,2,2]>() h = Reshape(x, split)
        q = Transpose<perm=[0,2,1,3]>(h) k = Transpose<perm=[0,2,3,1]>(h) s = MatMul(q, k)
        f = ReduceSum<keepdims=0>(x, l2) l13 = Constant<value_ints=[1,3]>()
        i = Unsqueeze(f, l13) j = Unsqueeze(f, l12) m = Mul(i, j) b = Add(s, m) p = Softmax(b)
        o = MatMul(p, q) t = Transpose<perm=[0,2,1,3]>(o) sh = Shape(x) y = Reshape(t, sh)"""
    model = compare(nodes)
    (where,) = [node for node in model.main.nodes if node.op_type == "Where"]
    assert where.inputs[1] is not None
    assert where.inputs[1].name == "m"


@pytest.mark.parametrize(
    ("nodes", "masked"),
    [
        ("b = Mul(s, m) p = Softmax(b)", "b"),
        ("b = Add(s, m) p = Softmax(b)", "m"),
        ("b = Add(m, s) p = Softmax(b)", "m"),
        ("b = Add(s, keys) p = Softmax(b)", "b"),
        ("b = Add(s, wide) p = Softmax(b)", "b"),
    ],
)
def test_a_mask_is_a_summand_of_one_number_for_each_pair(nodes: str, masked: str) -> None:
    heads = """split = Constant<value_ints=[0,0,2,2]>() h = Reshape(x, split)
        q = Transpose<perm=[0,2,1,3]>(h) k = Transpose<perm=[0,2,3,1]>(h) s = MatMul(q, k)
        f = ReduceSum<keepdims=0>(x, l2) l13 = Constant<value_ints=[1,3]>()
        i = Unsqueeze(f, l13) keys = Unsqueeze(f, l12) m = Mul(i, keys) wide = Mul(s, m) """
    end = """ o = MatMul(p, q) t = Transpose<perm=[0,2,1,3]>(o) sh = Shape(x) y = Reshape(t, sh)"""
    model = compare(heads + nodes + end)
    (where,) = [node for node in model.main.nodes if node.op_type == "Where"]
    assert where.given(1).name == masked


def test_heads_beside_the_batch_get_a_mask_for_each() -> None:
    nodes = """split = Constant<value_ints=[0,0,2,2]>() h = Reshape(x, split) sh = Shape(x)
        q = Transpose<perm=[0,2,1,3]>(h) n = Slice(sh, l1, l2) m1 = Constant<value_ints=[-1]>()
        to = Concat<axis=0>(m1, n, l2) q3 = Reshape(q, to) k = Transpose<perm=[0,2,1]>(q3)
        s = MatMul(q3, k) p = Softmax(s) o = MatMul(p, q3) b = Slice(sh, l0, l1)
        back = Concat<axis=0>(b, l2, n, l2) o4 = Reshape(o, back)
        t = Transpose<perm=[0,2,1,3]>(o4) y = Reshape(t, sh)"""
    compare(nodes)


def test_one_mask_of_two_attentions_is_made_once() -> None:
    nodes = f"""{SCORES} p = Softmax(s) a = MatMul(p, x)
        k2 = Transpose<perm=[0,2,1]>(a) s2 = MatMul(a, k2) p2 = Softmax(s2) y = MatMul(p2, a)"""
    model = compare(nodes)
    assert operators(model)["Equal"] == 1
    assert operators(model)["Where"] == 2


@pytest.mark.parametrize("axis", [1, -2])
def test_keys_may_be_before_the_queries(axis: int) -> None:
    compare(f"{SCORES} p = Softmax<axis={axis}>(s) t = Transpose<perm=[0,2,1]>(p) y = MatMul(t, x)")


# --- sums, and whole sequences --------------------------------------------------------------------


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("pooled", ["", "r"])
def test_running_sums_start_again(exclusive: int, pooled: str) -> None:
    nodes = f"""i = Cast<to=7>(x) r = ReduceSum<keepdims=0>(i, l2)
        c = CumSum<exclusive={exclusive}>({pooled or "i"}, one) y = Cast<to=1>(c)"""
    model = compare(nodes, "float[B,S] y" if pooled else "float[B,S,4] y")
    assert inputs(model) == ["position_ids"]


POOLS = {
    "y = Gather<axis=1>(x, zero)": "float[B,4] y",
    "t = Gather<axis=1>(x, l0) y = Squeeze(t, l1)": "float[B,4] y",
    "t = Slice(x, l0, l1, l1) y = Squeeze(t, l1)": "float[B,4] y",
    "t = Transpose<perm=[0,2,1]>(x) y = Gather<axis=2>(t, zero)": "float[B,4] y",
    "y = ReduceMean<keepdims=0>(x, l1)": "float[B,4] y",
    "t = ReduceSum(x, l1) y = Squeeze(t, l1)": "float[B,4] y",
    "t = ReduceMax<keepdims=0>(x, l2) y = ReduceSum<keepdims=0>(t, l1)": "float[B] y",
    "t = ReduceMax<keepdims=0>(x, l2) y = Gather<axis=1>(t, zero)": "float[B] y",
    "u = Unsqueeze(x, l2) t = ReduceMean<keepdims=0>(u, l1) y = Squeeze(t, l1)": "float[B,4] y",
}
"""What is taken of whole sequences, and the output."""


@pytest.mark.parametrize("nodes", POOLS)
def test_values_of_whole_sequences(nodes: str) -> None:
    compare(nodes, POOLS[nodes])


def test_the_members_of_sequences_are_found_once() -> None:
    nodes = "a = ReduceMean<keepdims=0>(x, l1) b = ReduceSum<keepdims=0>(x, l1) y = Add(a, b)"
    model = compare(nodes, "float[B,4] y")
    assert operators(model)["Equal"] == 1
    assert operators(model)["ReduceSum"] == 3  # two of the tokens, one of their number
    assert inputs(model) == ["sequence_starts", "sequence_ids"]


@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMean"])
def test_an_infinity_stays_in_the_sum_of_its_sequence(operator: str) -> None:
    model = packed(f"y = {operator}<keepdims=0>(x, l1)", "float[B,4] y")
    sequences = [{"x": np.full((length, 4), length, np.float32)} for length in (2, 1, 2)]
    sequences[1]["x"][0, 0] = np.inf
    batch = pack_sequences(sequences, 3)
    found = Reference(model.to_proto())(batch.inputs)["y"]
    own = [4, 1, 4] if operator == "ReduceSum" else [2, 1, 2]
    np.testing.assert_array_equal(found[:, 1:], np.repeat(own, 3).reshape(3, 3))
    np.testing.assert_array_equal(found[:, 0], [own[0], np.inf, own[2]])


@pytest.mark.parametrize("last", [0, 1])
def test_the_token_with_the_largest_number_of_its_sequence(last: int) -> None:
    nodes = f"""i = Cast<to=7>(x) ids = ReduceMax<keepdims=0>(i, l2)
        e = ArgMax<axis=1, keepdims=0, select_last_index={last}>(ids)
        sh = Shape(x) b = Gather(sh, zero) rows = Range(zero, b, one)
        r = Unsqueeze(rows, l1) c = Unsqueeze(e, l1) at = Concat<axis=-1>(r, c)
        y = GatherND(x, at)"""
    compare(nodes, "float[B,4] y")


@pytest.mark.parametrize("name", ["position_ids", "sequence_ids", "sequence_starts"])
def test_a_name_that_the_model_has_is_an_error(name: str) -> None:
    nodes = f"""{PLACES} {SCORES} b = Add(s, bias) p = Softmax(b) a = MatMul(p, x)
        t = Gather<axis=1>(a, zero) o = Add(t, {name}) y = Relu(o)"""
    with pytest.raises(ModelError, match=f"has a tensor '{name}', which is the name of an input"):
        packed(nodes, "float[B,4] y", f"float[B,S,4] x, float[4] {name}")


HEADS = """split = Constant<value_ints=[0,0,2,2]>() h = Reshape(x, split)
    q = Transpose<perm=[0,2,1,3]>(h) k = Transpose<perm=[0,2,3,1]>(h) s = MatMul(q, k)
    f = ReduceSum<keepdims=0>(x, l2) l13 = Constant<value_ints=[1,3]>()
    i = Unsqueeze(f, l13) keys = Unsqueeze(f, l12) m = Mul(i, keys) wide = Mul(s, m) """
MERGED = """ o = MatMul(p, q) t = Transpose<perm=[0,2,1,3]>(o) sh = Shape(x) y = Reshape(t, sh)"""
BESIDE = """split = Constant<value_ints=[0,0,2,2]>() h = Reshape(x, split) sh = Shape(x)
    q = Transpose<perm=[0,2,1,3]>(h) n = Slice(sh, l1, l2) m1 = Constant<value_ints=[-1]>()
    to = Concat<axis=0>(m1, n, l2) q3 = Reshape(q, to) k = Transpose<perm=[0,2,1]>(q3)
    s = MatMul(q3, k) """
APART = """ o = MatMul(p, q3) b = Slice(sh, l0, l1)
    back = Concat<axis=0>(b, l2, n, l2) o4 = Reshape(o, back)
    t = Transpose<perm=[0,2,1,3]>(o4) y = Reshape(t, sh)"""
POOL = " t = ReduceSum(q, l1) y = Squeeze(t, l1)"
LARGEST = """ sh = Shape(x) b = Gather(sh, zero) rows = Range(zero, b, one)
    r = Unsqueeze(rows, l1) c = Unsqueeze(e, l1) at = Concat<axis=-1>(r, c)
    y = GatherND(x, at)"""


def shown(nodes: str, outputs: str = "float[B,S,4] y") -> None:
    """Print the inputs of a packed model, and its output as an expression."""
    model = packed(nodes, outputs)
    print(", ".join(f"{value.type} {value.name}" for value in model.main.inputs))
    print(Writer()(model.main.outputs[0]))


def test_packed_models_are_as_they_are_written_down() -> None:
    texts = ("PLACES", "SCORES", "END", "HEADS", "MERGED", "BESIDE", "APART", "POOL", "LARGEST")
    names: dict[str, Any] = {name: globals()[name] for name in texts}
    assert_values(__file__, {**names, "shown": shown})
