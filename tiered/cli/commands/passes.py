"""List all passes, or describe one.

Examples:
    tiered passes fold_constant
    tiered passes 'fuse_*' --search attention
    tiered passes --op Conv

`--json` prints an array of objects, for NAME one object (an array if NAME is an alias of several
or a glob, and with --op and --search): name, kind, opt_level (null is opt-in), numerics,
changes_interface, analysis, law, doc, options [{name, takes, default, doc}], required, followed_by,
conflicts, makes, may_make, touches, quantization, aliases, life, replacement, source.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.console import Console
from rich.text import Text

from tiered.cli.line.candidates import complete_operator, complete_pass
from tiered.cli.line.declaration import Flags
from tiered.cli.load_passes import load_passes
from tiered.cli.output.tables import print_table
from tiered.cli.output.terminal import print_json, printable, results
from tiered.cli.shared_options import AsJson, Load
from tiered.passes.interface.pass_info import PassInfo
from tiered.passes.interface.registry import registry
from tiered.support.aliases import ALIASES
from tiered.support.amounts import counted
from tiered.support.errors import PassNotFoundError, UsageError, did_you_mean
from tiered.support.operator_name import operator_name
from tiered.support.option_text import format_value

if TYPE_CHECKING:
    from tiered.support.typed_options import Option


ANY, ELEMENTWISE = "*", "elementwise"
"""Entries of `touches` for any operator, and for all elementwise operators."""


def passes(
    name: Annotated[str | None, Flags(completes=complete_pass)] = None,
    /,
    *,
    op: Annotated[str | None, Flags(completes=complete_operator)] = None,
    search: str | None = None,
    life: Literal["preview", "stable", "deprecated"] | None = None,
    load: Load = (),
    as_json: AsJson = False,
) -> None:
    """Print a table of passes, or describe the passes of a name.

    Args:
        name: A pass, by any of its names, or a glob: 'fuse_*'.
        op: Only passes that rewrite or move nodes of this operator: Conv, com.microsoft::Gelu.
        search: Only passes with this string in their name, law, description, options or aliases.
        life: Only passes in this stage; no level runs those in preview.

    Raises:
        PassNotFoundError: no pass has this name, or the glob fits none.
        UsageError: there is no such operator, or no pass is found.
    """
    load_passes(load)
    is_list = name is None or not {"*", "?", "["}.isdisjoint(name)
    if name is None:
        names = registry.names()
    else:
        names = registry.expand(name) if is_list else names_of(name)
    infos = [registry.named(canonical).info for canonical in names]
    if op is not None:
        infos = _acting_on(infos, op)
    if search is not None:
        infos = [info for info in infos if search.casefold() in _text(info).casefold()]
    if life is not None:
        infos = [info for info in infos if info.life == life]
    if not infos:
        asked = [f"--op {op}"] if op is not None else []
        asked += [f"--search {search!r}"] if search is not None else []
        asked += [f"--life {life}"] if life is not None else []
        within = f" among those of {name!r}" if name is not None else ""
        raise UsageError(f"no pass fits {' and '.join(asked)}{within}")
    is_list |= any(each is not None for each in (op, search, life))
    if as_json:
        described = [describe(info) for info in infos]
        print_json(described if is_list or len(described) > 1 else described[0])
    elif not is_list:
        for info in infos:
            print_pass(results(), info)
    else:
        general = [info for info in infos if op is not None and ANY in info.touches]
        _print_list([info for info in infos if info not in general], f"act on {op}" if op else "")
        _print_list(general, "act on any operator")


def names_of(name: str) -> tuple[str, ...]:
    """Return the canonical names of a name, an alias, or a named pipeline.

    Raises:
        PassNotFoundError: no pass has this name.
    """
    try:
        return registry.resolve(name)
    except PassNotFoundError:
        from tiered.pipeline import parse_pipeline
        from tiered.pipeline.pipeline_base import NAMED
        from tiered.pipeline.pipeline_names import pipeline_text

        if pipeline_text(name) is None and name.lower() not in NAMED:
            raise
        return tuple(dict.fromkeys(leaf.name for leaf in parse_pipeline(name).leaves()))


def _print_list(infos: Sequence[PassInfo], what: str) -> None:
    if not infos:
        return
    rows = [(info.name, _level(info), info.kind, _promise(info), info.law) for info in infos]
    headers = ("pass", "level", "kind", "numerics", "law")
    count = counted(len(rows), "pass", "passes")
    verb = what.replace("act on", "acts on") if len(rows) == 1 else what
    print_table(results(), f"{count} {f'that {verb}' if what else ''}".strip(), headers, rows)


def _acting_on(infos: Sequence[PassInfo], op: str) -> list[PassInfo]:
    """Return the passes that rewrite or move nodes of an operator.

    Raises:
        UsageError: there is no such operator.
    """
    from tiered.graph import ELEMENTWISE as SUCH

    name = op.removeprefix("ai.onnx::")
    wanted = {name, ANY, *([ELEMENTWISE] if name in SUCH else [])}
    call = re.compile(rf"(?<![\w:]){re.escape(name.rpartition('::')[2])}(?!\w)")
    found = [
        info for info in infos if wanted.intersection(info.touches) or call.search(_read(info))
    ]
    if all(ANY in info.touches for info in found):
        _check_operator(name)
    return found


def _read(info: PassInfo) -> str:
    """Return the left side of a law."""
    return info.law.rpartition("=>")[0]


def _check_operator(name: str) -> None:
    """Raise if neither onnx nor a pass nor a backend knows an operator.

    Raises:
        UsageError: none does.
    """
    import onnx

    from tiered.targets.known import built_in_backends

    keys = {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas()}
    keys.update(key for backend in built_in_backends() for key in backend.operators)
    known = {operator_name(domain, op_type) for domain, op_type in keys}
    if name not in known and name.rpartition("::")[0] in dict(keys):
        raise UsageError(f"--op: there is no operator {name!r}{did_you_mean(name, sorted(known))}")


def _text(info: PassInfo) -> str:
    """Return the text that --search looks through."""
    options = (f"{option.name} {option.doc}" for option in info.options)
    return " ".join((info.name, info.law, info.doc, *_aliases(info), *options))


def describe(info: PassInfo) -> dict[str, Any]:
    """Return the description of a pass as plain data."""
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
        "makes": list(info.makes),
        "may_make": list(info.may_make),
        "touches": list(info.touches),
        "quantization": info.quantization,
        "aliases": _aliases(info),
        "life": info.life,
        "replacement": info.replacement,
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
    level = "opt-in" if info.opt_level is None else str(info.opt_level)
    return level if info.life == "stable" else f"{level}, {info.life}"


def _promise(info: PassInfo) -> str:
    if info.analysis:
        return "changes nothing"
    return info.numerics.value + (", interface" if info.changes_interface else "")


def _file(source: str) -> str:
    """Return a file relative to the working directory, if it is inside of it."""
    inside = os.path.join(os.getcwd(), "")
    return source.removeprefix(inside)


def _prose(doc: str) -> str:
    """Return a docstring without its arguments, which the table of options lists."""
    return doc.partition("\nArgs:\n")[0].strip()


def print_pass(console: Console, info: PassInfo) -> None:
    """Print the declaration of a pass."""
    console.print(Text(info.name, style="bold"))
    for line in (info.law, *_prose(info.doc).splitlines()):
        console.print(f"  {printable(line)}".rstrip())
    is_asked_for = info.opt_level is None or info.life == "preview"
    level = _level(info) + (" (runs only when required)" if is_asked_for else "")
    facts = {
        "level": level,
        "kind": info.kind,
        "numerics": _promise(info),
        "required": ", ".join(info.required),
        "followed by": ", ".join(info.followed_by),
        "conflicts": ", ".join(info.conflicts),
        "makes": " or ".join(info.makes),
        "may make": " or ".join(info.may_make),
        "touches": ", ".join("any operator" if n == ANY else n for n in info.touches),
        "quantization": info.quantization,
        "aliases": ", ".join(_aliases(info)),
        "use": info.replacement,
        "file": _file(info.source),
    }
    for label, fact in facts.items():
        if fact:
            console.print(f"  {label + ':':<12} {printable(fact)}")
    if info.options:
        rows = [tuple(_option(option).values()) for option in info.options]
        print_table(console, "Options", ("option", "takes", "default", ""), rows)
