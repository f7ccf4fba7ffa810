"""merge_composite: matches of a pattern table become functions, earlier entries first."""

from collections.abc import Iterator

import pytest

from tests.extensions.partition.graphs import assert_same_outputs
from tests.module_passes.partition.targets import NPU, target
from tiered import Model, PassContext, Sequential, UsageError, get_pass, op, var
from tiered.extensions.partition import merge_composites, register_pattern_table
from tiered.extensions.partition.composite import Entry
from tiered.testing import assert_rewrites, assert_unchanged, parse

TEXT = (
    "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}, float[2] b = {1,2}> "
    "{ p = MatMul(x, w) q = Add(p, b) r = Relu(q) s = MatMul(r, w) y = Relu(s) }"
)
DENSE_RELU: Entry = ("npu.dense_relu", "(x, w) => (y) { p = MatMul(x, w)  y = Relu(p) }")
BIAS: Entry = (
    "npu.dense_bias_relu",
    lambda x, w, b: op.Relu(op.Add(op.MatMul(x, w), b)),
)
DENSE: Entry = ("npu.dense", op.MatMul(var.x, var.w))


def test_a_match_becomes_a_call_of_its_function() -> None:
    register_pattern_table("npu", [("dense_relu", DENSE_RELU[1])])
    assert_rewrites(
        "merge_composite",
        "(float[2,2] x, float[2,2] w) => (float[2,2] y) { p = MatMul(x, w) y = Relu(p) }",
        '<ir_version: 10, opset_import: ["" : 21, "tiered.composite" : 1]>'
        " g (float[2,2] x, float[2,2] w) => (float[2,2] y) { y = tiered.composite.dense_relu(x, w) }"
        ' <domain: "tiered.composite", opset_import: ["" : 21]>'
        " dense_relu (x, w) => (y) { p = MatMul(x, w) y = Relu(p) }",
        tables=["npu"],
    )


@pytest.fixture(autouse=True)
def _no_table() -> Iterator[None]:
    yield
    register_pattern_table("npu", [])


def _calls(*table: Entry) -> list[str]:
    source = parse(TEXT)
    of = Model.from_proto(source)
    before = of.main.structural_hash()
    merge_composites(of, table)
    of.check_view()
    of.check()
    assert_same_outputs(source, of.to_proto())
    names = [node.op_type for node in of.main.topological_order()]
    get_pass("inline", domains=("tiered.composite",))(of)
    assert of.main.structural_hash() == before
    return names


def test_a_match_that_nothing_reads_stays() -> None:
    register_pattern_table("npu", [DENSE_RELU])
    text = (
        "(float[2,2] x, float[2,2] w) => (float[2,2] y) { p = MatMul(x, w) q = Relu(p) y = Sin(x) }"
    )
    reason = "no output of the nodes is used"
    assert_unchanged("merge_composite", text, because=reason, tables=["npu"])


def test_patterns_are_text_functions_and_patterns() -> None:
    assert _calls(DENSE_RELU, BIAS, DENSE) == ["npu.dense_bias_relu", "npu.dense_relu"]


def test_earlier_entries_come_first() -> None:
    assert _calls(DENSE, BIAS) == ["npu.dense", "Add", "Relu", "npu.dense_1", "Relu"]


def test_a_check_declines_a_match() -> None:
    declined = ("npu.dense_relu", DENSE_RELU[1], lambda match: match.node.label != "y")
    assert _calls(declined) == ["MatMul", "Add", "Relu", "MatMul", "Relu"]


def test_weights_stay_inputs_and_the_name_of_the_entry_is_metadata() -> None:
    of = Model.from_proto(parse(TEXT))
    (call,) = merge_composites(of, [BIAS])
    assert [value.name for value in call.inputs if value] == ["x", "w", "b"]
    assert call.metadata == {"tiered.composite": "npu.dense_bias_relu"}
    assert of.functions[0].id == ("tiered.composite", "npu.dense_bias_relu", "")


def test_an_ir_version_without_metadata_has_composites_too() -> None:
    source = parse('<ir_version: 8, opset_import: ["" : 17]> g ' + TEXT)
    of = Model.from_proto(source)
    (call,) = merge_composites(of, [BIAS])
    assert call.metadata == {}
    assert_same_outputs(source, of.to_proto())


def test_nodes_of_different_marks_stay_apart() -> None:
    register_pattern_table("npu", [BIAS])
    model = parse(TEXT)
    for at, mark in ((0, "npu"), (1, "dsp")):
        model.graph.node[at].metadata_props.add(key="tiered.compiler", value=mark)
    assert_unchanged(
        "merge_composite", model, because="marked for different compilers", backend=NPU
    )


def test_the_pass_reads_the_table_of_its_targets() -> None:
    register_pattern_table("npu", [BIAS])
    with PassContext(backend=NPU):
        made = get_pass("merge_composite")(parse(TEXT))
        assert get_pass("merge_composite")(made) == made
    assert made.graph.node[0].op_type == "npu.dense_bias_relu"
    assert get_pass("merge_composite", tables=["npu"])(parse(TEXT)) == made
    assert_unchanged("merge_composite", TEXT)


def test_the_reason_of_a_check_is_a_remark() -> None:
    register_pattern_table("npu", [(*BIAS[:2], lambda match: False)])
    because = "the check of the pattern table declines"
    assert_unchanged("merge_composite", TEXT, because=because, backend=NPU)


def test_the_composites_of_a_target_are_taken_by_it() -> None:
    register_pattern_table("npu", [BIAS])
    source = parse(TEXT)
    with PassContext(backend=target("npu", "Neg")):
        made = Sequential(
            ["merge_composite", "annotate_target", "merge_compiler_regions", "partition_graph"]
        )(source)
    assert [node.op_type for node in made.graph.node] == ["npu_0", "MatMul", "Relu"]
    assert_same_outputs(source, made)


def test_a_malformed_table_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"\(name, pattern\)"):
        register_pattern_table("npu", [("only a name",)])  # type: ignore[list-item]  # on purpose
