"""The walk along a graph: dims and their roles, sizes, and where nothing is known."""

import pytest

from tests.extensions.packing.relations import (
    edits,
    interpreted,
    of_nodes,
    relation,
    relation_of,
    state_of,
)
from tiered.extensions.packing.interpretation import PACKINGS, Interpretation
from tiered.extensions.packing.packed_values import (
    AbstractTensor,
    AxisRole,
    PackedSizes,
    PackingRefusal,
    Refused,
)
from tiered.graph import Node
from tiered.graph.core.types import Dim

SIZES = "s = Shape(x) b = Slice(s, l0, l1) n = Slice(s, l1, l2) "


def plain_state() -> Interpretation:
    return state_of("(float[B,S,4] x) => (float[B,S,4] y) { y = Relu(x) }")


@pytest.mark.parametrize(
    ("size", "is_mentioned"),
    [
        ("S", True), ("B", True), ("N", False), (7, False), (None, False), ("=1+S", True),
        ("=B*S", True), ("=2*SS", False), ("B2", False), ("=2*N", False), ("my.S", False),
    ],
)  # fmt: skip
def test_a_dim_mentions_the_sizes_of_batch_and_sequences(size: Dim, *, is_mentioned: bool) -> None:
    assert plain_state().mentions(size) == is_mentioned


def test_a_polynomial_mentions_what_its_terms_do() -> None:
    state = plain_state()
    dims = state.graph.model.dims
    assert state.mentions(dims.size("S"))
    assert not state.mentions(dims.size("N"))


ROLES = {
    "S": "T", "B": "B", "N": ".", 5: ".", 1: ".", None: ".",
}  # fmt: skip


@pytest.mark.parametrize("dim", ROLES)
def test_a_dim_has_the_role_of_its_size(dim: Dim) -> None:
    expected = {"T": AxisRole.TOKEN, "B": AxisRole.BATCH, ".": None}[ROLES[dim]]
    assert plain_state().role_of(dim) is expected


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("m = Mul(b, n) y = ConstantOfShape(m)", "F"),
        ("m = Mul(n, b) y = ConstantOfShape(m)", "F"),
        ("m = Mul(b, l2) y = ConstantOfShape(m)", "H"),
        ("m = Mul(n, l2) y = ConstantOfShape(m)",
         "no: it makes a dim 2*S of the sizes of batch and sequences"),
        ("m = Add(b, n) y = ConstantOfShape(m)",
         "no: it makes a dim B+S of the sizes of batch and sequences"),
        ("m = Mul(n, n) y = ConstantOfShape(m)",
         "no: it makes a dim S*S of the sizes of batch and sequences"),
    ],
)  # fmt: skip
def test_a_computed_dim_has_the_role_of_its_size(nodes: str, expected: str) -> None:
    assert relation_of(SIZES + nodes) == expected


def test_the_parts_of_heads_are_a_fixed_number() -> None:
    state = interpreted(of_nodes(SIZES + "m = Mul(b, l2) y = ConstantOfShape(m)"))
    dim = state.graph.values["y"].dim(0)
    assert state.parts_of(dim) == 2
    assert state.parts_of("B") == 1
    assert state.parts_of("S") is None
    assert state.parts_of(4) is None
    assert state.parts_of(None) is None


def test_the_axis_of_the_batch() -> None:
    state = interpreted(of_nodes(SIZES + "m = Mul(b, l2) y = ConstantOfShape(m)"))
    heads = state.graph.values["y"]
    assert state.batch_axis(None, (None, AxisRole.TOKEN)) == (-1, 1)
    assert state.batch_axis(None, (None, AxisRole.BATCH)) == (1, 1)
    assert state.batch_axis(heads, (AxisRole.HEADS,)) == (0, 2)
    with pytest.raises(PackingRefusal, match="several axes have the batch"):
        state.batch_axis(heads, (AxisRole.BATCH, AxisRole.HEADS))
    with pytest.raises(PackingRefusal, match="the number of heads beside the batch is unknown"):
        state.batch_axis(None, (AxisRole.HEADS,))


# --- facts ----------------------------------------------------------------------------------------


def test_a_value_without_an_entry_is_constant() -> None:
    state = state_of("(float[B,S,4] x, float[2,3] z, float r) => (float[B,S,4] y) { y = Relu(x) }")
    assert state.fact(state.graph.values["z"]) == AbstractTensor((None, None))
    assert state.fact(state.graph.values["r"]) == AbstractTensor(())


def test_a_value_of_unknown_rank_is_refused() -> None:
    text = "(float[B,S,4] x) => (float out) { z = com.acme.F(x)  out = com.acme.G(z) }"
    state = state_of(text)
    with pytest.raises(PackingRefusal, match="the rank of 'z' is unknown"):
        state.fact(state.graph.values["z"])


def test_sizes_and_row_numbers_are_no_tensors() -> None:
    nodes = SIZES + "i = Neg(b) b0 = Squeeze(b, l0) r = Range(zero, b0, one) j = Neg(r)"
    state = interpreted(of_nodes(nodes))
    assert relation(state, "i") == "sizes"
    assert relation(state, "j") == "no: it computes with row numbers"
    assert relation_of(SIZES + "f = Cast<to=1>(b) y = Mul(x, f)") == (
        "no: it computes with a size of the batch or of sequences"
    )


def test_what_is_not_known_stays_so_with_the_first_reason() -> None:
    nodes = "k = ReduceMax(x, l1) a = Relu(k) b, c = Split<num_outputs=2, axis=2>(a) y = Add(b, c)"
    state = interpreted(of_nodes(nodes))
    first = state.facts[state.graph.values["k"]]
    assert isinstance(first, Refused)
    for name in ("a", "b", "c", "y"):
        assert state.facts[state.graph.values[name]] == first
    assert [value.name for value in first.node.outputs if value] == ["k"]


def test_edits_of_a_node_that_is_refused_are_none() -> None:
    nodes = """s = Shape(x) n = Gather(s, one) at = Range(zero, n, one) u = Unsqueeze(at, l1)
        f = Cast<to=1>(u) q = Where(c, x, f) y = Concat<axis=1>(q, q)"""
    assert edits(interpreted(of_nodes(nodes, "float[B,S,4] x, bool[1,1,1] c"))) == ["Position"]

    def rule(state: Interpretation, node: Node) -> AbstractTensor:
        if node.output.name == "q":
            PACKINGS.rules["", "Where"](state, node)
            raise PackingRefusal("it rains")
        found = PACKINGS.of(node)
        assert found is not None
        made = found(state, node)
        return made if isinstance(made, AbstractTensor) else made[0]

    state = state_of(of_nodes(nodes, "float[B,S,4] x, bool[1,1,1] c"))
    state.run(lambda node: rule if PACKINGS.of(node) else None)
    assert relation(state, "q") == "no: it rains"
    assert edits(state) == []


SHAPES = {
    "y = Shape(x)": "sizes",
    "y = Size(x)": "sizes",
    "y = Shape<start=2>(x)": ".",
    "y = Shape<start=1>(x)": "sizes",
    "y = Shape(w)": ".",
    "t = Gather<axis=1>(x, zero) y = Shape(t)": "pooled sizes",
    "t = Gather<axis=1>(x, zero) y = Shape<start=1>(t)": ".",
    SIZES + "y = Mul(b, n)": "sizes",
    SIZES + "y = Sub(n, n)": ".",
    SIZES + "t = Gather<axis=1>(x, zero) u = Shape(t) c = Slice(u, l0, l1) y = Add(c, b)": "no: it "
    "joins sizes of rows and of sequences",
    SIZES + "y = Add(b, z)": "no: it computes with a size of the batch or of sequences",
}


@pytest.mark.parametrize("nodes", SHAPES)
def test_shapes_and_arithmetic_with_them(nodes: str) -> None:
    assert relation_of(nodes, "float[B,S,4] x, int64[1] z") == SHAPES[nodes]


def test_sizes_of_rows_and_of_sequences_are_not_the_same() -> None:
    assert PackedSizes(True) != PackedSizes(False)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("y = com.acme.F(x)", "no: the operator may mix tokens: it has no rule"),
        ("y = RandomNormalLike(w)", "no: the operator may mix tokens: it has no rule"),
        ("y = RandomNormal<shape=[2]>()", "no: the operator may mix tokens: it has no rule"),
        ("q = Det(ww) y = Neg(q)", ""),
        ("y = Constant<value_ints=[1,2]>()", "."),
        ("y = Constant<value_int=1>()", ""),
    ],
)
def test_an_operator_without_a_rule_has_constant_operands(nodes: str, expected: str) -> None:
    assert relation_of(nodes) == expected


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ("[N,4]", "no: a dim of its result, S, has no known relation to the tokens"),
        ("[16]", "no: a dim of its result, S, has no known relation to the tokens"),
    ],
)
def test_a_constant_of_a_shape_that_depends_on_the_sequence_is_none(
    dims: str, expected: str
) -> None:
    nodes = SIZES + "to = Concat<axis=0>(n, m1) y = Reshape(z, to)"
    assert relation_of(nodes, f"float[B,S,4] x, float{dims} z") == expected


def test_an_axis_of_tokens_that_lost_its_role_is_seen_by_its_size() -> None:
    def rule(state: Interpretation, node: Node) -> AbstractTensor:
        return AbstractTensor((AxisRole.BATCH, None, None))

    state = plain_state()
    state.run(lambda node: rule)
    assert relation(state) == "no: a dim of its result, S, has no known relation to the tokens"
    state = plain_state()
    state.ones.add("S")
    state.run(lambda node: rule)
    assert relation(state) == "B.."


def test_a_relation_of_another_rank_is_refused() -> None:
    def rule(state: Interpretation, node: Node) -> AbstractTensor:
        return AbstractTensor((AxisRole.BATCH, AxisRole.TOKEN))

    state = plain_state()
    state.run(lambda node: rule)
    assert relation(state) == "no: the rank of 'y' is unknown"


def test_captured_values_count_as_operands() -> None:
    nodes = """y = If(c) <then_branch = t () => (float[B,S,4] a) { a = Relu(x) },
                          else_branch = e () => (float[B,S,4] d) { d = Neg(x) }>"""
    found = relation_of(nodes, "float[B,S,4] x, bool c")
    assert found == "no: the operator may mix tokens: it has no rule"


SIZE = "no: it computes with a size of the batch or of sequences"
CORNERS = {
    'y = Clip(x, "", f1)': "BT.",
    "y = Clip(x, f0, m)": "BT.",
    "y = Clip(x, f0, x)": "no: its second operand depends on the sequence",
    "s = Shape(x) n = Gather(s, one) y = Clip(n, n, n)": "sizes",
    "s = Shape(x) n = Gather(s, one) y = Clip(x, n)": "no: its second operand depends on the "
    "sequence",
    "sz = Size(x) f = Cast<to=1>(sz) y = Clip(x, f0, f)": SIZE,
    "a = com.acme.F(w) y = Shape(a)": "sizes",
    "k = ReduceMax(x, l1) y = Shape(k)": "sizes",
    "s = Shape(x) y, q, r = Split<num_outputs=3>(s)": SIZE,
    "s = Shape(x) y = com.acme.F(s)": "no: the operator may mix tokens: it has no rule",
    '"", y = com.acme.F(w)': "no: the operator may mix tokens: it has no rule",
    "y = com.acme.F(w)": "no: the operator may mix tokens: it has no rule",
    '"", y = Unique(w)': "no: the rank of 'y' is unknown",
    "q = Unique(w) y = Neg(q)": ".",
    "y = SequenceConstruct(w)": "no: the rank of 'y' is unknown",
    "y = Det(ww)": "",
    "y = NonZero(w)": "..",
    "a = NonZero(w) a1 = Squeeze(a, l0) y = Gather<axis=2>(x, a1)": "no: a dim of its result, "
    "unk__.1, has no known relation to the tokens",
    "y = com.microsoft.FastGelu(x)": "BT.",
    "y = com.microsoft.BiasGelu(x, w)": "BT.",
    "y = Shape(unknown)": ".",
    "s = Shape(unknown) y = Add(s, s)": ".",
    "t = Gather<axis=1>(x, zero) s = Shape(t) y = Neg(s)": "pooled sizes",
}
"""Nodes, and the relation of y."""


def test_absent_operands_and_unknown_types() -> None:
    for nodes, expected in CORNERS.items():
        inputs = "float[B,S,4] x, float m, int64[N] unknown"
        assert relation_of(nodes, inputs) == expected, nodes
