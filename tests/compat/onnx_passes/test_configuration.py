"""The configuration of onnx-passes: what a file may say, and what is wrong with it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.recorded import assert_values
from tiered.compat.onnx_passes.configuration import Configuration, read_configuration
from tiered.support.errors import UsageError


def read(folder: Path, content: object, suffix: str = ".json") -> Configuration:
    path = folder / f"c{suffix}"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_configuration(str(path))


def test_an_empty_table_has_the_defaults(tmp_path: Path) -> None:
    assert read(tmp_path, {}) == Configuration()
    assert read(tmp_path, "", ".toml") == Configuration()
    everything = dict.fromkeys(
        ("exhaustive", "imports", "logging", "onnxruntime", "passes", "reference", "verify")
    )
    assert read(tmp_path, everything) == Configuration()


def test_all_parts_are_read(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {
            "imports": ["a", "b"],
            "passes": "cleanup",
            "exhaustive": True,
            "verify": {"tolerance": {"atol": 0.5}, "metrics": {"cosine": [0, 1.5]}},
            "reference": {"inp": ["x.npy"], "out": "y.npy"},
            "logging": {"verbose": True, "keep_intermediates": "steps"},
            "onnxruntime": {
                "full_context_dump": True, "providers": ["CPUExecutionProvider"],
            },
            "fold_constant": {"max_growth": "1%"},
        },
    )  # fmt: skip
    assert found == Configuration(
        imports=("a", "b"), passes=("cleanup",), exhaustive=True, verify=True,
        tolerance={"rtol": 1e-5, "atol": 0.5}, metrics={"cosine": (0.0, 1.5)},
        reference_inputs=("x.npy",), reference_outputs=("y.npy",), verbose=True,
        checkpoint="steps", all_values=True, sections={"fold_constant": {"max_growth": "1%"}},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "tolerance"),
    [
        ({}, {}),
        ({"rtol": 0}, {"rtol": 0, "atol": 1e-8}),
        ({"rtol": 1, "atol": 2.5}, {"rtol": 1, "atol": 2.5}),
    ],
)
def test_a_tolerance_that_is_missing_is_that_of_numpy(
    tmp_path: Path, given: object, tolerance: object
) -> None:
    assert read(tmp_path, {"verify": {"tolerance": given}}).tolerance == tolerance


@pytest.mark.parametrize(
    ("verify", "is_on"), [(True, True), (False, False), (None, False), ({"metrics": {}}, True)]
)
def test_verification_is_a_switch_or_a_table(tmp_path: Path, verify: object, is_on: bool) -> None:
    assert read(tmp_path, {"verify": verify}).verify is is_on


def test_the_checkpoint_comes_before_its_older_name(tmp_path: Path) -> None:
    both = {"checkpoint": "a", "keep_intermediates": "b"}
    assert read(tmp_path, {"logging": both}).checkpoint == "a"
    assert read(tmp_path, {"logging": {**both, "checkpoint": ""}}).checkpoint == "b"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"exhaustive": "false"}, "exhaustive is true or false, not 'false'"),
        ({"exhaustive": 1}, "exhaustive is true or false, not 1"),
        ({"logging": {"verbose": "no"}}, "verbose is true or false, not 'no'"),
        ({"onnxruntime": {"full_context_dump": "x"}}, "full_context_dump is true or false"),
        ({"logging": {"checkpoint": True}}, "the folder of logging is a string, not True"),
        ({"logging": {"keep_intermediates": 3}}, "the folder of logging is a string, not 3"),
        ({"verify": "yes"}, "verify is a table of metrics, tolerance, not 'yes'"),
        ({"verify": {"tolerance": 3}}, "tolerance is a table of atol, rtol, not 3"),
        (
            {"verify": {"tolerance": {"rtoll": 3}}},
            "tolerance.rtoll is unknown; did you mean 'rtol'",
        ),
        ({"verify": {"tolerance": {"rtol": "x"}}}, "tolerance.rtol is a number from 0 on, not 'x'"),
        ({"verify": {"tolerance": {"atol": -1e-9}}}, "tolerance.atol is a number from 0 on"),
        ({"verify": {"tolerance": {"atol": True}}}, "tolerance.atol is a number from 0 on"),
        ('{"verify": {"tolerance": {"atol": NaN}}}', "tolerance.atol is a number from 0 on"),
        ({"verify": {"metrics": {"cosine": [0]}}}, r"verify.metrics has cosine: \[lowest, highest"),
        ({"verify": {"metrics": {"cosine": ["a", 1]}}}, "verify.metrics has cosine"),
        ({"verify": {"metrics": [0, "x"]}}, "verify.metrics has metrics"),
        ({"reference": {"inp": [3]}}, r"inp is a list of texts, not \[3\]"),
        ({"imports": {"a": 1}}, "imports is a list of texts"),
        (
            {"onnxruntime": {"providers": "CUDA"}},
            "providers is CPUExecutionProvider here, not 'CUDA'",
        ),
        ({"onnxruntime": {"providers": [["CUDA", {}]]}}, "not 'CUDA'"),
        ({"onnxruntime": {"providers": [[]]}}, r"not \[\]"),
        ({"fold_constant": 3}, "'fold_constant' is unknown"),
        (
            {"no_pass": {}},
            "'no_pass' is unknown; .* expected exhaustive, imports, .*options of a pass",
        ),
        ({"loging": {}}, "'loging' is unknown; did you mean 'logging'"),
        ("[1]", "is no table of names, but list"),
        ("{", "c.json is no json: "),
    ],
)
def test_what_a_file_cannot_say_is_named(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(tmp_path, content)


def test_a_provider_may_have_options(tmp_path: Path) -> None:
    for providers in ([["CPUExecutionProvider", {}]], "CPUExecutionProvider", []):
        assert read(tmp_path, {"onnxruntime": {"providers": providers}}) == Configuration()


def test_sections_of_passes_that_a_module_registers_are_kept(tmp_path: Path) -> None:
    found = read(tmp_path, {"imports": "mine", "MyPass": {"x": 1}})
    assert found.sections == {"MyPass": {"x": 1}}
    with pytest.raises(UsageError, match="'MyPass' is unknown"):
        read(tmp_path, {"imports": "mine", "MyPass": 1})


@pytest.mark.parametrize(
    ("name", "options", "left"),
    [
        ("final_check", {"full_check": True, "skip_opset_compatibility_check": False}, {}),
        (
            "infer_shapes",
            {"check_type": True, "strict_mode": False, "annotate": True},
            {"annotate": True},
        ),
    ],
)
def test_options_without_an_effect_are_left_out(
    tmp_path: Path, name: str, options: object, left: object
) -> None:
    assert read(tmp_path, {name: options}).sections == {name: left}


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("final_check", "check_custom_domain", True),
        ("final_check", "skip_opset_compatibility_check", True),
        ("infer_shapes", "check_type", False),
        ("infer_shapes", "data_prop", False),
    ],
)
def test_options_that_would_have_an_effect_are_refused(
    tmp_path: Path, name: str, option: str, value: bool
) -> None:
    with pytest.raises(UsageError, match=f"{name}.{option} cannot be {value} here"):
        read(tmp_path, {name: {option: value}})


def test_yaml_may_have_no_suffix_and_needs_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(UsageError, match="is no YAML: YAML needs PyYAML: `pip install pyyaml`"):
        read(tmp_path, "passes: [a]", "")


def test_keys_of_yaml_are_texts(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    assert read(tmp_path, "", ".yaml") == Configuration()
    with pytest.raises(UsageError, match="3 is unknown; expected"):
        read(tmp_path, "3: x", ".yaml")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*none\.json"):
        read_configuration(str(tmp_path / "none.json"))
    (tmp_path / "c.json").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"cannot read .*c\.json"):
        read_configuration(str(tmp_path / "c.json"))


def test_contents_and_mistakes_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def read_here(content: object, suffix: str = ".json") -> Configuration:
        return read(Path(), content, suffix)

    names = {"read": read_here, "read_file": read_configuration}
    assert_values(__file__, names)
