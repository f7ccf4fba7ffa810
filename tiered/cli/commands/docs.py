"""Print the reference page of a pass: law, conditions, options, level, place.

Examples:
    tiered docs fuse_gelu
    tiered docs FoldConstant --json

`--json` prints one object: what `tiered passes NAME --json` prints, and
    guards: the reasons why the pass leaves a node alone; {} is filled in when it does.
    vocabularies: modules with conditions that the pass shares with others.
    required_by: passes that run it before themselves.
    pipeline: the groups around each of its places in the default pipeline.
    proved: how its rewrites are covered by `make prove`: {proved, instances, domain, reason}; null
        for passes that it does not run.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from tiered.cli.commands.passes import describe, names_of, print_pass
from tiered.cli.line.candidates import complete_pass
from tiered.cli.line.declaration import Flags
from tiered.cli.load_passes import load_passes
from tiered.cli.output.terminal import print_json, printable, results
from tiered.cli.shared_options import AsJson, Load
from tiered.passes.index.proofs import PROOFS, Proved
from tiered.passes.interface.registry import registry
from tiered.support.amounts import counted
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from rich.console import Console

    from tiered.passes.interface.pass_info import PassInfo

SHARED = "tiered.rewriter.idioms."
"""Where passes have common conditions."""


def docs(
    name: Annotated[str, Flags("PASS", completes=complete_pass)],
    /,
    *,
    load: Load = (),
    as_json: AsJson = False,
) -> None:
    """Print the reference page of each pass of a name.

    Args:
        name: A pass, by any of its names.

    Raises:
        PassNotFoundError: no pass has this name.
        ModelError: the file of a pass cannot be read.
    """
    load_passes(load)
    infos = [registry.named(canonical).info for canonical in names_of(name)]
    pages = [(info, reference(info)) for info in infos]
    if as_json:
        described = [describe(info) | page for info, page in pages]
        print_json(described[0] if len(described) == 1 else described)
        return
    for info, page in pages:
        print_pass(results(), info)
        _print(results(), page)


def reference(info: PassInfo) -> dict[str, Any]:
    """Return the parts of a reference page that the declaration of a pass has not."""
    tree = _tree(info.source)
    return {
        "guards": list(dict.fromkeys(_reasons(tree))),
        "vocabularies": sorted(set(_vocabularies(tree))),
        "required_by": [
            name for name in registry.names() if info.name in registry.named(name).info.required
        ],
        "pipeline": list(_places(info.name)),
        "proved": None if info.name not in PROOFS else PROOFS[info.name]._asdict(),
    }


def _tree(source: str) -> ast.Module:
    """Return the parsed file of a pass; an empty one if it has none.

    Raises:
        ModelError: the file cannot be read.
    """
    if not os.path.isfile(source):
        return ast.Module([], [])
    try:
        with open(source, encoding="utf-8") as file:
            return ast.parse(file.read(), source)
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        raise ModelError(f"cannot read the pass {source!r}: {error}") from error


def _reasons(tree: ast.AST) -> Iterator[str]:
    """Yield the reason of each Skip and Unable, in the order of the file."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in ("Skip", "Unable")
    ]
    for call in sorted(calls, key=lambda found: (found.lineno, found.col_offset)):
        if call.args and isinstance(call.args[0], ast.Constant):
            reason = str(call.args[0].value)
            if any(char.isalnum() for char in reason):
                yield reason


def _vocabularies(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(SHARED):
            yield str(node.module)


def _places(name: str) -> Iterator[str]:
    """Yield the groups around each place of a pass in the default pipeline."""
    from tiered.context import PassContext
    from tiered.pipeline import pipeline_for

    context = PassContext.isolated()
    for step in pipeline_for(context.backend).plan(context):
        if step.pass_.name == name:
            yield "/".join(step.place.groups)


def _print(console: Console, page: dict[str, Any]) -> None:
    if page["required_by"]:
        console.print(f"  required by: {', '.join(page['required_by'])}", soft_wrap=True)
    places = page["pipeline"]
    where = counted(len(places), "time") if places else "no"
    console.print(f"  in the default pipeline: {where}", soft_wrap=True)
    if page["proved"] is not None:
        console.print(printable(f"  proofs: {Proved(**page['proved'])}"), soft_wrap=True)
    if page["guards"]:
        console.print("  leaves a node alone if:")
        for reason in page["guards"]:
            console.print(printable(f"    - {reason}"), soft_wrap=True)
    for module in page["vocabularies"]:
        console.print(f"  further conditions: {module}", soft_wrap=True)
