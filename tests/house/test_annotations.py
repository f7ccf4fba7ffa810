"""Annotations of rules: what every match of the pattern binds is there; all else may be None."""

import ast
from collections.abc import Iterator

from tests.house.tree import PassFile, pass_files
from tiered import get_pass
from tiered.passes.kinds.rewrite_pass import RewritePass
from tiered.rewriter.pattern import Alternatives, Const, Opt, Pattern, VariablePattern


def _always(pattern: Pattern) -> set[str]:
    """Return the names of values that every match binds."""
    if isinstance(pattern, Alternatives):
        return set.intersection(*map(_always, pattern.choices))
    own = {pattern.name} if isinstance(pattern, VariablePattern | Const) else set()
    return own.union(*map(_always, pattern.children()))


def _kinds(pattern: Pattern) -> dict[str, set[type[Pattern]]]:
    kinds: dict[str, set[type[Pattern]]] = {}
    for part in pattern.walk():
        if isinstance(part, VariablePattern | Const | Opt) and part.name:
            kinds.setdefault(part.name, set()).add(type(part))
    return kinds


def test_variables_are_annotated_as_the_pattern_binds_them() -> None:
    rewrites = [(file, get_pass(file.name)) for file in pass_files()]
    wrong = [
        fault
        for file, found in rewrites
        if isinstance(found, RewritePass)
        for fault in _wrong_annotations(file, found)
    ]
    assert wrong == []


def _wrong_annotations(file: PassFile, found: RewritePass) -> Iterator[str]:
    pattern, written = found.rule.pattern, _annotations(file)
    always = _always(pattern)
    for name, kinds in _kinds(pattern).items():
        if name not in found.rule.parameters:
            continue
        optional = "" if name in always else " | None"
        allowed = {f"Value{optional}"}
        if kinds == {Const}:
            allowed.add(f"Constant{optional}")
        if written[name] not in allowed:
            yield f"{file}: {name}: {written[name]}, not {allowed}"


def _annotations(file: PassFile) -> dict[str, str]:
    """Return the annotations of the parameters of a pass."""
    functions = (node for node in file.parse().body if isinstance(node, ast.FunctionDef))
    function = next(node for node in functions if node.name == file.name)
    return {
        argument.arg: ast.unparse(argument.annotation)
        for argument in function.args.args
        if argument.annotation is not None
    }
