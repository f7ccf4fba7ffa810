"""Run a bundle and print its failure; exit code 3 if it fails, 0 if it is fixed.

Examples:
    tiered replay bug
"""

from __future__ import annotations

import os
from typing import Annotated

from tiered.cli.line.declaration import Flags
from tiered.cli.load_passes import load_passes
from tiered.cli.output.terminal import printable, results
from tiered.cli.shared_options import Load
from tiered.support.errors import PassNotFoundError, UsageError, VerificationError


def replay(folder: Annotated[str, Flags("DIR")], /, *, load: Load = ()) -> None:
    """Run the bundle of a folder, and print whether it still fails.

    Args:
        folder: The folder that --reproducer or `tiered batch --reproducers` wrote.

    Raises:
        VerificationError: it does; or a process is lost again.
        ModelError: the folder holds no bundle.
        UsageError: the pass of the bundle is not known, and the bundle has no result of it.
    """
    load_passes(load)
    from tiered.extensions.debug import load_bundle, replay as replayed
    from tiered.extensions.debug.bundle import replayed_error
    from tiered.extensions.fleet.crash_bundle import is_crash_bundle

    if is_crash_bundle(folder):
        _replay_crash(folder)
        return
    bundle = load_bundle(folder)
    try:
        found = replayed(bundle)
    except PassNotFoundError as error:
        where = bundle.failure.pass_source
        raise UsageError(
            f"{error}; {where or 'a file'} defined it: load it with --load FILE"
        ) from error
    if found.fails:
        raise replayed_error(found, bundle, os.path.normpath(folder))
    results().print(printable(f"{folder}: {found.symptom}"), soft_wrap=True)


def _replay_crash(folder: str) -> None:
    """Run the command on which a process of a batch was lost.

    Raises:
        VerificationError: the process is lost again.
    """
    from tiered.extensions.fleet.crash_bundle import CrashBundle

    bundle = CrashBundle.load(folder)
    found = bundle.replay(folder)
    if found.is_lost:
        raise VerificationError(
            f"{printable(folder)}: {found.symptom} (in the batch: {bundle.status})"
        )
    results().print(printable(f"{folder}: {found.symptom}"), soft_wrap=True)
