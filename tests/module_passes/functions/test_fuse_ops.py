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
        HEADER + "g (float[2] x) => (float[2] y) { y = tiered.fused.fused_Neg_Exp_Relu(x) }"
        ' <domain: "tiered.fused", opset_import: ["" : 21]> fused_Neg_Exp_Relu (x) => (y) { a = Neg(x) b = Exp(a) y = Relu(b) }',
    )


def test_the_most_nodes_of_a_group() -> None:
    text = (
        "(float[2] x) => (float[2] y) { a = Neg(x) b = Exp(a) c = Abs(b) d = Relu(c) y = Sqrt(d) }"
    )
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
    proto = parse(
        "(float[2] x) => (float[2] y) { a = Neg(x) b = Exp(a) c = Abs(b) d = Relu(c) y = Sqrt(d) }"
    )
    for node, mark in zip(proto.graph.node, ("npu", "npu", "cpu", "cpu", ""), strict=True):
        if mark:
            node.metadata_props.add(key="tiered.compiler", value=mark)
    model = Model.from_proto(proto)
    get_pass(PASS).apply(model, PassContext.isolated())
    assert [function.function_name for function in model.functions] == [
        "fused_Neg_Exp",
        "fused_Abs_Relu",
    ]
    assert [node.metadata for node in model.main.topological_order()] == [
        {"tiered.compiler": "npu"},
        {"tiered.compiler": "cpu"},
        {},
    ]


def test_a_group_that_nothing_reads_stays() -> None:
    text = "(float[2] x) => (float[2] y) { a = Relu(x) b = Neg(a) y = Sin(x) }"
    assert_unchanged(PASS, text, because="no output of the nodes is used")


def test_functions_need_ir_8() -> None:
    text = '<ir_version: 7, opset_import: ["" : 12]> g (float[2] x) => (float[2] y) { a = Neg(x) y = Exp(a) }'
    assert_unchanged(PASS, text, because="local functions need IR 8, not 7")


@pytest.mark.parametrize("options", [{"max_depth": 0}, {"level": -2}])
def test_limits_that_mean_nothing_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=r"expected at least -1 and 1"):
        get_pass(PASS, **options).apply(
            Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Exp(x) }")),
            PassContext.isolated(),
        )


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
