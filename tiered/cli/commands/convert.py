"""`tiered convert MODEL OUT`: change what a model shows, and nothing that it computes.

Each option of `ConvertOptions` adds a pass; they run as a pipeline of `tiered optimize --passes`,
so files, verification, summary and `--json` are those of that command.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from cyclopts import Parameter

import tiered
from tiered.cli.commands.optimize import write_result
from tiered.cli.flags import Flag, Names, WriteOptions
from tiered.errors import UsageError


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


def run_convert(
    source: str, out: str | None, options: ConvertOptions, write: WriteOptions
) -> None:
    """Convert the model of a file according to the options.

    Raises:
        UsageError: no option says what to convert, or options do not go together.
        OpsetError: nodes have no form at the opset; nothing is written.
        VerificationError: the outputs of the result differ; nothing is written.
    """
    passes, what = _passes(options)
    if not passes:
        raise UsageError("nothing to convert: type --opset N, --ir N or --to fp16")
    write_result(source, out, write.with_passes(",".join(passes)), ", ".join(what))


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

