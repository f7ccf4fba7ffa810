"""merge_compiler_regions: adjacent marked nodes become regions, without cycles."""

import onnx

from tests.module_passes.partition.targets import NPU, marks
from tiered import PassContext, Sequential, get_pass
from tiered.testing import assert_unchanged, parse


def _regions(text: str) -> list[str | None]:
    with PassContext(backend=NPU):
        made = Sequential(["annotate_target", "merge_compiler_regions"])(parse(text))
        again = Sequential(["annotate_target", "merge_compiler_regions"])(made)
    assert made == again
    return marks(made.graph, "tiered.region")


def test_adjacent_nodes_are_one_region() -> None:
    text = "(float[2] x) => (float[2] y) { a = Neg(x) b = Abs(a) c = Sin(b) d = Neg(c) y = Abs(d) }"
    assert _regions(text) == ["npu_0", "npu_0", None, "npu_1", "npu_1"]


def test_a_path_that_leaves_and_returns_separates() -> None:
    text = "(float[2] x) => (float[2] y) { a = Neg(x) b = Sin(a) y = Add(a, b) }"
    assert _regions(text) == ["npu_0", None, "npu_1"]


def test_independent_nodes_are_regions_of_their_own() -> None:
    text = "(float[2] x) => (float[2] p, float[2] q) { p = Neg(x) q = Abs(x) }"
    assert _regions(text) == ["npu_0", "npu_1"]


def test_a_constant_that_one_region_reads_belongs_to_it() -> None:
    text = (
        "(float[2] x) => (float[2] y, float[2] z) { k = Constant<value_float=2.0>() "
        "l = Constant<value_float=3.0>() a = Add(x, k) b = Add(a, l) z = Sin(l) y = Sin(b) }"
    )
    assert _regions(text) == ["npu_0", None, "npu_0", "npu_0", None, None]


def test_devices_separate_regions() -> None:
    model = parse("(float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }")
    model.graph.node[1].metadata_props.add(key="tiered.device", value="1")
    with PassContext(backend=NPU):
        made = Sequential(["annotate_target", "merge_compiler_regions"])(model)
    assert marks(made.graph, "tiered.region") == ["npu_0", "npu_1"]
    assert marks(made.graph, "tiered.device") == [None, "1"]


def test_without_marks_there_is_nothing_to_do() -> None:
    assert_unchanged("merge_compiler_regions", "(float[2] x) => (float[2] y) { y = Neg(x) }")


def test_regions_are_never_fused_with_each_other() -> None:
    model = parse(
        "(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,2,1,1] w = {1,2,3,4}, "
        "float[1,2,1,1] b = {1,2}> { h = Conv(x, w) y = Add(h, b) }"
    )
    for node, region in zip(model.graph.node, ("npu_0", "npu_1"), strict=True):
        node.metadata_props.add(key="tiered.compiler", value="npu")
        node.metadata_props.add(key="tiered.region", value=region)
    with PassContext(3):
        made: onnx.ModelProto = get_pass("fuse_bias_add")(model)
    assert made == model
