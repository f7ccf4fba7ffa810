"""The pages of passes: each pass has one, with its law, its reasons and its picture."""

from pathlib import Path

import pytest

from docs.site import pass_pages
from docs.site.examples import example_of
from docs.site.indexes import index_pages
from docs.site.links import broken_links, missing_passes
from docs.site.markdown import text
from docs.site.pass_pages import own_passes, pass_page
from docs.site.pictures import picture_of
from tests.house.tree import pass_files
from tiered import testing
from tiered.cli.commands.docs import reference
from tiered.passes.interface.registry import registry


def test_each_file_of_a_pass_has_a_page() -> None:
    assert {file.name for file in pass_files()} == {info.name for info in own_passes()}


@pytest.mark.parametrize("name", sorted(file.name for file in pass_files())[::6])
def test_a_page_has_the_law_the_reasons_and_the_test(name: str) -> None:
    """A part of them: `make docs` makes each, which takes long."""
    info = registry.named(name).info
    page = pass_page(info)
    assert info.law in page
    assert all(f"- {text(guard)}\n" in page for guard in reference(info)["guards"])
    assert all(f"`{option.name}`" in page for option in info.options)
    assert ("## Before and after" in page) != info.analysis


def test_a_pass_without_an_example_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_pages, "example_of", lambda info: None)
    with pytest.raises(ValueError, match="no test shows what fuse_gelu makes of a model"):
        pass_page(registry.named("fuse_gelu").info)


def test_a_change_that_a_diagram_cannot_show_is_a_diff() -> None:
    page, unused, merged = (
        pass_page(registry.named(name).info)
        for name in ("annotate_target", "remove_unused_opsets", "merge_models")
    )
    assert "tiered-picture" not in page
    assert "\n+// metadata of Neg 'a' in g: tiered.compiler = npu\n" in page
    assert "-   opset_import:" in unused
    assert "The model in `second.onnx`:" in merged


def test_a_picture_has_the_nodes_of_both_sides() -> None:
    info = registry.named("eliminate_nop_reshape").info
    example = example_of(info)
    assert example is not None
    data = picture_of(info, example).data
    (row,) = data["rewrites"]
    before, after = (
        [data["strings"][data["states"][item[1]][1]] for item in items if item[0] < 3]
        for items in (row[6], row[7])
    )
    assert before == ["Reshape", "Relu"]
    assert after == ["Relu"]


def test_an_example_does_not_change_what_tests_call() -> None:
    before = testing.assert_rewrites
    assert example_of(registry.named("fuse_gelu").info) is not None
    assert testing.assert_rewrites is before


def test_the_indexes_have_each_pass() -> None:
    found = dict(index_pages(own_passes()))
    for name in ("index.md", "by_level.md"):
        assert all(f"(/passes/{info.name}.md)" in found[name] for info in own_passes())
    by_operator = found["by_operator.md"]
    assert "## Conv\n" in by_operator
    assert "(/passes/fuse_bn_into_conv.md)" in by_operator


def test_a_missing_page_and_a_broken_link_are_found(tmp_path: Path) -> None:
    (tmp_path / "passes").mkdir()
    for file in pass_files()[1:]:
        (tmp_path / "passes" / f"{file.name}.html").write_text("<h1 id='a'></h1>")
    (tmp_path / "index.html").write_text(
        "<a href='passes/fuse_gelu.html#a'></a><a href='gone.html'></a>"
        "<a href='passes/fuse_gelu.html#b'></a><a href='https://example.org/x'></a>"
    )
    assert list(missing_passes(tmp_path)) == [f"the pass {pass_files()[0].name} has no page"]
    assert list(broken_links(tmp_path)) == [
        "index.html: gone.html leads to no file",
        "index.html: passes/fuse_gelu.html#b leads to no place in fuse_gelu.html",
    ]
