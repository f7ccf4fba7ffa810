"""auto_insert_remap: nodes with a mark for another tile layout."""

import onnx
import pytest

from tests.module_passes.partition.targets import marks
from tiered import ModelError, get_pass
from tiered.support.errors import OptionError
from tiered.testing import assert_unchanged, parse

TEXT = """(float[2,2] x, bool c) => (float[2,2] y) {
    m = MatMul(x, x) a = Add(m, x) s = Softmax(a) b = Add(s, x)
    y = If(c) <then_branch = t () => (float[2,2] p) { p = MatMul(b, x) },
               else_branch = e () => (float[2,2] q) { q = Identity(b) }> }"""


def _model(ir_version: int = 10) -> onnx.ModelProto:
    model = parse(TEXT)
    model.ir_version = ir_version
    return model


def test_products_are_marked_in_bodies_too() -> None:
    made = get_pass("auto_insert_remap")(_model())
    assert marks(made.graph, "tiered.remap") == ["outputs", None, None, None, None]
    (body,) = [each.g for each in made.graph.node[4].attribute if each.name == "then_branch"]
    assert marks(body, "tiered.remap") == ["outputs"]
    assert get_pass("auto_insert_remap")(made) == made


def test_the_add_before_softmax_is_marked() -> None:
    pass_ = get_pass("auto_insert_remap", remap_mode=["before_add"])
    assert marks(pass_(_model()).graph, "tiered.remap") == [None, "inputs", None, None, None]
    both = get_pass("auto_insert_remap", remap_mode=["after_matmul", "before_add"])
    assert marks(both(_model()).graph, "tiered.remap")[:2] == ["outputs", "inputs"]


def test_slices_are_marked() -> None:
    text = """(float[4] x) => (float[2] y) <int64[1] s = {0}, int64[1] e = {2}> {
        a = Slice(x, s, e) y = Abs(a) }"""
    pass_ = get_pass("auto_insert_remap", remap_mode=["after_matmul", "after_slice"])
    model = parse(text)
    model.ir_version = 10
    assert marks(pass_(model).graph, "tiered.remap") == ["outputs", None]


def test_no_node_is_to_be_marked() -> None:
    model = parse("(float[2] x) => (float[2] y) { y = Abs(x) }")
    model.ir_version = 10
    assert_unchanged("auto_insert_remap", model, because="no node is to be marked")


def test_unknown_modes_and_old_ir_versions_are_errors() -> None:
    with pytest.raises(OptionError, match="after_matmul"):
        get_pass("auto_insert_remap", remap_mode=["after_conv"])
    with pytest.raises(ModelError, match="which need 10"):
        get_pass("auto_insert_remap")(_model(9))
