"""The commands that list and describe passes, targets and options, and write new passes."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from tiered.cli.commands.completion import complete_backend, complete_operator, complete_pass
from tiered.cli.flags import AsJson, Names, Verbose


def passes(
    name: Annotated[str | None, Parameter(completer=complete_pass)] = None,
    /,
    *,
    op: Annotated[str | None, Parameter(show_default=False, completer=complete_operator)] = None,
    search: Annotated[str | None, Parameter(show_default=False)] = None,
    life: Annotated[
        Literal["preview", "stable", "deprecated"] | None, Parameter(show_default=False)
    ] = None,
    load: Names = (),
    as_json: AsJson = False,
) -> None:
    """List all passes, or describe one.

    Args:
        name: A pass, by any of its names, or a glob: 'fuse_*'.
        op: Only passes that rewrite or move nodes of this operator: Conv, com.microsoft::Gelu.
        search: Only passes with this string in their name, law, description, options or aliases.
        life: Only passes in this stage; no level runs those in preview.
        load: As for `tiered optimize`: Python files or modules with passes of your own.
        as_json: Print JSON instead of text.
    """
    from tiered.cli.load_passes import load_passes

    load_passes(load)
    from tiered.cli.commands.passes import run_passes

    run_passes(name, op=op, search=search, life=life, as_json=as_json)


def docs(
    name: Annotated[str, Parameter(name="PASS", completer=complete_pass)],
    /,
    *,
    load: Names = (),
    as_json: AsJson = False,
) -> None:
    """Print the reference page of a pass: law, conditions, options, level, place.

    Args:
        name: A pass, by any of its names.
        load: As for `tiered optimize`: Python files or modules with passes of your own.
        as_json: Print JSON instead of text.
    """
    from tiered.cli.commands.reference import run_reference
    from tiered.cli.load_passes import load_passes

    load_passes(load)
    run_reference(name, as_json=as_json)


def backends(
    name: Annotated[str | None, Parameter(completer=complete_backend)] = None,
    /,
    *,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """List the targets of --backend, or describe one.

    Args:
        name: A target, or its TOML file.
        as_json: Print JSON instead of text.
        verbose: List the rules of each operator.
    """
    from tiered.cli.commands.backends import run_backends

    run_backends(name, as_json=as_json, verbose=verbose)


def operators(
    name: Annotated[str | None, Parameter(completer=complete_operator)] = None,
    /,
    *,
    missing: Annotated[str | None, Parameter(show_default=False)] = None,
    load: Names = (),
    as_json: AsJson = False,
) -> None:
    """List the operators that tiered knows, with what is not known of each, or describe one.

    Args:
        name: An operator: Gather, com.microsoft::Gelu.
        missing: Only operators without a rule of this aspect: range, gradient, layout.
        load: As for `tiered optimize`: Python files or modules, here with rules of your own.
        as_json: Print JSON instead of text.
    """
    from tiered.cli.commands.operators import run_operators
    from tiered.cli.load_passes import load_passes

    load_passes(load)
    run_operators(name, missing=missing, as_json=as_json)


def options(*, as_json: AsJson = False) -> None:
    """List the config options of `tiered optimize --set`.

    Args:
        as_json: Print JSON instead of text.
    """
    from tiered.cli.commands.config_options import run_options

    run_options(as_json=as_json)


def new(
    path: Annotated[str, Parameter(name="FOLDER/NAME")],
    /,
    *,
    kind: Literal["rewrite", "function", "module"] = "rewrite",
    root: str = ".",
) -> None:
    """Write a skeleton of a pass and of its failing test.

    Args:
        path: The folder (the operator that the pass rewrites) and the name: shape/fuse_x.
        kind: The object of a rewrite: a pattern, a graph, or a whole model.
        root: The checkout of tiered to write into.
    """
    from tiered.cli.commands.new import run_new

    run_new(path, kind=kind, root=root)


COMMANDS = (passes, docs, backends, operators, options, new)
