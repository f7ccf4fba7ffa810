import pytest

from tiered import Model, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

NAME = "replace_if_with_where"


def branches(then: str, other: str) -> str:
    return (
        f"If(c) <then_branch = g1 () => (float[2] t) {{ {then} }},"
        f" else_branch = g2 () => (float[2] e) {{ {other} }}>"
    )


def test_both_branches_are_computed() -> None:
    assert_rewrites(
        NAME,
        f"(bool c, float[2] x) => (float[2] y) {{ y = {branches('t = Neg(x)', 'e = Abs(x)')} }}",
        "(bool c, float[2] x) => (float[2] y) { t = Neg(x) e = Abs(x) y = Where(c, t, e) }",
    )


def test_a_branch_may_return_a_value_of_the_graph_around() -> None:
    assert_rewrites(
        NAME,
        f"(bool c, float[2] x) => (float[2] y) {{ n = Neg(x)"
        f" y = {branches('t = Identity(n)', 'e = Abs(x)')} }}",
        "(bool c, float[2] x) => (float[2] y)"
        " { n = Neg(x) t = Identity(n) e = Abs(x) y = Where(c, t, e) }",
    )


def test_results_of_bool_are_selected_by_logic() -> None:
    assert_rewrites(
        NAME,
        "(bool c, float[2] x) => (bool[2] y) { y = If(c) <"
        "then_branch = g1 () => (bool[2] t) { t = IsNaN(x) },"
        " else_branch = g2 () => (bool[2] e) { e = IsInf(x) }> }",
        "(bool c, float[2] x) => (bool[2] y) { t = IsNaN(x) e = IsInf(x)"
        " n = Not(c) a = And(c, t) b = And(n, e) y = Or(a, b) }",
    )


@pytest.mark.parametrize("dtype", ["uint64", "uint16", "int16", "bfloat16"])
def test_results_of_a_dtype_without_a_where_stay(dtype: str) -> None:
    """onnxruntime 1.31 loads no Where of it, and runs the If."""
    assert_unchanged(
        NAME,
        f"(bool c, {dtype}[2] x) => ({dtype}[2] y) {{ y = If(c) <"
        f"then_branch = g1 () => ({dtype}[2] t) {{ t = Identity(x) }},"
        f" else_branch = g2 () => ({dtype}[2] e) {{ e = Identity(x) }}> }}",
        because="runtimes have no Where of",
    )


def test_the_constants_of_a_branch_move_out() -> None:
    assert_rewrites(
        NAME,
        "(bool c, float[2] x) => (float[2] y) { y = If(c) <"
        "then_branch = g1 () => (float[2] t) <float k = {2}> { t = Mul(x, k) },"
        " else_branch = g2 () => (float[2] e) { e = Abs(x) }> }",
        "(bool c, float[2] x) => (float[2] y) <float k = {2}>"
        " { t = Mul(x, k) e = Abs(x) y = Where(c, t, e) }",
    )


def test_an_operator_that_may_fail_stays() -> None:
    then = "i = Cast<to=7>(x) t = Gather(x, i)"
    assert_unchanged(
        NAME,
        f"(bool c, float[2] x) => (float[2] y) {{ y = {branches(then, 'e = Abs(x)')} }}",
        because="a branch has Gather, which may fail or nests",
    )


def test_a_condition_of_unknown_size_stays() -> None:
    assert_unchanged(
        NAME,
        f"(bool[N] c, float[2] x) => (float[2] y) {{ y = {branches('t = Neg(x)', 'e = Abs(x)')} }}",
        because="the condition is not known to be one element",
    )


def test_branches_of_different_shapes_stay() -> None:
    assert_unchanged(
        NAME,
        "(bool c, float[2] x, float[3] z) => (float[N] y) { y = If(c) <"
        "then_branch = g1 () => (float[2] t) { t = Neg(x) },"
        " else_branch = g2 () => (float[3] e) { e = Abs(z) }> }",
        because="the shapes of the branches differ",
    )


@pytest.mark.parametrize(
    ("inputs", "line", "because"),
    [
        ("bool c, float[2] x", "z = own.Any(x) h = Cast<to = 1>(z) k = Identity(c)",
         "the shapes of the branches differ or are not known"),
        ("bool c, float[2] x", "h = Identity(x) z = own.Any(c) k = Cast<to = 9>(z)",
         "the condition is not known to be one element"),
        ("bool[M] c, float[2] x", "h = Identity(x) k = Identity(c)",
         "the condition is not known to be one element"),
    ],
)  # fmt: skip
def test_what_has_no_known_shape_stays(inputs: str, line: str, because: str) -> None:
    assert_unchanged(
        NAME,
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '
        f"g ({inputs}) => (y) {{ {line} y = If(k) <"
        "then_branch = g1 () => (t) { t = Neg(h) },"
        " else_branch = g2 () => (e) { e = Abs(h) }> }",
        because=because,
    )


def test_branches_of_unknown_dtype_stay() -> None:
    assert_unchanged(
        NAME,
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '
        "g (bool c, float[2] x) => (y) { z = own.Any(x) y = If(c) <"
        "then_branch = g1 () => (t) { t = Neg(z) },"
        " else_branch = g2 () => (e) { e = Abs(z) }> }",
        because="the dtypes of the branches",
    )


def test_a_scalar_result_of_a_vector_condition_stays() -> None:
    assert_unchanged(
        NAME,
        "(bool[1] c, float x) => (float y) { y = If(c) <"
        "then_branch = g1 () => (float t) { t = Neg(x) },"
        " else_branch = g2 () => (float e) { e = Abs(x) }> }",
        because="a lower rank than the condition",
    )


def test_large_branches_stay() -> None:
    assert_unchanged(
        NAME,
        f"(bool c, float[2] x) => (float[2] y) {{ y = {branches('t = Neg(x)', 'e = Abs(x)')} }}",
        because="the branches have 2 nodes",
        max_nodes=1,
    )


def test_the_name_of_the_node_begins_those_of_its_branches() -> None:
    text = f"(bool c, float[2] x) => (float[2] y) {{ y = {branches('t = Neg(x)', 'e = Abs(x)')} }}"
    for name, expected in [("", "If"), ("pick", "pick")]:
        proto = parse(text)
        proto.graph.node[0].name = name
        for branch in proto.graph.node[0].attribute:
            branch.g.node[0].name = "inner"
        model = Model.from_proto(proto)
        get_pass(NAME).apply(model)
        names = [node.name for node in model.main.nodes if node.op_type in ("Abs", "Neg")]
        assert all(each.startswith(f"{expected}/inner") for each in names), names
