"""How forms of a model are named."""

from tiered.extensions.tuning.model_forms import UNTOUCHED, ModelForm


def test_a_form_of_the_model_is_named_by_its_options() -> None:
    assert (
        str(ModelForm(3, "onnxruntime_cpu", disabled=("a",)))
        == "-O3 --backend onnxruntime_cpu --disable a"
    )
    assert str(ModelForm(None)) == UNTOUCHED


def test_a_form_of_a_candidate_is_named_by_its_file() -> None:
    assert str(ModelForm(None, file="peer.onnx")) == "peer.onnx"
    assert str(ModelForm(3, file="peer.onnx")) == "peer.onnx -O3" != str(ModelForm(3))
