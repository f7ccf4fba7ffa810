"""The text of the index: short lines, one for each thing that a pass declares."""

import ast

import pytest

from tiered.passes.index import table
from tiered.passes.index.build import PATH, index_text
from tiered.passes.interface.pass_info import PassInfo


@pytest.fixture(scope="module")
def text() -> str:
    return index_text()


def test_the_file_has_the_text(text: str) -> None:
    with open(PATH, encoding="utf-8") as file:
        assert file.read() == text


def test_what_could_be_on_two_lines_is(text: str) -> None:
    lines = text.splitlines()
    assert not any(line.endswith(" ") for line in lines)
    assert all("Option(" in line for line in lines if len(line) > 100)


def test_an_entry_says_what_is_no_default(text: str) -> None:
    entries = ast.parse(text).body[-1]
    infos = [node for node in ast.walk(entries) if isinstance(node, ast.Call) and _is_info(node)]
    assert len(infos) == len(table.INDEX)
    for call in infos:
        given = {
            str(each.arg): eval(ast.unparse(each.value), vars(table)) for each in call.keywords
        }
        defaults = PassInfo._field_defaults
        assert all(value != defaults.get(name, ...) for name, value in given.items())
        info = table.INDEX[given["name"]].info
        assert all(getattr(info, name) == value for name, value in given.items())


def _is_info(node: ast.Call) -> bool:
    return ast.unparse(node.func) == "PassInfo"
