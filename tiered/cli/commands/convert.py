"""`tiered convert MODEL OUT`: change what a model shows, and nothing that it computes.

Each option of `ConvertOptions` adds a pass; they run as a pipeline of `tiered optimize --passes`,
so files, verification, summary and `--json` are those of that command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from tiered.cli.command_flags import WriteOptions
from tiered.cli.commands.completion import complete_backend
from tiered.cli.commands.optimize import write_result
from tiered.cli.effects import Effect, check_effects
from tiered.cli.flags import Flag, InputShapes, Names, strip_pass
from tiered.support.errors import UsageError, did_you_mean

PRECISIONS: Final = (
    "fp16", "bf16", "mixed", "fp8", "int8-weights", "int4-weights", "int32",
)  # fmt: skip
"""The values of --to here; `tiered prepare` has those of `tiered quantize` too."""
_TARGETS_DECIDE: Final = ("fp16", "bf16", "mixed", "int32")
"""Conversions that the table of a target decides about."""


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
    ir: Annotated[int | None, Parameter(name=["--ir", "--ir-version"], show_default=False)] = None
    """The IR version; without it, it is raised if the opset needs a newer one."""
    to: Names = ()
    """Compute in float16 (fp16) or bfloat16 (bf16) wherever the schemas of the operators allow it;
    in float16 where measured outputs allow it (mixed); quantise to float8 (fp8); store weights in
    few bits (int8-weights, int4-weights); or compute in int32 where int64 is proven to fit (int32).
    Repeatable, and several with commas."""
    dim: Names = ()
    """Fix a dim by its name in all inputs that have it: batch=1. Repeatable."""
    input_shape: InputShapes = ()
    """As for `tiered optimize`."""
    backend: Annotated[str | None, Parameter(show_default=False, completer=complete_backend)] = None
    """With --to fp16, bf16, mixed or int32: the target; what it takes only as it is stays."""
    bounds: Names = ()
    """With --to int32: the range of an input, as ids=0:30000. Repeatable."""
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
    """As for `tiered optimize`: metadata, docs, names, marks or all."""
    expand: Annotated[bool, Flag] = False
    """Expand operators that the opset lacks into their ONNX function bodies, which may round
    differently."""


def _is_lossy(of: Callable[[str], Any]) -> bool:
    """Return whether a conversion reduces accuracy."""
    return bool(set(_named(of("to"))) - {"int32"})


def _is_mixed(of: Callable[[str], Any]) -> bool:
    """Return whether the nodes that need float are searched, which measures the outputs."""
    from tiered.extensions.preparation.precisions import is_searched

    return any(is_searched(name, of("budget") or "") for name in _named(of("to")))


def _is_half(of: Callable[[str], Any]) -> bool:
    return bool({"fp16", "bf16", "mixed"}.intersection(_named(of("to"))))


def _reads_inputs(of: Callable[[str], Any]) -> bool:
    """Return whether --to runs the model on inputs."""
    from tiered.extensions.preparation.precisions import reads_inputs

    is_read = any(reads_inputs(name, of("budget") or "") for name in _named(of("to")))
    return is_read or (_is_lossy(of) and of("measure"))


EFFECTS: Final = (
    Effect(("expand",), "--opset", lambda of: of("opset") is not None),
    Effect(("keep_ops", "keep_nodes"), "--to", lambda of: of("to")),
    Effect(("budget",), "--to with less accuracy than float", _is_lossy),
    Effect(("bounds",), "--to int32", lambda of: "int32" in _named(of("to"))),
    Effect(
        ("backend",),
        "--to fp16, bf16, mixed or int32",
        lambda of: set(_TARGETS_DECIDE).intersection(_named(of("to"))),
    ),
    Effect(("keep_io",), "--to fp16, bf16 or mixed", _is_half),
    Effect(
        ("order",),
        "--budget and --to fp16, bf16 or mixed",
        lambda of: _is_half(of) and of("budget") is not None,
    ),
    Effect(
        ("measure",),
        "another --to, without --budget for fp16 or bf16: mixed measures anyway",
        lambda of: _is_lossy(of) and not _is_mixed(of),
    ),
    Effect(
        ("inputs",),
        "--verify, or --to without --no-measure",
        lambda of: of("verify") is not None or _reads_inputs(of),
    ),
)


def run_convert(source: str, out: str | None, options: ConvertOptions, write: WriteOptions) -> None:
    """Convert the model of a file according to the options.

    Raises:
        UsageError: no option says what to convert, or options do not go together.
        OpsetError: nodes have no form at the opset; nothing is written.
        VerificationError: the outputs of the result differ, or a budget is not met; nothing is
            written.
    """
    to = _checked(options.to)
    check_effects(EFFECTS, options, write)
    passes, what = list[str](), list[str]()
    if options.opset is not None or options.ir is not None:
        passes.append(_versions(options))
        named = {"opset": options.opset, "IR": options.ir}
        what += [f"{name} {value}" for name, value in named.items() if value is not None]
    passes += _precisions(to, options, write.inputs)
    what += to
    if options.strip:
        passes.append(strip_pass(options.strip))
        what.append("stripped")
    if not passes:
        raise UsageError("nothing to convert: type --opset N, --ir N, --to fp16 or --strip all")
    written = replace(
        write.with_passes(",".join(passes)),
        dim=options.dim,
        input_shape=options.input_shape,
        backend=options.backend,
    )
    write_result(source, out, written, ", ".join([*options.dim, *options.input_shape, *what]))


def _named(to: tuple[str, ...]) -> list[str]:
    return [name.strip() for names in to for name in names.split(",")]


def _checked(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the conversions in the order in which they are applied.

    Raises:
        UsageError: one is unknown, belongs to another command, or two do not go together.
    """
    from tiered.extensions.preparation.precisions import ordered

    for name in _named(given):
        if name in ("int8", "int8-dynamic", "uint8"):
            dynamic = " --dynamic" if name == "int8-dynamic" else ""
            wanted = "int8" if name == "uint8" else name
            raise UsageError(
                f"--to {name}: type tiered quantize MODEL OUT{dynamic}, or with other steps in one "
                f"run tiered prepare MODEL OUT --to {wanted}"
            )
        if name not in PRECISIONS:
            hint = did_you_mean(name, PRECISIONS)
            raise UsageError(f"--to takes {', '.join(PRECISIONS)}, not {name!r}{hint}")
    return ordered(given)


def _versions(options: ConvertOptions) -> str:
    """Return the pass that converts to another opset or IR version."""
    settings = {
        "to": options.opset,
        "ir": options.ir,
        "numerics": "reassociating" if options.expand else None,
    }
    given = [f"{name}={value}" for name, value in settings.items() if value is not None]
    return f"convert_opset{{{','.join(given)}}}"


def _precisions(to: tuple[str, ...], options: ConvertOptions, inputs: tuple[str, ...]) -> list[str]:
    """Return the passes of --to, in order."""
    if not to:
        return []
    from tiered.extensions.preparation.precisions import (
        PrecisionOptions,
        is_lossy,
        is_searched,
        precision_pass,
    )
    from tiered.pipeline import get_pass

    budget = options.budget or ""
    settings = PrecisionOptions(
        budget=budget,
        order=options.order,
        inputs=inputs,
        keep_ops=options.keep_ops,
        keep_nodes=options.keep_nodes,
        keep_io=options.keep_io,
        bounds=options.bounds,
    )
    passes = [precision_pass(name, settings) for name in to]
    lossy = [name for name in to if is_lossy(name)]
    # One conversion with a search measures by itself; of several the sum is not known.
    is_known = len(lossy) == 1 and is_searched(lossy[0], budget)
    if lossy and options.measure and not is_known:
        whole = budget if len(lossy) > 1 else ""
        passes.append(get_pass("measure_error", inputs=inputs, budget=whole))
    return [str(each) for each in passes]
