import pytest

from tiered import Model, ModelError, get_pass
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
