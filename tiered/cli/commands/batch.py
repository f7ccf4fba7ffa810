"""Optimise many models, each in a process of its own; a model that fails stops no other.

Results are whole or absent, and recorded in a manifest: --resume goes on where a batch ended.

Examples:
    tiered batch models --out-dir optimised -O3 --jobs 4 --timeout 600
    tiered batch 'exports/**/*.onnx' list.txt --out-dir optimised --resume
    tiered batch verify optimised --against models --out-dir reports
    tiered batch list.txt --out-dir shared/out -O3 --cluster tcp://head:8786

Exit codes: 0 all done, 1 a model failed, 2 usage. `--json` prints a JSON object a line, with the
fields of `tiered.extensions.fleet.result_line.Result`; the file of --results has the same.
"""

from __future__ import annotations

from typing import Annotated

from tiered.cli.batches import BatchOptions, optimized
from tiered.cli.line.declaration import Flags
from tiered.cli.shared_options import OptimizeOptions
from tiered.cli.watch import WatchOptions


def batch(
    *sources: Annotated[str, Flags("SOURCE")],
    batch: BatchOptions,
    options: OptimizeOptions,
    watch: WatchOptions,
) -> int:
    """Optimise many models; return the exit code.

    Args:
        sources: Folders, globs, lists (.txt, one entry a line) and files; also URLs (s3://...).

    Raises:
        UsageError: options that do not go together.
    """
    results = optimized(sources, options, watch, batch)
    return 0 if all(result.ok for result in results) else 1
