"""Which nodes a target takes: tables, functions, chains, patterns, and backends."""

from typing import Any

import pytest

from tests.extensions.partition.graphs import model
from tiered import Backend, Graph, Model, Node, UsageError
from tiered.extensions.partition import (
    BackendSupport,
    OperatorSupport,
    any_chain,
    chain,
    create_op_support,
    create_pattern_support,
)
from tiered.extensions.partition.supports import is_taken_whole
from tiered.graph import DataType
from tiered.targets.operator_rule import OperatorRule

DIAMOND = "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Sin(a)  y = Add(a, b) }"


def takes(*operators: str) -> OperatorSupport:
    return OperatorSupport(dict.fromkeys(operators))


def _supported(of: Model, support: OperatorSupport) -> list[str]:
    return [n.label for n in of.main.nodes if support.is_node_supported(of.main, n)]


def test_an_empty_chain_takes_all_and_an_empty_any_chain_none() -> None:
    of = model(DIAMOND)
    assert _supported(of, chain()) == ["a", "b", "y"]
    assert _supported(of, any_chain()) == []


def test_supports_are_classes_functions_tables_and_patterns() -> None:
    class OnlyNeg(OperatorSupport):
        def is_node_supported(self, graph: Graph, node: Node) -> bool:
            return node.op_type == "Neg"

    of = model(DIAMOND)
    named = create_op_support(lambda graph, node: node.label in "ab")
    assert _supported(of, OnlyNeg()) == ["a"]
    assert _supported(of, chain(named, takes("Sin", "Add"))) == ["b"]
    assert _supported(of, any_chain(OnlyNeg(), takes("Add"))) == ["a", "y"]
    pattern = create_pattern_support(["(p, q) => (r) { s = Sin(q)  r = Add(p, s) }"])
    assert _supported(of, pattern) == ["b", "y"]


def test_a_table_may_name_dtypes() -> None:
    of = model("g (float[2] x, int64[2] i) => (float[2] y, int64[2] j) { y = Neg(x)  j = Neg(i) }")
    assert _supported(of, OperatorSupport({"Neg": [[7]]})) == ["j"]
    assert _supported(of, OperatorSupport({"Neg": [[1, 7]]})) == ["y", "j"]
    assert _supported(of, OperatorSupport({"Neg": [None]})) == ["y", "j"]


def test_pattern_support_follows_edits() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Abs(a) }")
    support = create_pattern_support(["(p) => (r) { q = Neg(p)  r = Abs(q) }"])
    assert _supported(of, support) == ["a", "y"]
    of.main.set_operator(of.main.nodes[0], "Sin")
    assert _supported(of, support) == []


def test_the_table_of_a_backend_is_a_support() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) { a = Neg(x)  b = f.twice(a)  c = f.odd(b)  y = Abs(c) }\n"
        '<opset_import: ["" : 21], domain: "f"> twice (p) => (q) { q = Add(p, p) }\n'
        '<opset_import: ["" : 21, "u" : 1], domain: "f"> odd (p) => (q) { q = u.Unknown(p) }',
        '<ir_version: 10, opset_import: ["" : 21, "f" : 1, "u" : 1]>\n',
    )
    backend = Backend(name="npu", unlisted="standard")
    assert _supported(of, BackendSupport(backend)) == ["a", "b", "y"]
    assert _supported(of, BackendSupport(backend, ["Add", "Abs"])) == ["a"]
    with pytest.raises(UsageError, match="list of operators"):
        BackendSupport(backend, "Add")


TYPED = """g (float[2] x, int64[2] i, float[2] u) => (float[2] y, int64[2] j, float[2] z) {
    y = Add(x, x)  j = Add(i, i)  f = own.F(x)  z = Add(f, u) }"""
OWN = '<ir_version: 10, opset_import: ["" : 21, "own" : 1]>\n'


@pytest.mark.parametrize(
    ("dtypes", "taken"),
    [
        (None, ["y", "j", "z"]),
        ([], ["y", "j", "z"]),
        ([[1]], ["y", "z"]),
        ([[1], [1]], ["y", "z"]),
        ([[7], [7]], ["j", "z"][:1]),
        ([[7], None], ["j", "z"]),
        ([None, [7]], ["j"]),
        ([[1, 7], [7]], ["j"]),
        ([[None]], ["y", "j", "z"]),
        ([[1], [None]], ["y", "z"]),
        ([[1], [1], [7]], ["y", "z"]),
    ],
)
def test_a_table_names_the_dtypes_of_operands_and_an_unknown_one_fits(
    dtypes: list[list[int | None] | None] | None, taken: list[str]
) -> None:
    of = model(TYPED, OWN)
    assert _supported(of, OperatorSupport({"Add": dtypes})) == taken


def test_operators_of_other_domains_have_the_domain_in_their_name() -> None:
    of = model(TYPED, OWN)
    assert _supported(of, takes("own::F")) == ["f"]
    assert _supported(of, takes("F")) == []
    assert _supported(of, OperatorSupport()) == []


def test_a_chain_is_the_intersection_and_an_any_chain_the_union() -> None:
    of = model(DIAMOND)
    assert _supported(of, chain(takes("Neg", "Sin"), takes("Sin", "Add"))) == ["b"]
    assert _supported(of, any_chain(takes("Neg"), takes("Add"))) == ["a", "y"]


def test_a_function_returns_any_truth() -> None:
    of = model(DIAMOND)
    some: Any = lambda graph, node: node.inputs[1:]  # noqa: E731  # a list is true or false
    support = create_op_support(some)
    assert support.is_node_supported(of.main, of.main.nodes[2]) is True
    assert support.is_node_supported(of.main, of.main.nodes[0]) is False


def test_patterns_may_ignore_attributes() -> None:
    of = model("g (float[2] x) => (float[2] y) { y = LeakyRelu<alpha=0.3>(x) }")
    text = ["(p) => (q) { q = LeakyRelu<alpha=0.1>(p) }"]
    assert _supported(of, create_pattern_support(text)) == []
    assert _supported(of, create_pattern_support(text, ignore_literals=True)) == ["y"]


CALLS = """g (float[2] x) => (float[2] y) { a = f.outer(x)  b = f.inner(a)  y = Abs(b) }
    <opset_import: ["" : 21, "f" : 1], domain: "f"> outer (p) => (q) { r = Neg(p)  q = f.inner(r) }
    <opset_import: ["" : 21], domain: "f"> inner (p) => (q) { q = Sin(p) }"""
F = '<ir_version: 10, opset_import: ["" : 21, "f" : 1]>\n'


def test_a_call_is_taken_with_all_nodes_of_its_function() -> None:
    of, backend = model(CALLS, F), Backend(name="npu", unlisted="standard")
    assert _supported(of, BackendSupport(backend)) == ["a", "b", "y"]
    assert _supported(of, BackendSupport(backend, ["Sin"])) == ["y"]
    assert _supported(of, BackendSupport(backend, ["Neg"])) == ["b", "y"]


def test_a_composite_of_the_target_is_taken_whole() -> None:
    text = """g (float[2] x) => (float[2] y) { a = f.P(x)  y = f.Q(a) }
        <opset_import: ["" : 21], domain: "f"> P (p) => (q) { q = Sin(p) }
        <opset_import: ["" : 21], domain: "f"> Q (p) => (q) { q = Sin(p) }"""
    text, header = (
        each.replace("f.P", "tiered.composite.p").replace("f.Q", "tiered.composite.q")
        .replace('"f"', '"tiered.composite"')
        for each in (text, F)
    )  # fmt: skip
    proto = model(text.replace(" P (", " p (").replace(" Q (", " q ("), header).to_proto()
    for entry, name in (*zip(proto.graph.node, ("npu.a", "dsp.a"), strict=True),):
        entry.op_type = name
    for function, name in zip(proto.functions, ("npu.a", "dsp.a"), strict=True):
        function.name = name
    of, backend = Model.from_proto(proto), Backend(name="npu", unlisted="standard")
    assert _supported(of, BackendSupport(backend, ["Sin"])) == ["a"]
    renamed = model(text.replace("tiered.composite", "f").replace("f.p(", "f.npu(").replace(
        " P (", " npu ("), F).to_proto()  # fmt: skip
    renamed.graph.node[0].op_type = renamed.functions[0].name = "npu.a"
    assert _supported(Model.from_proto(renamed), BackendSupport(backend, ["Sin"])) == []


def test_a_denied_operator_has_to_exist() -> None:
    backend = Backend(name="npu", unlisted="standard")
    with pytest.raises(UsageError, match="Covn"):
        BackendSupport(backend, ["Covn"])
    with pytest.raises(UsageError, match="denied is a list of operators, not the string 'Conv'"):
        BackendSupport(backend, "Conv")


IF = """g (float[2] x, bool c) => (float[2] y) { y = If <
    then_branch = t () => (float[2] p) { k = Constant<value_float=1.0>()  p = Mul(x, k) },
    else_branch = e () => (float[2] q) { q = If <
        then_branch = u () => (float[2] r) { r = Neg(x) },
        else_branch = v () => (float[2] s) { s = Sin(x) }> (c) }> (c) }"""


@pytest.mark.parametrize(
    ("operators", "is_taken"),
    [
        (("If", "Mul", "Neg", "Sin"), True),
        (("If", "Mul", "Neg"), False),
        (("If", "Neg", "Sin"), False),
        (("Mul", "Neg", "Sin"), False),
    ],
)
def test_a_node_is_taken_with_its_bodies_at_any_depth(
    operators: tuple[str, ...], *, is_taken: bool
) -> None:
    of = model(IF)
    assert is_taken_whole(takes(*operators), of.main, of.main.nodes[0]) == is_taken


def test_a_call_that_the_table_lists_is_taken_whatever_it_calls() -> None:
    rules = {("f", "inner"): (OperatorRule(),)}
    of, backend = model(CALLS, F), Backend(name="npu", unlisted="standard", operators=rules)
    assert _supported(of, BackendSupport(backend, ["Sin"])) == ["a", "b", "y"]


def test_an_absent_operand_has_no_dtype() -> None:
    of = model("g (float[2] x) => (float[2] y) <float m = {1}> { y = Clip(x, , m) }")
    taken = OperatorSupport({"Clip": [[DataType.FLOAT], [None], [DataType.FLOAT]]})
    assert _supported(of, taken) == ["y"]
