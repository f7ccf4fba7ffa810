"""Regions by metadata: marks of targets, regions, and calls or models of these."""

import pytest

from tests.extensions.partition.graphs import assert_same_outputs, labels, model
from tiered import Model, ModelError
from tiered.extensions.partition import OperatorSupport, Plan
from tiered.extensions.partition.composite import merge_composites
from tiered.extensions.partition.regions import (
    cut_out_regions,
    mark_targets,
    marked_partitions,
    merge_regions,
    partition_graph,
)
from tiered.graph.core.marks import COMPILER, DEVICE, REGION, SKIP

TEXT = """g (float[2] x) => (float[2] y) {
    a = Neg(x)  b = Neg(a)  c = Sin(b)  d = Abs(c)  y = Neg(d) }"""
NPU = OperatorSupport(dict.fromkeys(("Neg", "Abs", "Add", "If")))
DSP = OperatorSupport(dict.fromkeys(("Sin", "Abs")))


def marks(of: Model, key: str) -> list[str | None]:
    return [node.metadata.get(key) for node in of.main.nodes]


def test_the_first_target_that_takes_a_node_marks_it() -> None:
    of = model(TEXT)
    assert mark_targets(of, {"npu": NPU, "dsp": DSP}) == 5
    assert marks(of, COMPILER) == ["npu", "npu", "dsp", "npu", "npu"]
    other = model(TEXT)
    mark_targets(other, {"dsp": DSP, "npu": NPU})
    assert marks(other, COMPILER) == ["npu", "npu", "dsp", "dsp", "npu"]


def test_marks_that_are_there_stay_and_are_not_counted() -> None:
    of = model(TEXT)
    of.main.set_metadata(of.main.nodes[1], {COMPILER: "other", "own": "1"})
    assert mark_targets(of, {"npu": NPU}) == 3
    assert marks(of, COMPILER) == ["npu", "other", None, "npu", "npu"]
    assert mark_targets(of, {"npu": NPU}) == 0


def test_a_node_that_is_left_alone_is_not_counted() -> None:
    of = model(TEXT)
    of.main.set_metadata(of.main.nodes[0], {SKIP: "1"})
    assert mark_targets(of, {"npu": NPU}) == 3
    assert marks(of, COMPILER) == [None, "npu", None, "npu", "npu"]


def test_what_is_computed_of_constants_is_marked_where_its_target_reads_it() -> None:
    of = model("""g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1,2}> {
        k = Constant<value_floats=[1.0, 2.0]>()  a = Neg(w)  b = Add(x, a)  c = Abs(k)
        y = Sin(c)  d = Neg(a)  e = Neg(d)  z = Sub(e, b) }""")
    mark_targets(of, {"npu": NPU})
    found = {node.label: node.metadata.get(COMPILER) for node in of.main.nodes}
    assert found == {"k": None, "a": "npu", "b": "npu", "c": None, "y": None, "d": None,
                     "e": None, "z": None}  # fmt: skip


IF = """g (float[2] x, bool c) => (float[2] y) {{ y = If <
    then_branch = t () => (float[2] p) {{ p = Neg(x) }},
    else_branch = e () => (float[2] q) {{ q = {}(x) }}> (c) }}"""


def test_a_node_with_bodies_is_marked_whole_or_its_nodes_are() -> None:
    whole, part = model(IF.format("Abs")), model(IF.format("Sin"))
    assert mark_targets(whole, {"npu": NPU}) == 1
    assert marks(whole, COMPILER) == ["npu"]
    assert mark_targets(part, {"npu": NPU}) == 1
    assert marks(part, COMPILER) == [None]
    assert [body.nodes[0].metadata for body in part.main.nodes[0].bodies] == [{COMPILER: "npu"}, {}]


def test_nodes_of_composites_are_not_marked() -> None:
    of = model(TEXT)
    merge_composites(of, [("npu.neg", "(p) => (q) { q = Neg(p) }")])
    mark_targets(of, {"npu": OperatorSupport({"Neg": None})})
    assert all(not node.metadata.get(COMPILER) for f in of.functions for node in f.nodes)


def test_adjacent_nodes_of_one_target_are_a_region() -> None:
    of = model(TEXT)
    mark_targets(of, {"npu": NPU, "dsp": DSP})
    assert merge_regions(of) == 3
    assert marks(of, REGION) == ["npu_0", "npu_0", "dsp_0", "npu_1", "npu_1"]
    assert merge_regions(of) == 3
    assert marks(of, REGION) == ["npu_0", "npu_0", "dsp_0", "npu_1", "npu_1"]


def test_a_region_keeps_its_name_and_new_ones_get_free_names() -> None:
    of = model(TEXT)
    mark_targets(of, {"npu": NPU})
    of.main.set_metadata(of.main.nodes[3], {COMPILER: "npu", REGION: "npu_0"})
    of.main.set_metadata(of.main.nodes[4], {COMPILER: "npu", REGION: "npu_0"})
    assert merge_regions(of) == 2
    assert marks(of, REGION) == ["npu_1", "npu_1", None, "npu_0", "npu_0"]


def test_two_regions_of_one_name_are_told_apart() -> None:
    of = model(TEXT)
    for node in of.main.nodes:
        if node.op_type != "Sin":
            of.main.set_metadata(node, {COMPILER: "npu", REGION: "r"})
    assert merge_regions(of) == 2
    assert marks(of, REGION) == ["r", "r", None, "npu_0", "npu_0"]


def test_no_region_has_the_name_of_a_function() -> None:
    text = """g (float[2] x) => (float[2] y) { a = Neg(x)  y = f.npu_0(a) }
        <opset_import: ["" : 21], domain: "f"> npu_0 (p) => (q) { q = Sin(p) }"""
    of = model(text, '<ir_version: 10, opset_import: ["" : 21, "f" : 1]>\n')
    mark_targets(of, {"npu": OperatorSupport({"Neg": None})})
    merge_regions(of)
    assert marks(of, REGION) == ["npu_1", None]


def test_regions_do_not_cross_devices() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  y = Neg(b) }")
    of.main.set_metadata(of.main.nodes[2], {DEVICE: "1"})
    mark_targets(of, {"npu": NPU})
    assert merge_regions(of) == 2
    assert marks(of, REGION) == ["npu_0", "npu_0", "npu_1"]


def test_a_constant_that_only_a_region_reads_belongs_to_it() -> None:
    of = model("""g (float[2] x) => (float[2] y) {
        k = Constant<value_floats=[1.0, 2.0]>()  a = Add(x, k)  y = Neg(a) }""")
    mark_targets(of, {"npu": NPU})
    assert merge_regions(of) == 1
    assert marks(of, REGION) == ["npu_0"] * 3
    assert marks(of, COMPILER) == ["npu"] * 3


def test_partitions_are_read_from_the_marks() -> None:
    of = model(TEXT)
    mark_targets(of, {"npu": NPU})
    alone = [(part.target, labels(part.nodes)) for part in marked_partitions(of.main)]
    assert alone == [("npu", ["a"]), ("npu", ["b"]), ("npu", ["d"]), ("npu", ["y"])]
    merge_regions(of)
    found = [(part.id, part.target, labels(part.nodes)) for part in marked_partitions(of.main)]
    assert found == [(0, "npu", ["a", "b"]), (1, "npu", ["d", "y"])]


def test_regions_that_form_a_cycle_are_an_error() -> None:
    of = model(TEXT)
    for at in (0, 4):
        of.main.set_metadata(of.main.nodes[at], {COMPILER: "npu", REGION: "r"})
    with pytest.raises(ModelError, match="form a cycle: a path leaves a region and returns to it"):
        marked_partitions(of.main)


def test_a_region_without_a_target_is_none() -> None:
    of = model(TEXT)
    of.main.set_metadata(of.main.nodes[0], {REGION: "r"})
    of.main.set_metadata(of.main.nodes[1], {COMPILER: ""})
    assert marked_partitions(of.main) == []


def test_regions_become_calls_of_functions() -> None:
    of = model(TEXT)
    source = of.to_proto()
    mark_targets(of, {"npu": NPU})
    merge_regions(of)
    assert partition_graph(of) is of
    nodes = [(node.domain, node.op_type) for node in of.main.topological_order()]
    assert nodes == [("tiered.npu", "npu_0"), ("", "Sin"), ("tiered.npu", "npu_1")]
    assert [node.metadata.get(COMPILER) for node in of.main.topological_order()] == [
        "npu", None, "npu"
    ]  # fmt: skip
    assert_same_outputs(source, of.to_proto())
    assert cut_out_regions(of) == []
    assert mark_targets(of, {"npu": NPU}) == 0


def test_a_region_without_a_name_has_that_of_its_target() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Sin(x)  y = Neg(a) }")
    mark_targets(of, {"npu": NPU})
    (call,) = cut_out_regions(of)
    assert call.op_type == "npu_0"


def test_a_region_that_nothing_reads_stays() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Sin(x) }")
    mark_targets(of, {"npu": NPU})
    assert cut_out_regions(of) == []


def test_regions_become_models_and_the_model_stays() -> None:
    of = model(TEXT)
    mark_targets(of, {"npu": NPU})
    merge_regions(of)
    before = of.to_proto()
    plan = partition_graph(of, as_models=True)
    assert isinstance(plan, Plan)
    assert [part.target for part in plan.parts] == ["npu", "host", "npu"]
    assert of.to_proto() == before


def test_an_old_ir_version_has_no_metadata() -> None:
    of = model(TEXT, '<ir_version: 9, opset_import: ["" : 21]>\n')
    with pytest.raises(ModelError, match="or use the partitioner, which needs no marks"):
        mark_targets(of, {"npu": NPU})


def marked(text: str, *operators: str) -> str:
    """Return the target of each node, "." for none, where the target takes some operators."""
    of = model(text)
    mark_targets(of, {"npu": OperatorSupport(dict.fromkeys(operators))})
    return " ".join(node.metadata.get(COMPILER, ".") for node in of.main.nodes)


def test_constants_and_what_follows_from_them_alone_have_no_mark() -> None:
    for text, operators, expected in (
        ("g (float[2] x) => (float[2] y) { k = Constant<value_floats=[1., 2.]>()  y = Add(x, k) }",
         ("Constant", "Add"), ". npu"),
        ("g () => (float[2] y) { a = RandomNormal<shape=[2]>()  y = Sin(a) }",
         ("RandomNormal",), "npu ."),
        ("g (float[2] x) => (float[2] y) <float[2] w = {1,2}, float m = {1}> "
         "{ a = Clip(w, , m)  b = Sin(a)  y = Add(x, b) }", ("Clip",), ". . ."),
        ("g (float[2] x) => (float[2] y) <float[2] w = {1,2}, float m = {1}> "
         "{ a = Clip(w, , m)  b = Clip(x, , a)  y = Sin(b) }", ("Clip",), "npu npu ."),
    ):  # fmt: skip
        assert marked(text, *operators) == expected, text


def test_a_region_that_is_there_is_not_edited_again() -> None:
    of = model(TEXT)
    mark_targets(of, {"npu": NPU})
    merge_regions(of)
    before, count = of.journal.stamp(), of.gate.count
    assert merge_regions(of) == 2
    assert not of.journal.moved_since(before)
    assert of.gate.count == count


def test_calls_of_regions_belong_to_no_other_region() -> None:
    of = model(TEXT)
    for at in (0, 1):
        of.main.set_metadata(of.main.nodes[at], {COMPILER: "npu", REGION: "own"})
    (call,) = cut_out_regions(of)
    assert call.op_type == "own"
    assert merge_regions(of) == 0
    of.main.set_metadata(call, {})
    assert mark_targets(of, {"npu": NPU}) == 2
    assert call.metadata == {}


def test_a_constant_is_of_a_partition_if_its_region_is_named() -> None:
    of = model("""g (float[2] x) => (float[2] y) {
        k = Constant<value_floats=[1.0, 2.0]>()  y = Add(x, k) }""")
    for metadata, expected in (({}, [["y"]]), ({REGION: "r"}, [["k", "y"]])):
        for node in of.main.nodes:
            of.main.set_metadata(node, {COMPILER: "npu", **metadata})
        assert [labels(part.nodes) for part in marked_partitions(of.main)] == expected


def test_a_marked_constant_is_in_no_region_of_its_own() -> None:
    of = model("""g (float[2] x) => (float[2] y) {
        k = Constant<value_float=2.0>()  a = Mul(x, k)  y = Sin(k) }""")
    for node in of.main.nodes[:2]:
        of.main.set_metadata(node, {COMPILER: "npu"})
    assert [labels(part.nodes) for part in marked_partitions(of.main)] == [["a"]]
    assert merge_regions(of) == 1
    assert marks(of, REGION) == [None, "npu_0", None]
