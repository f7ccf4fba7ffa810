"""`tiered optimize A B C --out-dir DIR`: several models with the same options, in sequence.

Each result is whole or absent. A model that fails does not stop the others; the exit code is that
of the first one that failed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tiered.cli.commands.optimize import check_options, check_target, optimize_file, print_planned
from tiered.cli.files import check_input
from tiered.cli.flags import OptimizeOptions
from tiered.cli.load_passes import load_passes
from tiered.cli.output.failures import failure, print_failure
from tiered.cli.output.terminal import notes, print_json, printable
from tiered.cli.watch import WatchOptions
from tiered.errors import ModelError, UsageError


def run_several(sources: Sequence[str], options: OptimizeOptions, watch: WatchOptions) -> int:
    """Optimise models into a folder and return the exit code.

    Raises:
        UsageError: options that do not go together, or a file to write that holds another model;
            nothing was optimised.
        ModelError: the folder cannot be made.
    """
    folder = _folder(sources, options, watch)
    load_passes(options.load)
    check_options(options, watch)
    if watch.print_pipeline:
        print_planned(options, watch)
        return 0
    targets = _targets(sources, folder)
    if not options.dry_run:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise ModelError(f"cannot make {printable(folder)!r}: {error.strerror}") from error
        for source, target in zip(sources, targets, strict=True):
            check_target(source, target, options)
    records: list[dict[str, Any]] = []
    failed: dict[str, int] = {}
    broken: BrokenPipeError | None = None
    for source, target in zip(sources, targets, strict=True):
        try:
            check_input(source)
            optimize_file(source, target, *_own_folders(source, options, watch), records.append)
        except BrokenPipeError as error:  # a closed pipe stops no other model
            broken, options = error, replace(options, quiet=True, verbose=False)
        except Exception as error:  # noqa: BLE001 - printed as for one model
            failed[source] = print_failure(failure(error, source))
    if options.json:
        print_json(records)
    if failed:
        names = ", ".join(map(printable, failed))
        text = f"{len(failed)} of {len(sources)} models failed: {names}"
        notes().print(f"tiered: error: {text}", soft_wrap=True)
    if broken is not None and not failed:
        raise broken
    return next(iter(failed.values()), 0)


def _folder(sources: Sequence[str], options: OptimizeOptions, watch: WatchOptions) -> str:
    """Return the folder to write into.

    Raises:
        UsageError: none is given, or an option names one file for all models.
    """
    if options.out_dir is None:
        shown = ", ".join(repr(printable(source)) for source in sources[:3])
        more = ", ..." if len(sources) > 3 else ""
        raise UsageError(
            f"{len(sources)} files ({shown}{more}); expected MODEL and OUT. For several models "
            "add the folder for their results: --out-dir DIR"
        )
    if options.output is not None:
        raise UsageError("-o names one file and --out-dir a folder; use only one of them")
    if watch.trace is not None and len(sources) > 1:
        raise UsageError("--trace names one file; use it with one model")
    if watch.html is not None and len(sources) > 1:
        raise UsageError("--html names one file; use it with one model")
    return options.out_dir


def _targets(sources: Sequence[str], folder: str) -> list[str]:
    """Return the file to write for each model.

    Raises:
        UsageError: two would be the same.
    """
    targets: dict[str, str] = {}
    for source in sources:
        target = os.path.join(folder, os.path.basename(source))
        if target in targets:
            raise UsageError(
                f"{printable(targets[target])!r} and {printable(source)!r} would both be written "
                f"to {printable(target)!r}; optimise them in separate runs"
            )
        targets[target] = source
    return list(targets)


def _own_folders(
    source: str, options: OptimizeOptions, watch: WatchOptions
) -> tuple[OptimizeOptions, WatchOptions]:
    """Return the options for one model: its side outputs go into a folder of its name."""
    stem = os.path.splitext(os.path.basename(source))[0]
    if options.reproducer is not None:
        options = replace(options, reproducer=os.path.join(options.reproducer, stem))
    if watch.dump is not None:
        watch = replace(watch, dump=os.path.join(watch.dump, stem))
    return options, watch
