"""`tiered completion SHELL`: the script that completes commands, options, passes and backends.

The script calls `tiered` for the possible values of an option, so that they include the
passes of plug-ins.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.completion import CompletionContext

Shell = Literal["bash", "zsh", "fish", "powershell"]
Candidates = list[tuple[str, str]]
"""Values with their descriptions."""


def run_completion(app: App, shell: Shell) -> None:
    """Print the script for a shell."""
    script = app.generate_completion(prog_name="tiered", shell=shell)
    if sys.stdout is not None:
        sys.stdout.write(script if script.endswith("\n") else f"{script}\n")


def complete_pass(context: CompletionContext) -> Candidates:
    """Return the names of passes, each with its law."""
    from tiered.passes.interface.registry import registry

    return [(name, registry.named(name).info.law) for name in registry.names()]


def complete_passes(context: CompletionContext) -> Candidates:
    """Return the completions of a comma-separated list of passes."""
    typed, comma, _ = context.incomplete.rpartition(",")
    return [(f"{typed}{comma}{name}", law) for name, law in complete_pass(context)]


def complete_backend(context: CompletionContext) -> list[str]:
    """Return the names of backends."""
    from tiered.targets import backend_names

    return list(backend_names())


def complete_provider(context: CompletionContext) -> list[str]:
    """Return the names of the installed execution providers."""
    import onnxruntime

    return list(onnxruntime.get_available_providers())


def complete_operator(context: CompletionContext) -> list[str]:
    """Return the names of operators that passes act on."""
    from tiered.passes.interface.registry import registry

    infos = [registry.named(name).info for name in registry.names()]
    names = {name for info in infos for name in info.acts_on}
    return sorted(names - {"*", "elementwise"})
