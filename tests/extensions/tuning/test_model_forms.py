"""How forms of a model are named."""

from tiered.extensions.tuning.model_forms import (
    UNTOUCHED,
    Choice,
    Made,
    ModelForm,
    compatible,
    with_choices,
)


def test_a_form_of_the_model_is_named_by_its_options() -> None:
    assert (
        str(ModelForm(3, "onnxruntime_cpu", disabled=("a",)))
        == "-O3 --backend onnxruntime_cpu --disable a"
    )
    assert str(ModelForm(None)) == UNTOUCHED


def test_a_form_of_a_candidate_is_named_by_its_file() -> None:
    assert str(ModelForm(None, file="peer.onnx")) == "peer.onnx"
    assert str(ModelForm(3, file="peer.onnx")) == "peer.onnx -O3" != str(ModelForm(3))


def test_the_settings_and_options_of_a_form() -> None:
    whole = ModelForm(2, "npu", ("a",), ("b", "c@'n'"), ("drop d",))
    assert whole.settings == {
        "opt_level": 2, "backend": "npu", "required": ["a"], "disabled": ["b", "c@'n'"],
        "edits": ["drop d"],
    }  # fmt: skip
    assert " ".join(whole.options) == (
        "-O2 --backend npu --require a --disable b --disable c@'n' --edit drop d"
    )
    assert ModelForm(0).settings["backend"] is None
    assert (ModelForm(None).settings, ModelForm(None).options) == ({}, ())


def test_choices_are_of_passes_and_some_of_nodes() -> None:
    for choice, passes, is_scoped in (
        (Choice("", disabled=("a", "b@'n'")), {"a", "b"}, False),
        (Choice("", required=("a@'m'",), disabled=("b@'n'",)), {"a", "b"}, True),
        (Choice("", edits=("set c{x=1}", "drop d.e", "?")), {"c", "d.e"}, False),
        (Choice("", disabled=("b@'n'",), edits=("drop d",)), {"b", "d"}, False),
        (Choice(""), set(), True),
    ):  # fmt: skip
        assert choice.passes == passes, choice
        assert choice.is_scoped == is_scoped, choice


def test_of_choices_about_one_pass_the_first_is_kept_unless_all_are_of_nodes() -> None:
    whole, one, two, other = (
        Choice(name, disabled=(name,)) for name in ("a", "a@'m'", "a@'n'", "b")
    )
    assert compatible([whole, one, other]) == [whole, other]
    assert compatible([one, two, whole]) == [one, two]
    assert compatible([two, whole, one]) == [two, one]
    form = with_choices(ModelForm(3, disabled=("b",)), [one, other, two, one])
    assert form.disabled == ("b", "a@'m'", "a@'n'")


def test_forms_are_equal_by_their_files() -> None:
    one, same, other = (Made(ModelForm(3), "p", digest, 1, 2) for digest in "aab")
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != "a"
