"""Many models in one command: the options of batches, and how one runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

from tiered.cli.line.declaration import Flags, words_of
from tiered.cli.optimizing import run_prepared
from tiered.cli.output.fleet import BatchReport, print_results
from tiered.cli.output.terminal import printable
from tiered.cli.prepared import PreparedRun
from tiered.cli.shared_options import OptimizeOptions, Quiet, size_option
from tiered.cli.watch import WatchOptions
from tiered.support.errors import ModelError, UsageError
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.extensions.fleet import Command, Result

OWN: Final = ("out_dir", "json", "quiet", "verbose", "max_memory")
"""Options of `tiered optimize` that concern the whole batch."""

_ONE_MODEL: Final = ("output", "reproducer", "result_of")
_ONE_MODEL_WATCH: Final = (
    *("remarks", "time", "statistics", "trace", "html", "html_without_times"),
    *("dump", "dump_weights", "print_before", "print_after", "diff"),
)
"""Options that print, or name a file, for one model."""


class BatchOptions(Record):
    """How a batch runs."""

    jobs: Annotated[int | None, Flags("--jobs", "-j")] = None
    """How many processes at most; by default one a processor, on a cluster all that it has."""
    resume: bool = False
    """Skip what the manifest of DIR lists as done with the same input, options and versions."""
    timeout: float | None = None
    """The seconds that one model may take."""
    fail_fast: Annotated[bool, Flags(off="--keep-going")] = False
    """Start no more models after the first failure; by default all models are tried."""
    reproducers: str | None = None
    """A folder for bundles of models that fail, crash, hang or exceed the memory."""
    results: str | None = None
    """A file for the results: .jsonl, .html for a page, or .parquet (needs tiered[fleet])."""
    manifest: str | None = None
    """The file that records what is done; by default tiered-batch.jsonl in DIR."""
    cluster: str | None = None
    """The Dask scheduler (tcp://...), or its scheduler file; needs tiered[fleet]."""


class FolderOptions(Record):
    """Where a batch writes its reports, and what it prints."""

    out_dir: str | None = None
    """The folder for the results, each under the name of its model, and for the manifest."""
    max_memory: str | None = None
    """Limit of the memory of all processes together: 2GB, 50%."""
    quiet: Quiet = False
    """Print only the table of failures."""


def optimize_into_folder(
    sources: Sequence[str], options: OptimizeOptions, watch: WatchOptions
) -> int | None:
    """Optimise models into the folder of --out-dir, several of them as a batch without a manifest.

    Returns:
        the exit code: that of the first model that failed.

    Raises:
        UsageError: options that do not go together.
        ModelError: the folder cannot be made, or the only model cannot be read or written.
    """
    folder = options.out_dir
    if folder is None:
        shown = ", ".join(repr(printable(source)) for source in sources[:3])
        more = ", ..." if len(sources) > 3 else ""
        raise UsageError(
            f"{len(sources)} files ({shown}{more}); expected MODEL and OUT. For several models "
            "add the folder for their results: --out-dir DIR"
        )
    if options.output is not None:
        raise UsageError("-o names one file and --out-dir a folder; use only one of them")
    if options.result_of is not None:
        raise UsageError("--result-of is for one result; leave it out with --out-dir")
    if len(sources) == 1:
        _one_into_folder(sources[0], folder, options, watch)
        return None
    with TemporaryDirectory(prefix="tiered-") as temporary:
        batch = BatchOptions(
            reproducers=options.reproducer, manifest=os.path.join(temporary, "manifest.jsonl")
        )
        whole = options.changed(reproducer=None)
        results = optimized(sources, whole, watch, batch)
    codes = {result.source: 0 if result.ok else result.exit_code or 1 for result in results}
    return next((code for code in map(codes.get, sources) if code), 0)


def _one_into_folder(
    source: str, folder: str, options: OptimizeOptions, watch: WatchOptions
) -> None:
    prepared = PreparedRun.of(options.changed(out_dir=None), watch)
    if not (options.dry_run or watch.print_pipeline):
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise ModelError(f"cannot make {printable(folder)!r}: {error.strerror}") from error
    target = None if options.dry_run else os.path.join(folder, os.path.basename(source))
    run_prepared(prepared, source, target)


def optimized(
    sources: Sequence[str], options: OptimizeOptions, watch: WatchOptions, batch: BatchOptions
) -> list[Result]:
    """Optimise many models and return the results; none for --print-pipeline."""
    from tiered.extensions.fleet import Command

    prepared = PreparedRun.of(options, watch)
    options = prepared.options
    if watch.print_pipeline:
        from tiered.cli.output.printed_pipeline import print_plan

        print_plan(prepared)
        return []
    check_batch_options(options, _ONE_MODEL)
    check_batch_options(watch, _ONE_MODEL_WATCH)
    if options.certify is not None:
        from tiered.certify.certify_instrument import certify_of

        if certify_of(options.certify).file is not None:
            raise UsageError(
                f"--certify={options.certify} is for one model, not a batch: all would write it"
            )
    words = (*words_of(options, OWN), *words_of(watch, ("config",)))
    folder = FolderOptions(
        out_dir=options.out_dir, max_memory=options.max_memory, quiet=options.quiet
    )
    command = Command("optimize", words)
    if not options.dry_run:
        return _results(sources, command, batch, folder, as_json=options.json)
    with TemporaryDirectory(prefix="tiered-") as temporary:  # for the manifest
        return _results(
            sources, command, batch, folder.changed(out_dir=temporary), as_json=options.json
        )


def check_batch_options(options: Record, names: Sequence[str]) -> None:
    """Check that options for one model are not given.

    Raises:
        UsageError: one is.
    """
    for name in names:
        if getattr(options, name) != getattr(type(options), name):
            instead = "; use --reproducers DIR" if name == "reproducer" else ""
            raise UsageError(f"--{name.replace('_', '-')} is for one model, not a batch{instead}")


def run_batch(
    sources: Sequence[str],
    command: Command,
    batch: BatchOptions,
    folder: FolderOptions,
    *,
    as_json: bool,
) -> int:
    """Run a batch, print its results, and return the exit code."""
    results = _results(sources, command, batch, folder, as_json=as_json)
    return 0 if all(result.ok for result in results) else 1


def _results(
    sources: Sequence[str],
    command: Command,
    batch: BatchOptions,
    folder: FolderOptions,
    *,
    as_json: bool,
) -> list[Result]:
    """Run a batch, print its results, and return them."""
    from tiered.extensions.fleet import FleetOptions, run, submit
    from tiered.extensions.fleet.result_tables import check_table, write_table

    if folder.out_dir is None:
        raise UsageError("a batch needs a folder for its results: --out-dir DIR")
    if batch.results is not None:
        check_table(batch.results)
    options = FleetOptions(
        jobs=batch.jobs,
        timeout=batch.timeout,
        max_memory=_memory(folder.max_memory),
        resume=batch.resume,
        fail_fast=batch.fail_fast,
        reproducers=batch.reproducers,
        manifest=batch.manifest,
    )
    given = sources, folder.out_dir, command, options
    with BatchReport(is_quiet=folder.quiet) as report:
        if batch.cluster is None:
            results = run(*given, report)
        else:
            from tiered.extensions.fleet.cluster import connect

            with connect(batch.cluster) as client:
                results = submit(client, *given, report)
    if batch.results is not None:
        write_table(batch.results, results)
    print_results(results, as_json=as_json, is_quiet=folder.quiet)
    return results


def _memory(given: str | None) -> int | None:
    """Return the bytes of --max-memory."""
    if given is None:
        return None
    from tiered.runtime.worker.limits import physical_memory

    return size_option("--max-memory", given, physical_memory())
