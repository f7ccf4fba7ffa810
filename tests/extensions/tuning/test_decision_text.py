"""A tuned decision as text: a pipeline, and a backend in TOML, that make it again."""

import tomllib

import onnx
import pytest

from tiered import PassContext, Sequential, get_backend, optimize
from tiered.extensions.tuning.decision_text import (
    _quoted,
    _replacing,
    _taken,
    backend_toml,
    pipeline_text,
)
from tiered.extensions.tuning.model_forms import ModelForm
from tiered.passes.interface.pass_info import Place
from tiered.pipeline.sequential import parse_pipeline
from tiered.testing import parse

TEXT = """(float[2,4] x) => (float[2,4] y) <float[4,4] w = {W}> {
    a = Identity(x)  [m] b = MatMul(a, w)  [g] c = Gelu(b)  [h] d = Gelu(c)  y = Relu(d) }"""
MODEL = parse(TEXT.replace("W", ",".join(map(str, range(16)))))
FORMS = {
    "level 2": ModelForm(2),
    "level 3": ModelForm(3),
    "disabled": ModelForm(3, disabled=("eliminate_identity",)),
    "disabled at a node": ModelForm(3, disabled=("eliminate_identity@a",)),
    "required": ModelForm(1, required=("fuse_gelu",)),
    "backend": ModelForm(3, "onnxruntime_cpu"),
    "edit": ModelForm(2, edits=("drop eliminate_identity",)),
}


def made(**settings: object) -> bytes:
    result = optimize(MODEL, **settings)  # type: ignore[call-overload]  # of any
    assert isinstance(result, onnx.ModelProto)
    return result.SerializeToString(deterministic=True)


@pytest.mark.parametrize("name", FORMS)
def test_the_pipeline_as_text_makes_the_same_bytes(name: str) -> None:
    form = FORMS[name]
    text = pipeline_text(form)
    assert parse_pipeline(text).text == text
    again = made(passes=text, backend=form.backend or None)
    assert again == made(**form.settings)


def test_a_file_as_it_is_has_no_passes() -> None:
    assert pipeline_text(ModelForm(None)) == ""
    assert backend_toml(ModelForm(None, file="a.onnx"), "tuned", ["why"]) == ""


def test_disabled_passes_are_not_in_the_text() -> None:
    assert "eliminate_identity" in pipeline_text(ModelForm(2))
    assert "eliminate_identity" not in pipeline_text(ModelForm(2, disabled=("eliminate_identity",)))
    assert "not:a" in pipeline_text(ModelForm(2, disabled=("eliminate_identity@a",)))


@pytest.mark.parametrize("name", FORMS)
def test_the_backend_makes_the_same_bytes(name: str, tmp_path: object) -> None:
    form = FORMS[name]
    path = f"{tmp_path}/tuned.toml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(backend_toml(form, "tuned", ["because"]))
    assert get_backend(path).name == "tuned"
    assert made(opt_level=form.level, backend=path) == made(**form.settings)


def test_a_backend_says_how_it_was_found_and_is_used() -> None:
    form = ModelForm(
        3, disabled=("fuse_gelu", "eliminate_identity@a"), required=("eliminate_identity",),
        edits=("drop fold_constant",),
    )  # fmt: skip
    text = backend_toml(form, 'my "own"', ["without fuse_gelu: 3 %", "more"])
    assert text.startswith(
        "# without fuse_gelu: 3 %\n# more\n"
        "# Use it with: tiered optimize MODEL OUT -O3 --backend FILE\n"
    )
    found = tomllib.loads(text)
    assert (found["api_version"], found["name"], found["extends"]) == (1, 'my "own"', "portable")
    reasons = {entry["edit"]: entry["why"] for entry in found["pipeline"]}
    assert reasons["drop fold_constant"] == "better so"
    assert reasons["drop fuse_gelu"] == "better without it"
    whys = [entry["why"] for entry in found["pipeline"]]
    assert "better without it at some nodes" in whys
    assert whys[-1] == "better with it"
    assert text.endswith("\n")


def test_a_backend_extends_the_one_that_was_used() -> None:
    assert tomllib.loads(backend_toml(ModelForm(3, "onnxruntime_cpu"), "t", []))["extends"] == (
        "onnxruntime_cpu"
    )


@pytest.mark.parametrize("text", ['a"b', "a\\b", "a\nb", "a\x7fb", "ä€", "", "\x00\x1f"])
def test_strings_of_toml(text: str) -> None:
    assert tomllib.loads(f"a = {_quoted(text)}")["a"] == text


PIPELINE = "g(eliminate_identity,fold_constant),fix(eliminate_deadend,eliminate_identity)"


@pytest.mark.parametrize(
    ("disabled", "expected"),
    [
        ([], PIPELINE),
        (["eliminate_identity"], "g(fold_constant),fix(eliminate_deadend)"),
        (["eliminate_identity", "fold_constant"], "fix(eliminate_deadend)"),
        (["eliminate_*"], "(g(fold_constant))"),
        (["eliminate_identity@a"], "g(eliminate_identity@'not:a',fold_constant),"
         "fix(eliminate_deadend,eliminate_identity@'not:a')"),
    ],
)  # fmt: skip
def test_groups_without_passes_are_left_out(disabled: list[str], expected: str) -> None:
    context = PassContext(opt_level=3, disabled=disabled)
    assert Sequential(_taken(parse_pipeline(PIPELINE), context, Place())).text == expected


def test_each_occurrence_is_replaced_by_its_number() -> None:
    pipeline = parse_pipeline(PIPELINE)
    assert [*_replacing(pipeline, "fold_constant", "@a")] == [
        "replace fold_constant: fold_constant@a"
    ]
    assert [*_replacing(pipeline, "eliminate_identity", "")] == [
        "replace eliminate_identity:1: eliminate_identity",
        "replace eliminate_identity:2: eliminate_identity",
    ]


def test_scopes_and_groups_without_a_name_stay() -> None:
    for text, settings, expected in (
        ("(eliminate_identity,fold_constant),eliminate_deadend", {"opt_level": 3},
         "(eliminate_identity,fold_constant),eliminate_deadend"),
        ("fuse_gelu,eliminate_deadend", {"opt_level": 0, "required": ["fuse_gelu@a"]},
         "fuse_gelu@'a',eliminate_deadend"),
        ("fuse_gelu,eliminate_deadend",
         {"opt_level": 3, "disabled": ["fuse_gelu@a"], "required": ["fuse_gelu@b"]},
         "fuse_gelu@'not:a'@'b',eliminate_deadend"),
    ):  # fmt: skip
        context = PassContext(**settings)
        assert Sequential(_taken(parse_pipeline(text), context, Place())).text == expected
