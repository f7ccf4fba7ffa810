"""help() on the nouns of the view: each public member has its sentence, each error its line."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from tiered import Graph, Model, Node, Value

NOUNS = (Graph, Model, Node, Value)


def members(noun: type) -> Iterator[tuple[str, Any]]:
    """Yield the public members that tiered defines."""
    return ((name, each) for name, each in inspect.getmembers(noun) if not name.startswith("_"))


@pytest.mark.parametrize("noun", NOUNS)
def test_every_public_member_has_a_docstring(noun: type) -> None:
    assert [name for name, each in members(noun) if not inspect.getdoc(each)] == []


@pytest.mark.parametrize("noun", NOUNS)
def test_docstrings_list_their_errors(noun: type) -> None:
    silent = []
    for name, each in members(noun):
        function: Any = each.fget if isinstance(each, property) else each
        if not inspect.isfunction(function) or "\n        raise " not in inspect.getsource(
            function
        ):
            continue
        if "Raises:" not in (inspect.getdoc(each) or ""):
            silent.append(name)
    assert silent == []


@pytest.mark.parametrize("noun", [Graph, Model])
def test_every_public_attribute_is_listed(noun: type) -> None:
    lines = (inspect.getdoc(noun) or "").splitlines()
    assert "Attributes:" in lines
