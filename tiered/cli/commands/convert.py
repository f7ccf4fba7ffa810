"""`tiered convert MODEL OUT`: change what a model shows, and nothing that it computes.

Each option of `ConvertOptions` adds a pass; they run as a pipeline of `tiered optimize --passes`,
so files, verification, summary and `--json` are those of that command.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from cyclopts import Parameter

import tiered
from tiered.cli.commands.optimize import check_options, check_target, optimize_file
from tiered.cli.files import check_input, choose_output
from tiered.cli.flags import Flag, Names, OptimizeOptions
from tiered.cli.output.terminal import print_json
from tiered.cli.watch import WatchOptions
from tiered.errors import UsageError

Quiet = Parameter(name=["--quiet", "-q"], negative=(), show_default=False)
Verbose = Parameter(name=["--verbose", "-v"], negative=(), show_default=False)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """The options of `tiered convert`."""

    opset: Annotated[
        int | None,
        Parameter(
            name=["--opset", "--target-opset", "--opset-version", "--convert-opset"],
            show_default=False,
        ),
    ] = None
    """The opset of ONNX's own domain to convert to, up or down."""
    ir: Annotated[
        int | None, Parameter(name=["--ir", "--ir-version"], show_default=False)
    ] = None
    """The IR version; without it, it is raised if the opset needs a newer one."""
    to: Annotated[Literal["fp16", "bf16"] | None, Parameter(show_default=False)] = None
    """Compute in float16 or bfloat16 wherever the schemas of the operators allow it."""
    keep_io: Annotated[bool, Parameter(negative="--no-keep-io")] = True
    """With --to: inputs and outputs stay float."""
    keep_ops: Names = ()
    """With --to: operators that stay float. Repeatable, and several with commas."""
    keep_nodes: Names = ()
    """With --to: globs of the names of nodes that stay float. Repeatable."""
    expand: Annotated[bool, Flag] = False
    """Expand operators that the opset lacks into their ONNX function bodies, which may round
    differently."""
    output: Annotated[str | None, Parameter(name=["--output", "-o"])] = None
    """The file to write, instead of OUT."""
    force: Annotated[bool, Flag] = False
    """Replace OUT even if it is an ONNX model and not an earlier result of MODEL."""
    verify: Annotated[str | None, Parameter(show_default=False)] = None
    """Run the model before and after and compare the outputs, as for `tiered optimize`. Exit code
    3 if they differ."""
    inputs: Names = ()
    """Inputs for --verify: x.npy, feeds.npz or a folder; missing ones are generated. Repeatable."""
    dry_run: Annotated[bool, Flag] = False
    """Write nothing."""
    json: Annotated[bool, Flag] = False
    """Print one JSON object on stdout instead of the summary."""
    quiet: Annotated[bool, Quiet] = False
    """Print only errors (and the JSON with --json)."""
    verbose: Annotated[bool, Verbose] = False
    """Print every pass and every remark."""
    external_data: Annotated[str | None, Parameter(show_default=False)] = None
    """Write weights of =SIZE bytes (1KiB) or more to OUT.data, beside OUT."""
    single_file: Annotated[bool, Flag] = False
    """Write all weights into OUT, including external ones; up to 2 GiB."""
    share_weights: Annotated[bool, Flag] = False
    """Keep external weights in their files if OUT is in the same folder."""


_SHARED = (
    *("output", "force", "verify", "inputs", "dry_run", "json", "quiet", "verbose"),
    *("external_data", "single_file", "share_weights"),
)


def run_convert(source: str, out: str | None, options: ConvertOptions) -> None:
    """Convert the model of a file according to the options.

    Raises:
        UsageError: no option says what to convert, or options do not go together.
        OpsetError: nodes have no form at the opset; nothing is written.
        VerificationError: the outputs of the result differ; nothing is written.
    """
    passes, what = _passes(options)
    if not passes:
        raise UsageError("nothing to convert: type --opset N, --ir N or --to fp16")
    shared = {name: getattr(options, name) for name in _SHARED}
    settings = OptimizeOptions(passes=",".join(passes), **shared)
    target = choose_output(out, options.output, may_lack=options.dry_run or options.json)
    check_options(settings, WatchOptions())
    check_input(source)
    if target is not None:
        check_target(source, target, settings)
    optimize_file(source, target, settings, WatchOptions(), print_json, ", ".join(what))


def _passes(options: ConvertOptions) -> tuple[list[str], list[str]]:
    """Return the passes to run, and how the summary calls each of them."""
    passes, what = list[str](), list[str]()
    if options.opset is not None or options.ir is not None:
        settings = {
            "to": options.opset,
            "ir": options.ir,
            "numerics": "reassociating" if options.expand else None,
        }
        given = [f"{name}={value}" for name, value in settings.items() if value is not None]
        passes.append(f"convert_opset{{{','.join(given)}}}")
        named = {"opset": options.opset, "IR": options.ir}
        what += [f"{name} {value}" for name, value in named.items() if value is not None]
    if options.to is not None:
        kept = [name for names in options.keep_ops for name in names.split(",")]
        lower = tiered.get_pass(_PRECISIONS[options.to]).with_options(
            keep_io_types=options.keep_io, skip_op_types=kept, skip_nodes=options.keep_nodes
        )
        passes.append(str(lower))
        what.append(options.to)
    return passes, what


_PRECISIONS: Final = {"fp16": "float_to_half", "bf16": "float_to_bfloat16"}

