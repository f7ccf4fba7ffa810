"""Pipelines as text.

    pipeline  element, element, ...
    element   name {option=value,...} @'scope'        a pass; `fuse_*` is all that match it
              name {option=value,...} ( pipeline )    a group
              fix {max_rounds=4} ( pipeline )         a fixed point; also `fixpoint`
              ( pipeline )                            a group without a name
              default                                 the default pipeline; `streamline` is another

Every pass prints as such text, which parses back to an equal pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from tiered.passes import Pass
from tiered.passes.interface.registry import is_glob, registry
from tiered.passes.lookup import pass_named
from tiered.pipeline.pipeline_base import GROUPS, NAMED
from tiered.pipeline.pipeline_names import pipeline_text
from tiered.support.errors import OptionError, PipelineSyntaxError, UsageError
from tiered.support.option_text import Scanner

if TYPE_CHECKING:
    from tiered.passes import PassLike

_PASS_NAME = re.compile(r"[\w.*?!\[\]-]+")

GROUPING: Final = ("(", ")", ",")
"""What joins elements."""


def passes_of(passes: Iterable[PassLike]) -> tuple[Pass, ...]:
    """Return the passes given as passes, as text, or mixed.

    Raises:
        PassNotFoundError: an unknown name.
        UsageError: something is neither a pass nor text.
    """
    if isinstance(passes, str):
        return parse_elements(passes)
    if not hasattr(passes, "__iter__"):
        raise UsageError(f"a pipeline takes a list of passes, not {passes!r}")
    made: list[Pass] = []
    for item in passes:
        if isinstance(item, str):
            made += [pass_named(item)] if registry.expects(item) else parse_elements(item)
        elif isinstance(item, Pass):
            made.append(item)
        else:
            made.append(_pass_of(item))
    return tuple(made)


def _pass_of(item: object) -> Pass:
    from tiered.passes import PassBase  # loaded by those who make one

    if isinstance(item, PassBase):
        return item.as_pass()
    raise UsageError(f"a pipeline takes passes and their names, not {item!r}")


def parse_elements(text: str) -> tuple[Pass, ...]:
    """Return the passes of pipeline text; raises as `parse_pipeline`."""
    if not isinstance(text, str):
        raise PipelineSyntaxError(f"a pipeline is a string, not {text!r}")
    scanner = Scanner(text)
    elements = _elements(scanner, "")
    scanner.end()
    return elements


def parse_options(text: str) -> dict[str, Any]:
    """Parse the options in braces; raises as `parse_pipeline`."""
    scanner = Scanner(text)
    options = _options(scanner)
    scanner.end()
    return options


def names_in(text: str) -> tuple[str, ...]:
    """Return the names and globs of passes in pipeline text; words of options and scopes are none.

    Args:
        text: pipeline text that parses.

    Raises:
        PipelineSyntaxError: it does not.
    """
    scanner, found = Scanner(text), list[str]()
    while scanner.peek():
        if scanner.peek() in GROUPING:
            scanner.take(scanner.peek())
        elif scanner.take("@"):
            scanner.text_or_word("a scope")
        else:
            head = _head(scanner)
            if scanner.peek() == "{":
                _options(scanner)
            found += [head] if scanner.peek() != "(" else []
    return tuple(found)


def _elements(scanner: Scanner, closing: str) -> tuple[Pass, ...]:
    made: list[Pass] = []
    if scanner.peek() == closing:
        return ()
    while True:
        made += _element(scanner)
        if not scanner.take(","):
            return tuple(made)


def _element(scanner: Scanner) -> list[Pass]:
    start = scanner.at
    head = "" if scanner.peek() == "(" else _head(scanner)
    options = _options(scanner) if scanner.peek() == "{" else {}
    passes = _group(scanner, head, options) if scanner.peek() == "(" else _named(head, options)
    while scanner.take("@"):
        scope = scanner.text_or_word("a scope")
        try:
            passes = [pass_.on(scope) for pass_ in passes]
        except UsageError as error:
            written = scanner.text[start : scanner.at].strip()
            raise PipelineSyntaxError(f"{written!r}: {error}") from error
    return passes


def _head(scanner: Scanner) -> str:
    """Read a name or glob; brackets belong to it, unlike in a value."""
    match = _PASS_NAME.match(scanner.text, scanner.at)
    if match is None:
        raise scanner.error("the name of a pass")
    scanner.at = match.end()
    return match[0]


def _options(scanner: Scanner) -> dict[str, Any]:
    options: dict[str, Any] = {}
    scanner.expect("{")
    while not scanner.take("}"):
        if options:
            scanner.expect(",")
        name = scanner.word("the name of an option")
        scanner.expect("=")
        if name in options:
            raise OptionError(f"option {name!r} is given twice")
        options[str(name)] = scanner.value()
    return options


def _group(scanner: Scanner, head: str, options: dict[str, Any]) -> list[Pass]:
    scanner.expect("(")
    inner = _elements(scanner, ")")
    scanner.expect(")")
    kind = GROUPS.get(head or "sequential")
    group = GROUPS["sequential"](inner, name=head) if kind is None else kind(inner)
    return [group.with_options(**options)]


def is_pipeline(name: str) -> bool:
    """Return whether a name stands for a pipeline as text, and for no pass."""
    is_pass = registry.expects(name) or registry.is_own_alias(name)
    return not is_pass and pipeline_text(name) is not None


def _named(head: str, options: dict[str, Any]) -> list[Pass]:
    """Return the passes of a name, an alias or a glob; of a glob in the default order."""
    if head.lower() in NAMED and head not in registry:
        return [NAMED[head.lower()]().with_options(**options)]
    if not options and is_pipeline(head):
        return list(_elements(Scanner(pipeline_text(head) or ""), ""))
    if is_glob(head):
        order = [leaf.name for leaf in NAMED["default"]().leaves()]
        rank = {name: place for place, name in reversed(list(enumerate(order)))}
        names = sorted(registry.expand(head), key=lambda name: rank.get(name, len(order)))
    else:
        names = [head] if registry.expects(head) else list(registry.resolve(head))
    found = [pass_named(name) for name in names]
    return [pass_.with_options(**options) if options else pass_ for pass_ in found]
