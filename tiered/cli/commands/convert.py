"""`tiered convert MODEL OUT`: change what a model shows, and nothing that it computes.

Each option of `ConvertOptions` adds a pass; they run as a pipeline of `tiered optimize --passes`,
so files, verification, summary and `--json` are those of that command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

import tiered
from tiered.cli.command_flags import WriteOptions
from tiered.cli.commands.optimize import write_result
from tiered.cli.effects import Effect, check_effects
from tiered.cli.flags import Flag, Names, strip_pass
from tiered.support.errors import UsageError

Precision = Literal["fp16", "bf16", "mixed", "fp8", "int8-weights", "int4-weights"]


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
    to: Annotated[Precision | None, Parameter(show_default=False)] = None
    """Compute in float16 (fp16) or bfloat16 (bf16) wherever the schemas of the operators allow it;
    in float16 where measured outputs allow it (mixed); quantise to float8 (fp8); or store weights
    in few bits (int8-weights, int4-weights)."""
    budget: Annotated[str | None, Parameter(show_default=False)] = None
    """With --to: the limit of the outputs, as cosine>=0.999 or relative<=1e-3; nodes and weights
    return to float until it holds. --inputs has the inputs to measure on."""
    order: Literal["auto", "error", "sensitivity"] = "auto"
    """With --budget for fp16, bf16 or mixed: the first nodes that return to float are those with
    the largest error of their own, or with the largest effect of it on the outputs; auto is the
    effect, and the error where an operator has no gradient."""
    keep_io: Annotated[bool, Parameter(negative="--no-keep-io")] = True
    """With --to fp16, bf16 or mixed: inputs and outputs stay float."""
    keep_ops: Names = ()
    """With --to: operators that stay as they are. Repeatable, and several with commas."""
    keep_nodes: Names = ()
    """With --to: globs of the names of nodes that stay as they are. Repeatable."""
    measure: Annotated[bool, Parameter(negative="--no-measure")] = True
    """With --to: run the model and the result on --inputs, or on generated ones, and print the
    error; models of up to 256 MiB."""
    strip: Names = ()
    """Remove what no runtime reads: metadata, docs (doc strings), names (inner ones) or all."""
    expand: Annotated[bool, Flag] = False
    """Expand operators that the opset lacks into their ONNX function bodies, which may round
    differently."""


_TYPES: Final = {"fp16": "fp16", "bf16": "bf16", "mixed": "fp16"}
"""The type that nodes compute in; with a budget, those that need float are searched."""

def _is_mixed(to: str | None, budget: str | None) -> bool:
    """Return whether the nodes that need float are searched, which measures the outputs."""
    return to == "mixed" or (to in _TYPES and budget is not None)


def _reads_inputs(of: Callable[[str], Any]) -> bool:
    """Return whether --to runs the model on inputs."""
    is_fitted = _is_mixed(of("to"), of("budget")) or of("to") in ("fp8", "int4-weights")
    return of("to") is not None and (of("measure") or is_fitted or of("budget") is not None)


EFFECTS: Final = (
    Effect(("expand",), "--opset", lambda of: of("opset") is not None),
    Effect(
        ("budget", "keep_ops", "keep_nodes", "measure", "keep_io", "order"),
        "--to",
        lambda of: of("to") is not None,
    ),
    Effect(("keep_io",), "--to fp16, bf16 or mixed", lambda of: of("to") in _TYPES),
    Effect(
        ("order",),
        "--budget and --to fp16, bf16 or mixed",
        lambda of: of("to") in _TYPES and of("budget") is not None,
    ),
    Effect(
        ("measure",),
        "another --to, without --budget for fp16 or bf16: mixed measures anyway",
        lambda of: not _is_mixed(of("to"), of("budget")),
    ),
    Effect(
        ("inputs",),
        "--verify, or --to without --no-measure",
        lambda of: of("verify") is not None or _reads_inputs(of),
    ),
)


def run_convert(
    source: str, out: str | None, options: ConvertOptions, write: WriteOptions
) -> None:
    """Convert the model of a file according to the options.

    Raises:
        UsageError: no option says what to convert, or options do not go together.
        OpsetError: nodes have no form at the opset; nothing is written.
        VerificationError: the outputs of the result differ, or a budget is not met; nothing is
            written.
    """
    check_effects(EFFECTS, options, write)
    passes, what = list[str](), list[str]()
    if options.opset is not None or options.ir is not None:
        passes.append(_versions(options))
        named = {"opset": options.opset, "IR": options.ir}
        what += [f"{name} {value}" for name, value in named.items() if value is not None]
    passes += _precision(options, write.inputs)
    what += [options.to] if options.to is not None else []
    if options.strip:
        passes.append(strip_pass(options.strip))
        what.append("stripped")
    if not passes:
        raise UsageError("nothing to convert: type --opset N, --ir N, --to fp16 or --strip all")
    write_result(source, out, write.with_passes(",".join(passes)), ", ".join(what))


def _versions(options: ConvertOptions) -> str:
    """Return the pass that converts to another opset or IR version."""
    settings = {
        "to": options.opset,
        "ir": options.ir,
        "numerics": "reassociating" if options.expand else None,
    }
    given = [f"{name}={value}" for name, value in settings.items() if value is not None]
    return f"convert_opset{{{','.join(given)}}}"


def _precision(options: ConvertOptions, inputs: tuple[str, ...]) -> list[str]:
    """Return the passes of --to."""
    to = options.to
    if to is None:
        return []
    settings: dict[str, object] = {
        "skip_op_types": [name for names in options.keep_ops for name in names.split(",")],
        "skip_nodes": options.keep_nodes,
    }
    if to in _TYPES:
        settings["keep_io_types"] = options.keep_io
    is_mixed = _is_mixed(to, options.budget)
    if is_mixed:
        settings["to"] = _TYPES[to]
    if is_mixed or to in ("fp8", "int4-weights") or options.budget is not None:
        settings["inputs"] = inputs
    if options.budget is not None:
        settings["budget"] = options.budget
    if is_mixed:
        settings["order"] = options.order
    name = "float_to_mixed" if is_mixed else _PASSES[to]
    passes = [tiered.get_pass(name).with_options(**settings)]
    if options.measure and not is_mixed:  # which measures anyway
        passes.append(tiered.get_pass("measure_error").with_options(inputs=inputs))
    return [str(each) for each in passes]


_PASSES: Final = {
    "fp16": "float_to_half",
    "bf16": "float_to_bfloat16",
    "fp8": "float_to_fp8",
    "int8-weights": "weights_to_int8",
    "int4-weights": "weights_to_int4",
}
