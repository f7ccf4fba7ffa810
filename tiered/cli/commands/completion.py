"""Print a script for shell completion of commands, options, passes and backends.

Examples:
    tiered completion bash > ~/.local/share/bash-completion/completions/tiered
    tiered completion zsh > ~/.zfunc/_tiered
"""

from __future__ import annotations

import sys

from tiered.cli.line.word_completion import SCRIPTS, Shell


def completion(shell: Shell, /) -> None:
    """Print the script for a shell.

    Args:
        shell: The shell.
    """
    if sys.stdout is not None:
        sys.stdout.write(SCRIPTS[shell].lstrip())
