import pytest

from tiered import Backend, Model, ModelError, PassContext, TargetError, get_pass
from tiered.backends import Bounds
from tiered.testing import assert_unchanged, parse

PASS = "final_check"


def test_a_valid_model_passes() -> None:
    assert_unchanged(PASS, "(float[2] x) => (float[2] y) { y = Relu(x) }")


def test_what_the_passes_broke_is_an_error() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Softmax<axis=0>(x) }"))
    (node,) = model.main.nodes
    model.main.set_attribute(node, "alpha", 1.0)
    with pytest.raises(ModelError, match=r"onnx.checker rejects the result: .*alpha"):
        get_pass(PASS).apply(model)


def test_a_model_that_was_invalid_already_is_noted() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Relu<alpha=1.0>(x) }"))
    get_pass(PASS).apply(model)
    (note,) = model.notes
    assert note.startswith("onnx.checker rejects the model as it was loaded: ")
    assert "alpha" in note


def test_what_the_backend_does_not_take_is_a_remark() -> None:
    target = Backend(name="npu", opset=Bounds(7, 13))
    text = "(float[2] x) => (float[2] y) { y = Relu(x) }"
    assert_unchanged(
        PASS, text, backend=target, because="npu does not take it: the target has no such operator"
    )
    assert_unchanged(
        PASS,
        text,
        backend=target,
        because="npu does not take the model: opset 21; it takes 7 to 13",
    )


def test_under_strict_it_is_an_error() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    with (
        PassContext(backend=Backend(name="npu"), strict=True),
        pytest.raises(TargetError, match="npu does not take the model: Relu: the target has no"),
    ):
        get_pass(PASS)(model)
