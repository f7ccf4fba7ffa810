"""Quantise many models, as `tiered quantize` does each.

Examples:
    tiered batch quantize models --out-dir quantised --inputs samples --jobs 4
"""

from __future__ import annotations

from typing import Annotated

from tiered.cli.batches import OWN, BatchOptions, FolderOptions, check_batch_options, run_batch
from tiered.cli.commands.quantize import QuantizeOptions, QuantizeSettings
from tiered.cli.line.declaration import Flags, words_of
from tiered.cli.shared_options import WriteOptions


def batch_quantize(
    *sources: Annotated[str, Flags("SOURCE")],
    out_dir: str | None = None,
    max_memory: str | None = None,
    batch: BatchOptions,
    options: QuantizeOptions,
    settings: QuantizeSettings,
    write: WriteOptions,
) -> int:
    """Quantise many models; return the exit code.

    Args:
        sources: The models, as for `tiered batch`.
        out_dir: The folder for the results, each under the name of its model.
        max_memory: Limit of the memory of all processes together: 2GB, 50%.

    Raises:
        UsageError: options that do not go together.
    """
    from tiered.extensions.fleet import Command

    check_batch_options(write, ("output", "dry_run", "result_of"))
    check_batch_options(options, ("report", "html"))
    command = Command("quantize", (*words_of(options), *settings.words(), *words_of(write, OWN)))
    folder = FolderOptions(out_dir=out_dir, max_memory=max_memory, quiet=write.quiet)
    return run_batch(sources, command, batch, folder, as_json=write.json)
