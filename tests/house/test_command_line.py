"""One reader of the command line, and one declaration of each option."""

import ast
import re
from collections.abc import Iterator
from typing import Annotated

import pytest

from tests.house.tree import PACKAGE, parse
from tiered.cli.commands import command_names, load_command, summary_of
from tiered.cli.line.declaration import DeclaredCommand
from tiered.cli.line.pass_options import OfPass, PassOptions
from tiered.passes.interface.registry import registry
from tiered.support.records import Record

CLI = PACKAGE / "cli"
PARSERS = {"argparse", "click", "cyclopts", "docopt", "getopt", "optparse", "typer"}
NAMES_A_PARSER = re.compile(
    rf"\bimport\b.*\b({'|'.join(PARSERS)})\b|\bfrom ({'|'.join(PARSERS)})\b"
)
CHOICES = {("convert", "to"), ("prepare", "to")}
"""Options that choose the pass, of which one has an option of this name for its own choice."""
COMMANDS = (
    *command_names(),
    *(below for name in command_names() for below in command_names(name)),
)


def test_no_other_parser_is_imported() -> None:
    """`tiered.compat` has the command of another tool, which reads its own line."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        if "compat" not in path.parts
        and NAMES_A_PARSER.search(path.read_text(encoding="utf-8"))  # to parse takes long
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in _imported(node)
        if name.partition(".")[0] in PARSERS
    ]
    assert found == []


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names]


def test_words_are_split_into_flags_and_values_in_one_room() -> None:
    """A second reader tells flags from values: it asks whether a word begins with a dash."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in CLI.rglob("*.py")
        if path.parent.name != "line"
        for node in ast.walk(parse(path))
        if isinstance(node, ast.expr) and _asks_for_dashes(node)
    ]
    assert found == []


def _asks_for_dashes(node: ast.expr) -> bool:
    if isinstance(node, ast.Compare):
        constants = [each for each in node.comparators if isinstance(each, ast.Constant)]
        is_slice = isinstance(node.left, ast.Subscript)
        return is_slice and any(each.value in ("-", "--") for each in constants)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr not in ("startswith", "removeprefix"):
        return False
    return any(isinstance(arg, ast.Constant) and arg.value in ("-", "--") for arg in node.args)


def test_the_arguments_of_the_process_are_read_once() -> None:
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if "compat" not in path.parts and "sys.argv" in path.read_text(encoding="utf-8")
    ]
    # Python's `-m` asks for one word, which makes it the process of a batch.
    assert sorted(found) == ["__main__.py", "cli/__init__.py"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_a_file_with_a_function_of_its_name(name: str) -> None:
    command = load_command(name)
    assert command.function.__name__ == name.replace(" ", "_")
    assert command.function.__module__.rpartition(".")[2] == name.replace(" ", "_")
    assert summary_of(name).endswith(".")


def second_declarations(command: DeclaredCommand) -> Iterator[str]:
    """Yield the options of passes that a command declares itself, beside or in place of theirs."""
    passes = {each for each in command.groups.values() if isinstance(each, OfPass)}
    own = [each for each in command.options if not isinstance(each.within, OfPass)]
    for group in passes:
        taken = {each.name for each in group.declared}
        for option in registry.named(group.pass_name).info.options:
            flag = f"--{option.name.replace('_', '-')}"
            for each in own:
                is_declared_here = each.within is None or _is_of(each.within, command)
                is_same = each.name.rstrip("_") == option.name or flag in each.names
                is_new = option.name not in taken and (command.name, option.name) not in CHOICES
                if is_declared_here and is_same and is_new:
                    yield option.name


def _is_of(group: type, command: DeclaredCommand) -> bool:
    return group.__module__ == command.function.__module__


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_of_a_pass_is_declared_a_second_time(name: str) -> None:
    assert [*second_declarations(load_command(name))] == []


class Again(Record):
    """Options of which the pass has one."""

    budget: str = ""
    report: str = ""


def again(
    *,
    own: Again,
    options: Annotated[PassOptions, OfPass("quantize", without=("budget",))],
) -> None:
    """Declare an option of the pass again."""


def test_a_second_declaration_is_found() -> None:
    assert [*second_declarations(DeclaredCommand("again", again))] == ["budget"]


@pytest.mark.parametrize("name", [name for name in command_names() if name in registry])
def test_a_command_with_the_name_of_a_pass_has_its_options(name: str) -> None:
    groups = load_command(name).groups.values()
    (own,) = [each for each in groups if isinstance(each, OfPass) and each.pass_name == name]
    options = {option.name: option for option in registry.named(name).info.options}
    for each in own.declared:
        option = options[each.name]
        assert (each.option.type, each.option.default) == (option.type, option.default)
        assert option.doc[1:].replace("`", "") in each.option.doc
    assert {each.name for each in own.declared} >= options.keys() - {"inputs"}
