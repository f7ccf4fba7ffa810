"""annotate_target: the first target that takes a node marks it."""

import onnx
import pytest

from tests.module_passes.partition.targets import NPU, marks, registered, target
from tiered import ModelError, PassContext, get_pass
from tiered.testing import assert_unchanged, parse

TEXT = "(float[2] x) => (float[2] y) { a = Neg(x) b = Sin(a) y = Abs(b) }"


def _marks(model: onnx.ModelProto, key: str = "tiered.compiler") -> list[str | None]:
    return marks(model.graph, key)


def test_the_backend_of_the_context_marks_its_nodes() -> None:
    with PassContext(backend=NPU):
        made = get_pass("annotate_target")(parse(TEXT))
    assert _marks(made) == ["npu", None, "npu"]
    assert [node.op_type for node in made.graph.node] == ["Neg", "Sin", "Abs"]


def test_the_first_target_that_takes_a_node_gets_it() -> None:
    with registered(NPU, target("dsp", "Neg", "Sin")):
        made = get_pass("annotate_target", targets=["npu", "dsp"])(parse(TEXT))
        assert _marks(made) == ["npu", "dsp", "npu"]
        made = get_pass("annotate_target", targets=["dsp", "npu"])(parse(TEXT))
        assert _marks(made) == ["dsp", "dsp", "npu"]


def test_marks_that_are_there_stay() -> None:
    model = parse(TEXT)
    model.graph.node[0].metadata_props.add(key="tiered.compiler", value="other")
    with PassContext(backend=NPU):
        made = get_pass("annotate_target")(model)
        assert _marks(made) == ["other", None, "npu"]
        assert get_pass("annotate_target")(made) == made


def test_a_node_that_is_left_alone_is_not_marked() -> None:
    model = parse(TEXT)
    model.graph.node[0].metadata_props.add(key="tiered.skip_optimization", value="1")
    with PassContext(backend=NPU):
        assert _marks(get_pass("annotate_target")(model)) == [None, None, "npu"]


IF = (
    "(float[2] x, bool c) => (float[2] y) {{ y = If <"
    "then_branch = t () => (float[2] p) {{ p = Neg(x) }}, "
    "else_branch = e () => (float[2] q) {{ q = {}(x) }}> (c) }}"
)


def test_an_if_is_marked_if_its_bodies_agree() -> None:
    with PassContext(backend=target("npu", "Neg", "Abs", "If")):
        whole = get_pass("annotate_target")(parse(IF.format("Abs")))
        part = get_pass("annotate_target")(parse(IF.format("Sin")))
    assert _marks(whole) == ["npu"]
    assert [marks(a.g, "tiered.compiler") for a in whole.graph.node[0].attribute] == [[None]] * 2
    assert _marks(part) == [None]
    inner = [marks(a.g, "tiered.compiler") for a in part.graph.node[0].attribute]
    assert inner == [["npu"], [None]]


def test_what_is_computed_of_constants_belongs_to_its_readers() -> None:
    text = (
        "(float[2] x) => (float[2] y, float[2] z) <int8[2] w = {1,2}, float s = {0.5}> "
        "{ a = DequantizeLinear(w, s) b = Neg(a) c = Sin(x) y = Add(c, b) "
        "d = DequantizeLinear(w, s) z = Sin(d) }"
    )
    with PassContext(backend=target("npu", "DequantizeLinear", "Neg")):
        assert _marks(get_pass("annotate_target")(parse(text))) == [None] * 6
    with PassContext(backend=target("npu", "DequantizeLinear", "Neg", "Add")):
        made = get_pass("annotate_target")(parse(text))
        assert _marks(made) == ["npu", "npu", None, "npu", None, None]
        assert get_pass("annotate_target")(made) == made


def test_without_a_target_there_is_nothing_to_do() -> None:
    assert_unchanged("annotate_target", TEXT)


def test_an_old_ir_version_is_a_clear_error() -> None:
    text = '<ir_version: 9, opset_import: ["" : 17]> g ' + TEXT
    with (
        PassContext(backend=NPU),
        pytest.raises(ModelError, match="IR version 9, and marks are metadata of nodes"),
    ):
        get_pass("annotate_target")(parse(text))
