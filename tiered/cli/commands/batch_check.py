"""Write which nodes of many models a target supports.

Examples:
    tiered batch check models --out-dir reports --backend npu.toml
"""

from __future__ import annotations

from typing import Annotated

from tiered.cli.batches import BatchOptions, FolderOptions, check_batch_options, run_batch
from tiered.cli.commands.check import CheckOptions
from tiered.cli.line.declaration import Flags, words_of
from tiered.cli.shared_options import ReadOptions


def batch_check(
    *sources: Annotated[str, Flags("SOURCE")],
    target: CheckOptions,
    batch: BatchOptions,
    folder: FolderOptions,
    options: ReadOptions,
) -> int:
    """Write what `tiered check --json` prints of each of many models; return the exit code.

    Args:
        sources: The models, as for `tiered batch`.
    """
    from tiered.extensions.fleet import Command

    check_batch_options(target, ("html",))
    command = Command("check", (*words_of(target), *words_of(options, ("json",))))
    return run_batch(sources, command, batch, folder, as_json=options.json)
