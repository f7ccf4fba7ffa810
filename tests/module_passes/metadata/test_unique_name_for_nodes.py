from tests.rollback import assert_undone
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "unique_name_for_nodes"


def test_nodes_without_a_name_are_named_after_their_operator() -> None:
    text = "(float[2] x) => (float[2] y) { a = Relu(x) [Relu] b = Relu(a) y = Neg(b) }"
    made = assert_undone(PASS, text)
    assert [node.name for node in made.graph.node] == ["Relu_1", "Relu", "Neg"]
    assert [list(node.output) for node in made.graph.node] == [["a"], ["b"], ["y"]]
    assert_rewrites(PASS, text, text)


def test_the_first_bearer_keeps_the_name() -> None:
    made = assert_undone(
        PASS, "(float[2] x) => (float[2] y) { [n] a = Relu(x) [n] b = Relu(a) [n_1] y = Neg(b) }"
    )
    assert [node.name for node in made.graph.node] == ["n", "n_2", "n_1"]


def test_bodies_and_local_functions_share_the_names() -> None:
    made = assert_undone(
        PASS,
        """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[2] x, bool c) => (float[2] y) { [n] y = If(c) <
            then_branch = t () => (float[2] a) { [n] a = local.f(x) },
            else_branch = e () => (float[2] b) { b = Neg(x) }
        > }
        <domain: "local", opset_import: ["" : 21]> f (v) => (u) { [n] u = Neg(v) }""",
    )
    bodies = {attribute.name: attribute.g for attribute in made.graph.node[0].attribute}
    names = [made.graph.node[0].name, made.functions[0].node[0].name]
    names += [bodies[name].node[0].name for name in ("then_branch", "else_branch")]
    assert sorted(names) == ["Neg", "n", "n_1", "n_2"]
    assert names[0] == "n"


def test_nodes_without_a_name_may_stay_so() -> None:
    made = assert_undone(
        PASS,
        "(float[2] x) => (float[2] y) { a = Relu(x) [n] b = Neg(a) [n] y = Abs(b) }",
        unnamed=False,
    )
    assert [node.name for node in made.graph.node] == ["", "n", "n_1"]


def test_names_that_are_unique_stay() -> None:
    assert_unchanged(PASS, "(float[2] x) => (float[2] y) { [x] a = Relu(x) [other] y = Relu(a) }")
