"""Compare many models with those of the same names in a folder.

Examples:
    tiered batch verify optimised --against models --out-dir reports
"""

from __future__ import annotations

from typing import Annotated

from tiered.cli.batches import BatchOptions, FolderOptions, check_batch_options, run_batch
from tiered.cli.commands.verify import CompareOptions
from tiered.cli.line.declaration import Flags, words_of
from tiered.cli.shared_options import AsJson


def batch_verify(
    *sources: Annotated[str, Flags("SOURCE")],
    against: str,
    batch: BatchOptions,
    folder: FolderOptions,
    options: CompareOptions,
    as_json: AsJson = False,
) -> int:
    """Compare many models with those of equal names in a folder; return the exit code.

    Args:
        sources: The models to compare, as for `tiered batch`.
        against: The folder with the correct models.
        as_json: Print the results as JSON lines.
    """
    from tiered.extensions.fleet import Command

    check_batch_options(options, ("html", "svg"))
    command = Command("verify", words_of(options), against)
    return run_batch(sources, command, batch, folder, as_json=as_json)
