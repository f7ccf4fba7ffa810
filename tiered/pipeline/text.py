"""Pipelines as text.

    pipeline  element, element, ...
    element   name {option=value,...} @'scope'        a pass; `fuse_*` stands for all that it fits
              name {option=value,...} ( pipeline )    a group
              fix {max_rounds=4} ( pipeline )         a fixed point
              ( pipeline )                            a group without a name
              default                                 the default pipeline

Every pass prints as such text, which parses back to an equal pass.
"""

from __future__ import annotations

import re
from typing import Any

from tiered.errors import OptionError, PipelineSyntaxError, UsageError
from tiered.passes import Pass
from tiered.passes.registry import is_glob, registry
from tiered.pipeline.fixpoint import Fixpoint
from tiered.pipeline.sequential import Sequential
from tiered.support.option_text import Scanner

_PASS_NAME = re.compile(r"[\w.*?!\[\]-]+")


def parse_pipeline(text: str) -> Sequential:
    """Return the pipeline that a text describes.

    Raises:
        PipelineSyntaxError: the text does not parse.
        PassNotFoundError: an unknown name, or a glob that fits no pass.
        OptionError: an option which a pass does not have, or a value which it does not take.
    """
    elements = parse_elements(text)
    if len(elements) == 1 and isinstance(elements[0], Sequential):
        return elements[0]
    return Sequential(elements)


def parse_elements(text: str) -> tuple[Pass, ...]:
    """Return the passes that a text lists; raises as `parse_pipeline`."""
    if not isinstance(text, str):
        raise PipelineSyntaxError(f"a pipeline is a text, not {text!r}")
    scanner = Scanner(text)
    elements = _elements(scanner, "")
    scanner.end()
    return elements


def parse_options(text: str) -> dict[str, Any]:
    """Return the options that a text in braces gives; raises as `parse_pipeline`."""
    scanner = Scanner(text)
    options = _options(scanner)
    scanner.end()
    return options


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
    """Read a name or glob; unlike in a value, brackets are part of it."""
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
    if head == "fix":
        return [Fixpoint(inner).with_options(**options)]
    name = None if head in ("", "sequential") else head
    return [Sequential(inner, name=name).with_options(**options)]


def _named(head: str, options: dict[str, Any]) -> list[Pass]:
    """Return the passes of a name: one, those of an alias, or those that a glob fits, in order."""
    from tiered.pipeline.default import default_pipeline

    if head == "default" and head not in registry:
        return [default_pipeline().with_options(**options)]
    if is_glob(head):
        order = [leaf.name for leaf in default_pipeline().leaves()]
        rank = {name: place for place, name in reversed(list(enumerate(order)))}
        names = sorted(registry.expand(head), key=lambda name: rank.get(name, len(order)))
    else:
        names = [head] if registry.expects(head) else list(registry.resolve(head))
    found = [registry.named(name) for name in names]
    return [pass_.with_options(**options) if options else pass_ for pass_ in found]
