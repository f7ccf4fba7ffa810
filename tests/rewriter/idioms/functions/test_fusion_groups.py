"""The groups of nodes that TVM's FuseOps would make one kernel of."""

import pytest

from tests.small import made_by, named, parsed
from tiered import DataType
from tiered.graph.core.types import Shape, TensorType
from tiered.rewriter.idioms.functions.fusion_groups import OpPatternKind, fusion_groups, kind_of
from tiered.rewriter.idioms.functions.outlining import KEPT


def groups(text: str, *, level: int = 2, max_depth: int = 256) -> list[str]:
    """Return the operators of each group."""
    found = fusion_groups(parsed(text).main, max_depth=max_depth, level=level)
    return [" ".join(node.op_type for node in nodes) for nodes in found]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("Relu(x)", OpPatternKind.ELEMENTWISE),
        ("Add(x, x)", OpPatternKind.BROADCAST),
        ("Transpose(x)", OpPatternKind.INJECTIVE),
        ("ReduceSum(x)", OpPatternKind.REDUCTION),
        ("MatMul(x, x)", OpPatternKind.OUT_ELEMENTWISE_FUSABLE),
        ("Softmax(x)", OpPatternKind.OPAQUE),
        ("com.microsoft.Relu(x)", OpPatternKind.OPAQUE),
        ("RandomNormalLike(x)", OpPatternKind.OPAQUE),
        ("Dropout(x)", OpPatternKind.OPAQUE),
        ("QuantizeLinear(x, s)", OpPatternKind.OPAQUE),
    ],
)
def test_the_kind_of_an_operator(call: str, kind: OpPatternKind) -> None:
    model = parsed(f"(float[2,2] x, float s) => (float[2,2] z) {{ y = {call} z = Abs(x) }}")
    assert kind_of(made_by(model, "y")) is kind


def test_a_node_of_several_outputs_is_opaque_and_absent_ones_do_not_count() -> None:
    text = """(float[1,1,4] x) => (float[1,1,3] y, int64[1,1,3] i) { y, i =
        MaxPool<kernel_shape=[2]>(x) }"""
    assert kind_of(made_by(parsed(text), "y")) is OpPatternKind.OPAQUE
    model = parsed(text.replace(", int64[1,1,3] i", "").replace("y, i =", "y ="))
    assert kind_of(made_by(model, "y")) is OpPatternKind.OUT_ELEMENTWISE_FUSABLE


def test_a_conv_takes_in_what_follows_elementwise() -> None:
    text = """(float[1,2,8,8] x, float[2,2,3,3] w, float[1,2,6,6] s) => (float[1,2,6,6] y) { e =
        Exp(x) c = Conv(e, w) d = Add(c, s) y = Relu(d) }"""
    assert groups(text) == ["Conv Add Relu"]


def test_two_convolutions_are_never_one_group() -> None:
    text = """(float[1,2,8,8] x, float[2,2,3,3] w) => (float[1,2,4,4] y) { c = Conv(x, w) d =
        Relu(c) e = Conv(d, w) y = Relu(e) }"""
    assert groups(text) == ["Conv Relu", "Conv Relu"]


def test_a_broadcast_that_changes_the_shape_ends_a_convolution() -> None:
    text = """(float[1,2,8,8] x, float[2,2,3,3] w, float[4,2,6,6] s) => (float[4,2,6,6] y) { c =
        Conv(x, w) d = Add(c, s) y = Relu(d) }"""
    assert groups(text) == ["Add Relu"]


def test_a_diamond_meets_at_its_post_dominator() -> None:
    text = "(float[2] x) => (float[2] y) { a = Neg(x) b = Exp(a) c = Abs(a) y = Add(b, c) }"
    assert groups(text) == ["Neg Exp Abs Add"]


def test_a_path_through_an_opaque_operator_is_not_entered_again() -> None:
    text = """(float[2,2] x) => (float[2,2] y) { a = Neg(x) s = Softmax(a) b = Exp(a) t = Add(s,
        b) y = Relu(t) }"""
    assert groups(text) == ["Exp Add Relu"]


def test_a_reduction_ends_a_group_at_level_2() -> None:
    text = """(float[2,3] x) => (float[2,1] y) <int64[1] k = {1}> { a = Neg(x) b = Exp(a) s =
        ReduceSum(b, k) y = Sqrt(s) }"""
    assert groups(text) == ["Neg Exp ReduceSum"]
    assert groups(text, level=1) == ["Neg Exp"]


def test_data_movement_is_fused_in_the_second_phase() -> None:
    text = """(float[2,3] x) => (float[3,2,1] y) <int64[1] k = {2}> { a = Neg(x) t = Transpose(a)
        y = Unsqueeze(t, k) }"""
    assert groups(text) == ["Neg Transpose Unsqueeze"]


def test_a_graph_output_and_a_capture_end_a_group() -> None:
    text = """(float[2] x, bool c) => (float[2] a, float[2] y) { a = Neg(x) b = Exp(a) d = Abs(b)
        e = Relu(d) y = If(c) <then_branch = t () => (float[2] p) { p = Add(d, e) },
        else_branch = s () => (float[2] q) { q0 = Neg(e) q = Exp(q0) }> }"""
    assert groups(text) == ["Exp Abs"]


def test_one_node_is_no_group() -> None:
    assert groups("(float[2] x) => (float[2] y) { y = Relu(x) }") == []
    assert groups("(float[2] x) => (float[2] y) { a = Neg(x) y = Exp(a) }", level=0) == []


@pytest.mark.parametrize(
    ("max_depth", "expected"),
    [(1, []), (2, ["Neg Exp", "Abs Relu"]), (3, ["Neg Exp Abs", "Relu Sqrt"])],
)
def test_a_group_has_at_most_so_many_nodes(max_depth: int, expected: list[str]) -> None:
    text = """(float[2] x) => (float[2] y) {
        a = Neg(x)  b = Exp(a)  c = Abs(b)  d = Relu(c)  y = Sqrt(d) }"""
    assert groups(text, max_depth=max_depth) == expected


def test_movement_waits_for_the_convolutions() -> None:
    text = """(float[1,2,8,8] x, float[2,2,3,3] w) => (float[1,6,6,2] y) {
        c = Conv(x, w)  r = Relu(c)  y = Transpose<perm=[0,2,3,1]>(r) }"""
    assert groups(text) == ["Conv Relu"]


def test_movement_takes_what_is_elementwise_before_and_behind_it() -> None:
    text = "(float[2,3] x) => (float[3,2] y) { a = Neg(x) t = Transpose(a) y = Exp(t) }"
    assert groups(text) == ["Neg Transpose Exp"]


def test_a_broadcast_to_a_dynamic_shape_is_none_of_an_equal_one() -> None:
    text = """(float[1,2,8,8] x, float[2,2,3,3] w, {}[1,2,6,6] s) => (float[1,2,6,6] y) {{
        c = Conv(x, w)  y = Add(c, s) }}"""
    assert groups(text.format("float")) == ["Conv Add"]
    assert groups(text.format("float").replace("[1,2,6,6] s", "[?,2,6,6] s")) == []


def test_the_end_of_two_ways_of_unequal_length() -> None:
    text = """(float[2] x) => (float[2] y) {
        a = Neg(x)  b = Exp(a)  c = Abs(b)  d = Sqrt(c)  e = Add(a, d)  y = Relu(e) }"""
    assert groups(text) == ["Neg Exp Abs Sqrt Add Relu"]


def test_a_value_without_readers_and_one_of_two_ends_lead_nowhere() -> None:
    text = "(float[2] x) => (float[2] y, float[2] z) { a = Neg(x) y = Exp(a) z = Abs(a) }"
    assert groups(text) == []
    assert groups("(float[2] x) => (float[2] y) { a = Relu(x) b = Neg(a) y = Sin(x) }") == [
        "Relu Neg"
    ]


def test_a_reduction_is_the_end_of_a_group_not_its_begin() -> None:
    text = "(float[2,3] x) => (float[2,1] y) { s = ReduceSum(x)  r = Relu(s)  y = Exp(r) }"
    assert groups(text) == ["Relu Exp"]


def test_a_node_that_is_to_be_kept_is_in_no_group() -> None:
    model = parsed(
        "(float[2] x) => (float[2] y) { a = Neg(x)  b = Exp(a)  c = Abs(b)  y = Relu(c) }"
    )
    model.main.set_metadata(made_by(model, "b"), {KEPT: "1"})
    found = fusion_groups(model.main, max_depth=9, level=2)
    assert [[node.op_type for node in nodes] for nodes in found] == [["Abs", "Relu"]]


def test_nodes_of_two_marks_are_in_two_groups() -> None:
    model = parsed(
        "(float[2] x) => (float[2] y) { a = Neg(x)  b = Exp(a)  c = Abs(b)  y = Relu(c) }"
    )
    for name in "ab":
        model.main.set_metadata(made_by(model, name), {"tiered.compiler": "npu"})
    found = fusion_groups(model.main, max_depth=9, level=2)
    assert [[node.op_type for node in nodes] for nodes in found] == [
        ["Neg", "Exp"],
        ["Abs", "Relu"],
    ]


CONV = "c = Conv(x, w)"
IMAGES = "(float[1,2,8,8] x, float[2,2,3,3] w, float[1,6,6,2] u, float[1,2,6,6] v)"
GROUPS = {
    # A reduction of an equal shape is one.
    """(float[2,1] x) => (float[2,1] y) <int64[1] k = {1}> { a = Neg(x)
        y = ReduceSum(a, k) }""": (1, []),
    # Where three ways end, there is no post-dominator.
    """(float[2] x) => (float[2] y, float[2] z, float[2] v) { a = Neg(x)  y = Exp(a)  z = Abs(a)
        v = Relu(a) }""": (2, []),
    # Movement is left outside of a convolution, also where it comes first.
    f"""{IMAGES} => (float[1,2,6,6] y) {{ t = Transpose<perm=[0,3,1,2]>(u) {CONV}
        a = Add(c, t)  y = Relu(a) }}""": (2, ["Conv Add Relu"]),
    # A way through the group of a convolution is no path.
    f"""{IMAGES} => (float[1,2,6,6] y) {{ {CONV} n = Neg(v)  e = Exp(n)  a = Add(e, c)
        b = Abs(n)  y = Add(a, b) }}""": (2, ["Conv Exp Add Abs Add"]),
    """(float[2,3] x) => (float[3,2] y) { n = Neg(x)  t = Transpose(n)  u = Transpose(n)
        y = Add(t, u) }""": (2, ["Neg Transpose Transpose Add"]),
    """(float[] x, float[2,2,3,3] w, float[] s) => (float[] y) { c = Conv(x, w)
        y = Add(c, s) }""": (2, []),
    "(float[2] x) => (float[2] y) { a, , b = own.F(x)  c = Neg(b)  y = Exp(c) }": (2, ["Neg Exp"]),
}  # fmt: skip


def test_which_nodes_are_one_group() -> None:
    for text, (level, expected) in GROUPS.items():
        assert groups(text, level=level) == expected, text


def test_a_broadcast_of_unknown_dims_is_none_of_an_equal_shape() -> None:
    model = parsed(f"{IMAGES} => (float[?,2,6,6] z) {{ {CONV}  y = Add(c, v)  z = Softmax(y) }}")
    shapes: list[tuple[Shape, int]] = [((None, 2, 6, 6), 0), ((1, 2, 6, 6), 1)]
    for shape, count in shapes:
        for name in "cy":
            model.main.set_type(named(model, name), TensorType(DataType.FLOAT, shape))
        assert len(fusion_groups(model.main, max_depth=9, level=2)) == count, shape


def test_groups_are_convex() -> None:
    # Through the Softmax, the Add depends on the Neg outside of the group.
    text = """(float[2,2] x) => (float[2,2] y) {
        a = Neg(x)  s = Softmax(a)  y = Add(a, s) }"""
    assert groups(text) == []
