"""Optimise a model and print what changed.

Examples:
    tiered optimize in.onnx out.onnx -O3 --verify
    tiered optimize in.onnx out.onnx --disable 'fuse_*' --dim batch=1
    tiered optimize a.onnx b.onnx --out-dir optimised -O3
    tiered optimize in.onnx --dry-run --expect 'nodes<=500'
"""

from __future__ import annotations

from tiered.cli.optimizing import run_prepared
from tiered.cli.prepared import PreparedRun
from tiered.cli.shared_options import ModelFile, OptimizeOptions
from tiered.cli.watch import WatchOptions


def optimize(
    source: ModelFile,
    out: str | None = None,
    /,
    *more: str,
    options: OptimizeOptions,
    watch: WatchOptions,
) -> int | None:
    """Optimise the model of a file according to the options.

    Args:
        out: The file to write. Optional with --dry-run, --json and --out-dir.
        more: More models to read; they need --out-dir, and run as a batch does.

    Raises:
        UsageError: options that do not go together, a wrong name in one of them, or a file to
            write that holds another model.
        ModelError: a file cannot be read or written, or holds no model.
        VerificationError: the outputs of the result differ; nothing is written.
        TargetError: the result lacks an operator that is expected; nothing is written.
    """
    if more or options.out_dir is not None:
        from tiered.cli.batches import optimize_into_folder

        sources = [file for file in (source, out, *more) if file is not None]
        return optimize_into_folder(sources, options, watch)
    run_prepared(PreparedRun.of(options, watch), source, out)
    return None
