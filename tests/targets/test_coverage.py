"""Coverage agrees with looking at every node, and counts functions once."""

from pathlib import Path

import onnx
import pytest

from tests.targets.test_backend import backend
from tiered import Model, get_backend
from tiered.targets import Backend, backend_names
from tiered.testing import parse

MODELS = sorted((Path(__file__).parents[2] / "examples" / "models").glob("*.onnx"))

FUNCTIONS = """
<ir_version: 10, opset_import: ["": 21, "local": 1]>
g (float[2] x) => (float[2] y) { a = local.outer(x) b = local.outer(a) y = Relu(b) }
<domain: "local", opset_import: ["": 21, "local": 1]>
outer (x) => (y) { a = local.inner(x) y = Tanh(a) }
<domain: "local", opset_import: ["": 21]>
inner (x) => (y) { y = Exp(x) }
"""


def brute_force(model: onnx.ModelProto, target: Backend) -> int:
    """Count the nodes that a target takes, one by one, from the operator names alone."""
    pending, taken = list(model.graph.node), 0
    while pending:
        node = pending.pop()
        for attribute in node.attribute:
            pending += attribute.g.node
            for graph in attribute.graphs:
                pending += graph.node
        rules = target.rules(node.op_type, "" if node.domain == "ai.onnx" else node.domain)
        taken += bool(rules) and node.op_type != "Constant"
    return taken


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_what_is_taken_by_name_is_what_brute_force_counts(path: Path) -> None:
    proto = onnx.load(path)
    for kept in (None, "Relu", "Add", "MatMul", "Conv"):
        rules = "" if kept is None else f"[operators]\n{kept} = false"
        target = backend(rules, unlisted="standard")
        coverage = target.coverage(Model.from_proto(proto))
        assert coverage.nodes - coverage.refused.total() == brute_force(proto, target)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", backend_names())
def test_gaps_are_the_nodes_that_the_table_refuses(path: Path, name: str) -> None:
    target = get_backend(name)
    model = Model.load(path)
    coverage = target.coverage(model)
    nodes = [node for graph in model.graphs() for node in graph.nodes]
    refused = {node for gap in coverage.gaps for node in gap.nodes}
    assert refused == {node for node in nodes if not target.takes(node)}
    assert coverage.nodes == sum(node.op_type != "Constant" for node in nodes)
    for gap in coverage.gaps:
        for node in gap.nodes:
            assert tuple(map(str, target.refusals(node))) == gap.reasons


def test_a_target_takes_a_model_whose_nodes_it_takes() -> None:
    target = backend("[operators]\nRelu = true")
    for operator, is_met in (("Relu", True), ("Exp", False)):
        text = f"(float[2] x) => (float[2] y) {{ y = {operator}(x) }}"
        assert target.coverage(Model.from_proto(parse(text))).is_met is is_met


def test_a_function_counts_with_its_body_once() -> None:
    coverage = backend("[operators]\nRelu = true").coverage(Model.from_proto(parse(FUNCTIONS)))
    assert dict(coverage.operators) == {"Relu": 1, "Tanh": 1, "Exp": 1}
    assert [gap.operator for gap in coverage.gaps] == ["Exp", "Tanh"]


def test_a_function_that_the_table_lists_counts_as_its_call() -> None:
    target = backend('[operators]\nRelu = true\n"local::outer" = true')
    coverage = target.coverage(Model.from_proto(parse(FUNCTIONS)))
    assert dict(coverage.operators) == {"local::outer": 2, "Relu": 1}
    assert coverage.is_met
    assert str(coverage) == "npu takes 3 of 3 nodes"


def test_the_model_itself_is_held_against_opset_and_ir_version() -> None:
    target = backend("[operators]\nRelu = true", opset=[7, 13], ir_version=[3, 8])
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    coverage = target.coverage(model)
    assert [str(refusal) for refusal in coverage.model] == [
        "opset 21; it takes 7 to 13",
        "IR version 10; it takes 3 to 8",
    ]
    assert not coverage.is_met


ONLY_ML = """<ir_version: 8, opset_import: ["ai.onnx.ml": 1]>
  g (float[N,2] x) => (float[N,2] y) { y = ai.onnx.ml.Normalizer(x) }"""


def test_a_model_without_operators_of_the_default_domain_needs_no_opset_of_it() -> None:
    target = get_backend("onnxruntime_cpu")
    model = Model.from_proto(parse(ONLY_ML))
    assert target.coverage(model).is_met


TYPED = """
<ir_version: 10, opset_import: ["": 21, "local": 1]>
g (float[2] x, int32[2] n) => (float[2] y, int32[2] m) {
  y = local.double <shift = 1> (x) m = local.double <shift = 0> (n)
}
<domain: "local", opset_import: ["": 21, "local": 1]>
double <shift> (x) => (y) { a = local.twice(x) b = Neg(a) y = Abs(b) }
<domain: "local", opset_import: ["": 21]>
twice (x) => (y) { y = Add(x, x) }
"""


def test_a_body_is_judged_with_the_types_of_each_call() -> None:
    rules = '[operators]\n"Abs, Add, Neg" = { dtypes = ["float"] }'
    target = backend(rules, shapes="static", dtypes={"activations": ["float", "int32"]})
    model = Model.from_proto(parse(TYPED))
    before = model.to_proto().SerializeToString()
    coverage = target.coverage(model)
    assert dict(coverage.operators) == {"Abs": 1, "Add": 1, "Neg": 1}
    assert sorted(map(str, coverage.gaps)) == [
        "Abs: X, Y are int32; it takes float",
        "Add: A, B, C are int32; it takes float",
        "Neg: X, Y are int32; it takes float",
    ]
    assert model.to_proto().SerializeToString() == before


def test_calls_that_double_again_and_again_are_not_followed() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
        g (float[2] x) => (float[2] y) { y = local.f0(x) }"""
    for depth in range(30):
        called = "Relu" if depth == 29 else f"local.f{depth + 1}"
        text += f"""<domain: "local", opset_import: ["": 21, "local": 1]>
            f{depth} (a) => (b) {{ c = {called}(a) b = {called}(c) }}"""
    model = Model.from_proto(parse(text))
    coverage = backend("[operators]\nRelu = true").coverage(model)
    assert (coverage.nodes, coverage.is_met) == (2, True)
    assert any("too often to judge" in note for note in model.notes)


def test_a_body_whose_calls_are_all_taken_is_taken() -> None:
    target = backend(
        '[operators]\n"Abs, Add, Neg" = true',
        shapes="static",
        dtypes={"activations": ["float", "int32"]},
    )
    assert target.coverage(Model.from_proto(parse(TYPED))).is_met
