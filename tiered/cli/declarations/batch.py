"""The commands that run another command on many models: names, options and help."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from tiered.cli.command_flags import CheckOptions, InspectOptions, ReadOptions, WriteOptions
from tiered.cli.commands.batch import BatchOptions, FolderOptions
from tiered.cli.commands.quantize import QuantizeOptions
from tiered.cli.commands.verify import CompareOptions
from tiered.cli.flags import AsJson, OptimizeOptions
from tiered.cli.watch import WatchOptions

batch = App(name="batch", help_format="plaintext")


@batch.default
def batch_optimize(
    *sources: Annotated[str, Parameter(name="SOURCE")],
    batch: BatchOptions = BatchOptions(),
    options: OptimizeOptions = OptimizeOptions(),
    watch: WatchOptions = WatchOptions(),
) -> int:
    """Optimise many models, each in a process of its own; a model that fails stops no other.

    Results are whole or absent, and recorded in a manifest: --resume goes on where a batch ended.

    Args:
        sources: Folders, globs, lists (.txt, one entry a line) and files; also URLs (s3://...).
    """
    from tiered.cli.commands.batch import run_batch_optimize

    return run_batch_optimize(sources, options, watch, batch)


@batch.command(name="quantize")
def batch_quantize(
    *sources: Annotated[str, Parameter(name="SOURCE")],
    out_dir: Annotated[str | None, Parameter(show_default=False)] = None,
    max_memory: Annotated[str | None, Parameter(show_default=False)] = None,
    batch: BatchOptions = BatchOptions(),
    options: QuantizeOptions = QuantizeOptions(),
    write: WriteOptions = WriteOptions(),
) -> int:
    """Quantise many models, as `tiered quantize` does each.

    Args:
        sources: The models, as for `tiered batch`.
        out_dir: The folder for the results, each under the name of its model.
        max_memory: Limit of the memory of all processes together: 2GB, 50%.
    """
    from tiered.cli.commands.batch import run_batch_quantize

    folder = FolderOptions(out_dir=out_dir, max_memory=max_memory)
    return run_batch_quantize(sources, options, write, batch, folder)


@batch.command(name="verify")
def batch_verify(
    *sources: Annotated[str, Parameter(name="SOURCE")],
    against: str,
    batch: BatchOptions = BatchOptions(),
    folder: FolderOptions = FolderOptions(),
    options: CompareOptions = CompareOptions(),
    as_json: AsJson = False,
) -> int:
    """Compare many models with those of the same names in a folder.

    Args:
        sources: The models to compare, as for `tiered batch`.
        against: The folder with the correct models.
        as_json: Print the results as JSON lines.
    """
    from tiered.cli.commands.batch import run_batch_verify

    return run_batch_verify(sources, against, options, batch, folder, as_json=as_json)


@batch.command(name="check")
def batch_check(
    *sources: Annotated[str, Parameter(name="SOURCE")],
    target: CheckOptions,
    batch: BatchOptions = BatchOptions(),
    folder: FolderOptions = FolderOptions(),
    options: ReadOptions = ReadOptions(),
) -> int:
    """Write which nodes of many models a target supports.

    Args:
        sources: The models, as for `tiered batch`.
    """
    from tiered.cli.commands.batch import run_batch_report

    return run_batch_report(sources, "check", target, options, batch, folder)


@batch.command(name="inspect")
def batch_inspect(
    *sources: Annotated[str, Parameter(name="SOURCE")],
    target: InspectOptions = InspectOptions(),
    batch: BatchOptions = BatchOptions(),
    folder: FolderOptions = FolderOptions(),
    options: ReadOptions = ReadOptions(),
) -> int:
    """Write the contents of many models as JSON.

    Args:
        sources: The models, as for `tiered batch`.
    """
    from tiered.cli.commands.batch import run_batch_report

    return run_batch_report(sources, "inspect", target, options, batch, folder)
