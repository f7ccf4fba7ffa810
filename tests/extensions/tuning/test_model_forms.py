"""How forms of a model are named."""

from tiered.extensions.tuning.model_forms import UNTOUCHED, Form


def test_a_form_of_the_model_is_named_by_its_options() -> None:
    assert (
        str(Form(3, "onnxruntime_cpu", disabled=("a",)))
        == "-O3 --backend onnxruntime_cpu --disable a"
    )
    assert str(Form(None)) == UNTOUCHED


def test_a_form_of_a_candidate_is_named_by_its_file() -> None:
    assert str(Form(None, file="peer.onnx")) == "peer.onnx"
    assert str(Form(3, file="peer.onnx")) == "peer.onnx -O3" != str(Form(3))
