"""partition_graph: a marked region becomes a function of its target, and inlining undoes it."""

from collections.abc import Sequence

import onnx
import pytest
from hypothesis import given, settings

from tests.extensions.partition.graphs import (
    assert_same_outputs,
    labels,
    model as model_of,
    random_models,
)
from tests.module_passes.partition.targets import NPU, target
from tiered import Model, ModelError, PassContext, Sequential, get_pass, optimize
from tiered.extensions.partition import (
    Plan,
    marked_partitions,
    partition_graph,
    register_pattern_table,
)
from tiered.testing import assert_rewrites, assert_unchanged, parse

FLOW = ["annotate_target", "merge_compiler_regions", "partition_graph"]
TEXT = (
    "(float[2] x) => (float[2] y) <float[2] w = {1,2}> "
    "{ a = Add(x, w) b = Abs(a) c = Sin(b) d = Neg(c) y = Add(d, w) }"
)


def test_the_node_of_a_target_becomes_a_function() -> None:
    """The node is marked in the model: the text of a model has no marks."""
    source = parse("(float[2] x) => (float[2] y) { a = Neg(x) y = Sin(a) }")
    source.graph.node[0].metadata_props.add(key="tiered.compiler", value="npu")
    assert_rewrites(
        "partition_graph",
        source,
        '<ir_version: 10, opset_import: ["" : 21, "tiered.npu" : 1]>'
        " g (float[2] x) => (float[2] y) { a = tiered.npu.npu_0(x) y = Sin(a) }"
        ' <domain: "tiered.npu", opset_import: ["" : 21]> npu_0 (x) => (a) { a = Neg(x) }',
    )


def test_each_region_is_a_function_that_belongs_to_its_target() -> None:
    source = parse(TEXT)
    with PassContext(backend=NPU):
        made = Sequential(FLOW)(source)
        assert Sequential(FLOW)(made) == made
    said = [(node.domain, node.op_type, list(node.input)) for node in made.graph.node]
    assert said == [
        ("tiered.npu", "npu_0", ["x", "w"]),
        ("", "Sin", ["b"]),
        ("tiered.npu", "npu_1", ["c", "w"]),
    ]
    held = [made.graph.node[0].metadata_props, *(f.metadata_props for f in made.functions)]
    assert [[(e.key, e.value) for e in entries] for entries in held] == [
        [("tiered.compiler", "npu")]
    ] * 3
    assert_same_outputs(source, made)


@settings(max_examples=40, deadline=None)
@given(random_models(largest=10, targets="ab-"))
def test_annotate_merge_partition_inline_is_the_identity(of: Model) -> None:
    source, before = of.to_proto(), of.main.structural_hash()
    with PassContext(backend=target("npu", "Neg", "Add", "Abs", "If")):
        Sequential(FLOW)(of)
        of.check_view()
        of.check()
        mark = of.mark()
        Sequential(FLOW)(of)
        assert not of.changed_since(mark)
    assert_same_outputs(source, of.to_proto())
    get_pass("inline", domains=("tiered.npu",))(of)
    assert of.main.structural_hash() == before


def test_no_pass_edits_the_function_of_a_region() -> None:
    text = "(float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) c = Sin(b) y = Identity(c) }"
    with PassContext(backend=NPU):
        made = Sequential(FLOW)(parse(text))
    for level in range(5):
        after = optimize(made, opt_level=level)
        assert after.functions == made.functions
        marks = {entry.key: entry.value for entry in after.graph.node[0].metadata_props}
        assert marks["tiered.compiler"] == "npu"


def test_regions_in_a_body_are_functions_that_it_calls() -> None:
    text = (
        "(float[2] x, bool c) => (float[2] y) { y = If <"
        "then_branch = t () => (float[2] p) { m = Neg(x) p = Abs(m) }, "
        "else_branch = e () => (float[2] q) { q = Sin(x) }> (c) }"
    )
    source = parse(text)
    with PassContext(backend=NPU):
        made = Sequential(FLOW)(source)
    (branch,) = (a.g for a in made.graph.node[0].attribute if a.name == "then_branch")
    assert [node.op_type for node in branch.node] == ["npu_0"]
    assert_same_outputs(source, made)


def _names(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    return [node.op_type for node in nodes]


def test_a_region_holds_the_composite_and_no_other_region() -> None:
    text = (
        "(float[2,2] x, float[2,2] w) => (float[2,2] y) { p = MatMul(x, w) q = Relu(p) y = Sin(q) }"
    )
    register_pattern_table(
        "npu", [("npu.dense_relu", "(x, w) => (y) { p = MatMul(x, w) y = Relu(p) }")]
    )
    try:
        with PassContext(backend=NPU):
            made = Sequential(["merge_composite", *FLOW])(parse(text))
    finally:
        register_pattern_table("npu", [])
    inside = {function.name: _names(function.node) for function in made.functions}
    assert inside == {"npu_0": ["npu.dense_relu"], "npu.dense_relu": ["MatMul", "Relu"]}
    assert _names(made.graph.node) == ["npu_0", "Sin"]
    assert_same_outputs(parse(text), made)


def test_a_function_that_is_called_in_a_region_has_none() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "l": 1]>
      g (float[2] x, bool c) => (float[2] y) {
        a = l.deep(x) b = If(c) <then_branch = t () => (float[2] p) { p = l.twice(x) },
                                 else_branch = e () => (float[2] q) { q = Neg(x) }>
        s = Sin(b) t = l.part(s) y = Add(a, t) }
      <domain: "l", opset_import: ["": 21, "l": 1]> twice (x) => (y) { n = Neg(x) y = Abs(n) }
      <domain: "l", opset_import: ["": 21, "l": 1]> deep (x) => (y) { n = l.twice(x) y = Abs(n) }
      <domain: "l", opset_import: ["": 21, "l": 1]> part (x) => (y) { n = Sin(x) y = Abs(n) }"""
    with PassContext(backend=target("npu", "Neg", "Abs", "Add", "If", "deep", "twice", "part")):
        made = Sequential(FLOW)(parse(text))
    inside = {function.name: _names(function.node) for function in made.functions}
    regions = [name for names in inside.values() for name in names if name.startswith("npu")]
    assert inside["twice"] == ["Neg", "Abs"]
    assert inside["deep"] == ["twice", "Abs"]
    # Its call is not taken as a whole, so what is inside is marked.
    assert inside["part"][0] == "Sin"
    assert regions == [inside["part"][1]]
    assert_same_outputs(parse(text), made)


def test_a_marked_node_without_a_region_is_one_itself() -> None:
    with PassContext(backend=NPU):
        made = Sequential(["annotate_target", "partition_graph"])(parse(TEXT))
    assert [node.op_type for node in made.graph.node if node.domain] == [
        "npu_0", "npu_1", "npu_2", "npu_3",
    ]  # fmt: skip


def test_the_marks_may_become_separate_models() -> None:
    of = Model.from_proto(parse(TEXT))
    with PassContext(backend=NPU):
        Sequential(FLOW[:2])(of)
    plan = partition_graph(of, as_models=True)
    assert isinstance(plan, Plan)
    assert [part.target for part in plan.parts] == ["npu", "host", "npu"]
    assert partition_graph(of) is of


def test_marks_that_form_a_cycle_are_an_error() -> None:
    of = model_of("g (float[2] x) => (float[2] y) { a = Neg(x)  b = Sin(a)  y = Add(a, b) }")
    marks = {"tiered.compiler": "npu", "tiered.region": "r"}
    for node in (of.main.nodes[0], of.main.nodes[2]):
        of.main.set_metadata(node, marks)
    before = of.to_proto()
    with pytest.raises(ModelError, match=r"regions of .* form a cycle"):
        marked_partitions(of.main)
    with pytest.raises(ModelError, match="form a cycle"):
        get_pass("partition_graph")(of)
    assert of.to_proto() == before
    of.main.set_metadata(of.main.nodes[1], marks)
    assert [labels(part.nodes) for part in marked_partitions(of.main)] == [["a", "b", "y"]]


def test_without_marks_there_is_nothing_to_do() -> None:
    assert_unchanged("partition_graph", TEXT)
