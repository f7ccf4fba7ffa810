import json

import pytest

from tests.cli.conftest import Cli
from tests.house.reasons import skip_reasons
from tests.house.tree import PassFile, pass_files
from tiered.cli.commands.docs import reference
from tiered.passes.interface.registry import registry


def test_the_page_has_the_law_the_guards_and_the_place(cli: Cli) -> None:
    ended = cli("docs", "fuse_consecutive_reshape")
    assert (ended.code, ended.err) == (0, "")
    assert "Reshape(Reshape(x, _), shape)" in ended.out
    assert "leaves a node alone if:" in ended.out
    assert "numerics:" in ended.out
    assert "in the default pipeline:" in ended.out


def test_json_has_the_same(cli: Cli) -> None:
    page = json.loads(cli("docs", "fuse_consecutive_reshape", "--json").out)
    assert page["name"] == "fuse_consecutive_reshape"
    assert page["guards"]
    assert page["pipeline"]
    assert page["aliases"] == sorted(page["aliases"])


def test_the_page_says_how_the_rule_is_proved(cli: Cli) -> None:
    exact = cli("docs", "fuse_consecutive_reshape").out
    assert "generated instances is proved bit for bit" in exact
    assert "instances are proved: masks" in cli("docs", "fuse_attention").out
    page = json.loads(cli("docs", "fuse_gelu", "--json").out)
    assert page["proved"]["domain"] == "reals"
    assert json.loads(cli("docs", "quantize", "--json").out)["proved"] is None


def test_an_alias_leads_to_its_pass(cli: Cli) -> None:
    assert "fold_constant" in cli("docs", "FoldConstant").out


def test_what_requires_a_pass_is_listed() -> None:
    names = registry.names()
    needed = next(name for name in names if registry.named(name).info.required)
    first = registry.named(needed).info.required[0]
    assert needed in reference(registry.named(first).info)["required_by"]


@pytest.mark.parametrize("file", pass_files()[::8], ids=str)
def test_each_guard_of_a_file_is_on_its_page(file: PassFile) -> None:
    found = reference(registry.named(file.name).info)["guards"]
    assert set(found) == set(skip_reasons(file.parse()))


def test_a_name_that_no_pass_has_is_an_error(cli: Cli) -> None:
    ended = cli("docs", "fuse_consecutive_reshapes")
    assert ended.code == 2
    assert "did you mean" in ended.err
