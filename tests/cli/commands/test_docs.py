import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.house.reasons import skip_reasons
from tests.house.tree import PassFile, pass_files
from tiered.cli.commands.docs import reference
from tiered.cli.commands.passes import names_of
from tiered.passes.interface.registry import registry
from tiered.support.errors import ModelError


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("docs")


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


def test_shared_conditions_are_named(cli: Cli) -> None:
    page = reference(registry.named("fuse_attention").info)
    assert page["vocabularies"]
    assert page["vocabularies"] == sorted(page["vocabularies"])
    assert all(module.startswith("tiered.rewriter.idioms.") for module in page["vocabularies"])
    said = cli("docs", "fuse_attention").out
    assert f"  further conditions: {page['vocabularies'][0]}\n" in said


PASS = '''"""Neg(x)  =>  x"""
from tiered import Graph, Skip, Unable, Value, op, rewrite, var
from tiered.rewriter.idioms.scale import scaled

@rewrite(op.Neg(var.x), opt_level=3, required=("fold_constant",))
def drop_sign(graph: Graph, x: Value) -> Value | Skip:
    """Of no meaning."""
    if x.rank == 1:
        return Skip("it has {} dims", 1)
    if x.rank == 2:
        return Skip("later"); Skip("{}", 3)
    Unable("no way"); Skip(reason); Skip("later"); print("no reason")
    return x
'''


def test_the_guards_of_a_pass_of_ones_own_are_read_in_order(tmp_path: Path) -> None:
    file = tmp_path / "drop_sign.py"
    file.write_text(PASS)
    info = registry.named("fold_constant").info._replace(name="drop_sign", source=str(file))
    page = reference(info)
    assert page["guards"] == ["it has {} dims", "later", "no way"]
    assert page["vocabularies"] == ["tiered.rewriter.idioms.scale"]
    assert (page["required_by"], page["pipeline"], page["proved"]) == ([], [], None)


def test_a_pass_without_a_file_has_no_guards() -> None:
    info = registry.named("fold_constant").info
    assert reference(info._replace(source="<stdin>"))["guards"] == []


@pytest.mark.parametrize("content", [b"def (", b"\xff"])
def test_a_file_that_is_no_python_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.py").write_bytes(content)
    info = registry.named("fold_constant").info._replace(source=str(tmp_path / "broken.py"))
    with pytest.raises(ModelError, match=r"cannot read the pass '.*broken\.py': "):
        reference(info)


def test_places_in_the_default_pipeline_have_their_groups(cli: Cli) -> None:
    for name in ("fold_constant", "eliminate_identity", "quantize"):
        page = reference(registry.named(name).info)
        count = len(page["pipeline"])
        said = "no" if not count else f"{count} time{'s' if count > 1 else ''}"
        assert f"  in the default pipeline: {said}\n" in cli("docs", name).out
        assert all(page["pipeline"])
    assert reference(registry.named("fold_constant").info)["required_by"] == sorted(
        name for name in registry.names() if "fold_constant" in registry.named(name).info.required
    )


def test_a_name_of_two_passes_has_two_pages(cli: Cli) -> None:
    pages = json.loads(cli("docs", "delete_isolated", "--json").out)
    assert [page["name"] for page in pages] == list(names_of("delete_isolated"))
    assert len(pages) == 2
