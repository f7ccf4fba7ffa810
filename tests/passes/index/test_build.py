"""The text of the index: short lines, one for each thing that a pass declares."""

import ast
from typing import Literal

import pytest

from tiered.passes.index import table
from tiered.passes.index.build import (
    _WIDTH,
    PATH,
    _filled,
    _lines,
    _option,
    _type,
    index_text,
)
from tiered.passes.interface.pass_info import PassInfo
from tiered.support.typed_options import Option, Size


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


def test_lines_are_as_long_as_they_may_be() -> None:
    room = _WIDTH - len("        a=('', 'y'),")
    for length, count in ((room, 1), (room + 1, 4)):
        lines = list(_lines("a=", ("x" * length, "y"), ",", 8))
        assert len(lines) == count
        assert max(map(len, lines)) <= _WIDTH
    assert len(list(_lines("a=", "x" * _WIDTH, ",", 8))) == 1
    option = Option("size", int, 3, "how much")
    assert list(_lines("options=", (option,), ",", 4)) == [
        "    options=(", "        Option('size', int, 3, 'how much'),", "    ),",
    ]  # fmt: skip
    known = len("    Option('size', int, 3, ''),")
    for length, count in ((_WIDTH - known, 1), (_WIDTH - known + 1, 2)):
        lines = list(_option(option._replace(doc="x" * length), "    "))
        assert len(lines) == count
    assert list(_filled("  ", ["x" * (_WIDTH - 4), "y", "z"])) == [
        f"  {'x' * (_WIDTH - 4)},", "  y, z,",
    ]  # fmt: skip
    assert list(_filled("  ", ["x" * (_WIDTH - 5), "y"])) == [f"  {'x' * (_WIDTH - 5)},", "  y,"]


def test_types_are_written_as_in_python() -> None:
    for kind, text in ((int, "int"), (list[int], "list[int]"), (int | None, "int | None"),
                       (Literal["a"], "Literal['a']"), (Size, "Size")):  # fmt: skip
        assert _type(kind) == text
