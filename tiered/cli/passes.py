"""`tiered passes [NAME]`: all passes, or all about one.

`--json` prints an array of objects, for NAME one object (an array where NAME stands for several):
name, kind, opt_level (null is opt-in), numerics, changes_interface, analysis, law, doc, options
[{name, takes, default, doc}], required, followed_by, conflicts, needs, offers, quantization,
aliases, source.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from tiered.cli.tables import print_table
from tiered.cli.terminal import print_json, printable, results
from tiered.passes.registry import PassInfo, registry
from tiered.support.aliases import ALIASES
from tiered.support.option_text import format_value

if TYPE_CHECKING:
    from tiered.support.options import Option


def run_passes(name: str | None, *, as_json: bool) -> None:
    """Print the table of all passes, or everything about those that a name stands for."""
    names = registry.names() if name is None else registry.resolve(name)
    infos = [registry.named(canonical).info for canonical in names]
    if as_json:
        described = [describe(info) for info in infos]
        print_json(described if name is None or len(described) > 1 else described[0])
        return
    console = results()
    if name is None:
        rows = [(info.name, _level(info), info.kind, _promise(info), info.law) for info in infos]
        headers = ("pass", "level", "kind", "numerics", "law")
        print_table(console, f"{len(rows)} passes", headers, rows)
    else:
        for info in infos:
            _print_one(console, info)


def describe(info: PassInfo) -> dict[str, Any]:
    """Return everything about a pass as plain data."""
    return {
        "name": info.name,
        "kind": info.kind,
        "opt_level": info.opt_level,
        "numerics": info.numerics.value,
        "changes_interface": info.changes_interface,
        "analysis": info.analysis,
        "law": info.law,
        "doc": info.doc,
        "options": [_option(option) for option in info.options],
        "required": list(info.required),
        "followed_by": list(info.followed_by),
        "conflicts": list(info.conflicts),
        "needs": list(info.needs),
        "offers": list(info.offers),
        "quantization": info.quantization,
        "aliases": _aliases(info),
        "source": info.source,
    }


def _option(option: Option) -> dict[str, str]:
    return {
        "name": option.name,
        "takes": option.takes,
        "default": format_value(option.default),
        "doc": option.doc,
    }


def _aliases(info: PassInfo) -> list[str]:
    return sorted(alias for alias, targets in ALIASES.items() if info.name in targets)


def _level(info: PassInfo) -> str:
    return "opt-in" if info.opt_level is None else str(info.opt_level)


def _promise(info: PassInfo) -> str:
    if info.analysis:
        return "changes nothing"
    return info.numerics.value + (", interface" if info.changes_interface else "")


def _file(source: str) -> str:
    """Return a file relative to the working directory where it lies under it, else as it is."""
    inside = os.path.join(os.getcwd(), "")
    return source.removeprefix(inside)


def _prose(doc: str) -> str:
    """Return a docstring without what the table of options says better."""
    return doc.partition("\nArgs:\n")[0].strip()


def _print_one(console: Console, info: PassInfo) -> None:
    console.print(Text(info.name, style="bold"))
    for line in (info.law, *_prose(info.doc).splitlines()):
        console.print(f"  {printable(line)}".rstrip())
    level = _level(info) + (" (runs only when required)" if info.opt_level is None else "")
    facts = {
        "level": level,
        "kind": info.kind,
        "numerics": _promise(info),
        "required": ", ".join(info.required),
        "followed by": ", ".join(info.followed_by),
        "conflicts": ", ".join(info.conflicts),
        "needs": " or ".join(info.needs),
        "offers": " or ".join(info.offers),
        "quantization": info.quantization,
        "aliases": ", ".join(_aliases(info)),
        "file": _file(info.source),
    }
    for label, fact in facts.items():
        if fact:
            console.print(f"  {label + ':':<12} {printable(fact)}")
    if info.options:
        rows = [tuple(_option(option).values()) for option in info.options]
        print_table(console, "Options", ("option", "takes", "default", ""), rows)
