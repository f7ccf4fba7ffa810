import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tiered import pass_names


def test_the_table_has_every_pass_on_one_line(cli: Cli) -> None:
    ended = cli("passes")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    for name in pass_names():
        assert sum(line.split()[:1] == [name] for line in lines) == 1
    assert f"{len(pass_names())} passes" in lines


def test_a_pass_is_described_with_law_options_and_aliases(cli: Cli) -> None:
    shown = cli("passes", "fold_constant").out
    for text in ("=>", "max_growth", "1%", "a size such as", "exact", "constant_folding"):
        assert text in shown
    assert "fold_constant.py" in shown
    assert "Args:" not in shown


def test_a_file_is_named_from_the_working_directory_if_it_lies_there(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = Path(json.loads(cli("passes", "fold_constant", "--json").out)["source"])
    monkeypatch.chdir(file.parent)
    assert "file:        fold_constant.py\n" in cli("passes", "fold_constant").out
    monkeypatch.chdir(tmp_path)
    assert f"file:        {file}\n" in cli("passes", "fold_constant").out


def test_an_opt_in_pass_says_that_it_runs_only_when_required(cli: Cli) -> None:
    shown = cli("passes", "remove_initializer_from_input").out
    assert "opt-in (runs only when required)" in shown
    assert "interface" in shown


@pytest.mark.parametrize("name", ["FoldConstant", "fold-constant", "constant_folding"])
def test_other_names_find_the_pass(cli: Cli, name: str) -> None:
    assert json.loads(cli("passes", name, "--json").out)["name"] == "fold_constant"


def test_operators_beyond_onnx_are_named(cli: Cli) -> None:
    needs = cli("passes", "fuse_quick_gelu").out
    assert "needs:       com.microsoft::QuickGelu" in needs
    offers = cli("passes", "fuse_gelu").out
    assert "offers:      com.microsoft::Gelu" in offers
    assert "needs:" not in offers


def test_an_unknown_pass_is_a_usage_error_with_a_suggestion(cli: Cli) -> None:
    ended = cli("passes", "fold_constnat")
    assert (ended.code, ended.out) == (2, "")
    assert "did you mean 'fold_constant'?" in ended.err


def test_json_describes_all_passes_alike(cli: Cli) -> None:
    described = json.loads(cli("passes", "--json").out)
    assert [entry["name"] for entry in described] == list(pass_names())
    fields = "name kind opt_level numerics changes_interface analysis law doc options required"
    fields += " followed_by conflicts needs offers quantization aliases source"
    expected = {*fields.split()}
    assert all(entry.keys() == expected for entry in described)
    one = next(entry for entry in described if entry["name"] == "fold_constant")
    assert one == json.loads(cli("passes", "fold_constant", "--json").out)
    option = one["options"][0]
    assert option.keys() == {"name", "takes", "default", "doc"}
    opt_in = next(e for e in described if e["name"] == "remove_initializer_from_input")
    assert opt_in["opt_level"] is None
