import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, UsageError, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_ops"
HEADER = '<ir_version: 10, opset_import: ["" : 21, "tiered.fused" : 1]> '


def groups(text: str, *, level: int = 2, max_depth: int = 256) -> list[str]:
    """Return the operators of each function that the pass makes of a model."""
    made = assert_undone(PASS, text, level=level, max_depth=max_depth)
    return [" ".join(node.op_type for node in function.node) for function in made.functions]


def test_a_chain_of_elementwise_operators_is_one_group() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { a = Neg(x) b = Exp(a) y = Relu(b) }",
        HEADER
        + "g (float[2] x) => (float[2] y) { y = tiered.fused.fused_Neg_Exp_Relu(x) }"
        ' <domain: "tiered.fused", opset_import: ["" : 21]> fused_Neg_Exp_Relu (x) => (y) { a = Neg(x) b = Exp(a) y = Relu(b) }',
    )


def test_a_conv_takes_in_what_follows_elementwise() -> None:
    text = "(float[1,2,8,8] x, float[2,2,3,3] w, float[1,2,6,6] s) => (float[1,2,6,6] y) { e = Exp(x) c = Conv(e, w) d = Add(c, s) y = Relu(d) }"
    assert groups(text) == ["Conv Add Relu"]


def test_two_convolutions_are_never_one_group() -> None:
    text = "(float[1,2,8,8] x, float[2,2,3,3] w) => (float[1,2,4,4] y) { c = Conv(x, w) d = Relu(c) e = Conv(d, w) y = Relu(e) }"
    assert groups(text) == ["Conv Relu", "Conv Relu"]


def test_a_broadcast_that_changes_the_shape_ends_a_convolution() -> None:
    text = "(float[1,2,8,8] x, float[2,2,3,3] w, float[4,2,6,6] s) => (float[4,2,6,6] y) { c = Conv(x, w) d = Add(c, s) y = Relu(d) }"
    assert groups(text) == ["Add Relu"]


def test_a_diamond_meets_at_its_post_dominator() -> None:
    text = "(float[2] x) => (float[2] y) { a = Neg(x) b = Exp(a) c = Abs(a) y = Add(b, c) }"
    assert groups(text) == ["Neg Exp Abs Add"]


def test_a_path_through_an_opaque_operator_is_not_entered_again() -> None:
    text = "(float[2,2] x) => (float[2,2] y) { a = Neg(x) s = Softmax(a) b = Exp(a) t = Add(s, b) y = Relu(t) }"
    assert groups(text) == ["Exp Add Relu"]


def test_a_reduction_ends_a_group_at_level_2() -> None:
    text = "(float[2,3] x) => (float[2,1] y) <int64[1] k = {1}> { a = Neg(x) b = Exp(a) s = ReduceSum(b, k) y = Sqrt(s) }"
    assert groups(text) == ["Neg Exp ReduceSum"]
    assert groups(text, level=1) == ["Neg Exp"]


def test_data_movement_is_fused_in_the_second_phase() -> None:
    text = "(float[2,3] x) => (float[3,2,1] y) <int64[1] k = {2}> { a = Neg(x) t = Transpose(a) y = Unsqueeze(t, k) }"
    assert groups(text) == ["Neg Transpose Unsqueeze"]


def test_a_graph_output_and_a_capture_end_a_group() -> None:
    text = "(float[2] x, bool c) => (float[2] a, float[2] y) { a = Neg(x) b = Exp(a) d = Abs(b) e = Relu(d) y = If(c) <then_branch = t () => (float[2] p) { p = Add(d, e) }, else_branch = s () => (float[2] q) { q0 = Neg(e) q = Exp(q0) }> }"
    assert groups(text) == ["Exp Abs", "Neg Exp"]


def test_the_most_nodes_of_a_group() -> None:
    text = "(float[2] x) => (float[2] y) { a = Neg(x) b = Exp(a) c = Abs(b) d = Relu(c) y = Sqrt(d) }"
    assert groups(text, max_depth=2) == ["Neg Exp", "Abs Relu"]
    assert_unchanged(PASS, text, max_depth=1)


def test_level_0_leaves_all_operators_alone() -> None:
    text = "(float[2] x) => (float[2] y) { a = Neg(x) y = Exp(a) }"
    assert_unchanged(PASS, text, level=0)
    model = Model.from_proto(parse(text))
    get_pass(PASS).apply(model, PassContext.isolated(opt_level=0))
    assert not model.functions


def test_random_and_unknown_operators_and_quantized_pairs_stay_alone() -> None:
    text = "(float[2] x, float s, int8 z) => (float[2] y) { r = RandomNormalLike(x) a = Neg(r) q = QuantizeLinear(a, s, z) d = DequantizeLinear(q, s, z) b = com.microsoft.Odd(d) y = Exp(b) }"
    assert_unchanged(PASS, text)


def test_two_marks_are_never_one_group() -> None:
    proto = parse("(float[2] x) => (float[2] y) { a = Neg(x) b = Exp(a) c = Abs(b) d = Relu(c) y = Sqrt(d) }")
    for node, mark in zip(proto.graph.node, ("npu", "npu", "cpu", "cpu", ""), strict=True):
        if mark:
            node.metadata_props.add(key="tiered.compiler", value=mark)
    model = Model.from_proto(proto)
    get_pass(PASS).apply(model, PassContext.isolated())
    assert [function.function_name for function in model.functions] == ["fused_Neg_Exp", "fused_Abs_Relu"]
    assert [node.metadata for node in model.main.topological_order()] == [{"tiered.compiler": "npu"}, {"tiered.compiler": "cpu"}, {}]


def test_a_group_that_nothing_reads_stays() -> None:
    text = "(float[2] x) => (float[2] y) { a = Relu(x) b = Neg(a) y = Sin(x) }"
    assert_unchanged(PASS, text, because="no output of the nodes is used")


def test_functions_need_ir_8() -> None:
    text = '<ir_version: 7, opset_import: ["" : 12]> g (float[2] x) => (float[2] y) { a = Neg(x) y = Exp(a) }'
    assert_unchanged(PASS, text, because="local functions need IR 8, not 7")


@pytest.mark.parametrize("options", [{"max_depth": 0}, {"level": -2}])
def test_limits_that_mean_nothing_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=r"expected at least -1 and 1"):
        get_pass(PASS, **options).apply(Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Exp(x) }")), PassContext.isolated())


def test_inlining_is_the_inverse() -> None:
    text = "(float[2,3] x) => (float[2,1] y) <int64[1] k = {1}, float[3] w = {1,2,3}> { a = Mul(x, w) b = Exp(a) s = ReduceSum(b, k) y = Sqrt(s) }"
    model = Model.from_proto(parse(text))
    first = model.main.structural_hash()
    get_pass(PASS).apply(model, PassContext.isolated())
    assert [node.op_type for node in model.main.nodes] != ["Mul", "Exp", "ReduceSum", "Sqrt"]
    get_pass("inline", domains=("tiered.fused",)).apply(model, PassContext.isolated())
    assert model.main.structural_hash() == first


def test_the_name_of_tvms_table() -> None:
    assert get_pass("OpFusion").name == get_pass("FuseOps").name == PASS
