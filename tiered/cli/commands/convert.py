"""Convert a model to another opset, IR version or precision, and print what changed.

Nodes that cannot be converted to an opset are listed, and nothing is written. With --to, nodes
that stay float are listed with the reason.

Examples:
    tiered convert in.onnx out.onnx --opset 21 --verify
    tiered convert in.onnx out.onnx --opset 13 --ir 8 --expand
    tiered convert in.onnx out.onnx --to fp16 --keep-ops Softmax --verify

Each option adds a pass; they run as a pipeline of `tiered optimize --passes` does, so files,
verification, summary and `--json` are those of that command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tiered.cli.conversions import Bounds, ConversionOptions, NarrowingWithPorts, Versions
from tiered.cli.effects import Effect
from tiered.cli.line.pass_options import PassOptions
from tiered.cli.optimizing import write_result
from tiered.cli.pass_names import strip_pass
from tiered.cli.shared_options import (
    BackendName,
    Bounded,
    Html,
    ModelFile,
    Names,
    OutFile,
    WriteOptions,
    runs_model,
)
from tiered.support.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tiered.passes import Pass

PRECISIONS: Final = (
    "fp16", "bf16", "mixed", "fp8", "int8-weights", "int4-weights", "int32",
)  # fmt: skip
"""The values of --to here; `tiered prepare` has those of `tiered quantize` too."""
_TARGETS_DECIDE: Final = ("fp16", "bf16", "mixed", "int32")
"""Conversions that the table of a target decides about."""


def _is_lossy(of: Callable[[str], Any]) -> bool:
    """Return whether a conversion reduces accuracy."""
    return bool(set(_named(of("to"))) - {"int32"})


def _is_mixed(of: Callable[[str], Any]) -> bool:
    """Return whether the nodes that need float are searched, which measures the outputs."""
    from tiered.extensions.preparation.precisions import is_searched

    return any(is_searched(name, of("narrowing.budget")) for name in _named(of("to")))


def _is_half(of: Callable[[str], Any]) -> bool:
    return bool({"fp16", "bf16", "mixed"}.intersection(_named(of("to"))))


def _reads_inputs(of: Callable[[str], Any]) -> bool:
    """Return whether --to runs the model on inputs."""
    from tiered.extensions.preparation.precisions import reads_inputs

    is_read = any(reads_inputs(name, of("narrowing.budget")) for name in _named(of("to")))
    return is_read or (_is_lossy(of) and of("measure"))


class ConvertOptions(ConversionOptions, Bounded):
    """The options of `tiered convert` that no pass has."""

    to: Names = ()
    """Compute in float16 (fp16) or bfloat16 (bf16) wherever the schemas of the operators allow it;
    in float16 where measured outputs allow it (mixed); quantise to float8 (fp8); store weights in
    few bits (int8-weights, int4-weights); or compute in int32 where int64 is proven to fit (int32).
    Repeatable, and several with commas."""
    backend: BackendName = None
    """With --to fp16, bf16, mixed or int32: the target; what it takes only as it is stays."""
    html: Html = None
    """Write a page of the run, as `tiered optimize --html` does."""
    measure: bool = True
    """With --to: run the model and the result on --inputs, or on generated ones, and print the
    error; models of up to 256 MiB."""

    EFFECTS = (
        Effect(("expand",), "--opset", lambda of: of("versions.to")),
        Effect(("narrowing.skip_op_types", "narrowing.skip_nodes"), "--to", lambda of: of("to")),
        Effect(("narrowing.budget",), "--to with less accuracy than float", _is_lossy),
        Effect(("bounds.bounds",), "--to int32", lambda of: "int32" in _named(of("to"))),
        Effect(
            ("backend",),
            "--to fp16, bf16, mixed or int32",
            lambda of: set(_TARGETS_DECIDE).intersection(_named(of("to"))),
        ),
        Effect(("narrowing.keep_io_types",), "--to fp16, bf16 or mixed", _is_half),
        Effect(
            ("narrowing.order",),
            "--budget and --to fp16, bf16 or mixed",
            lambda of: _is_half(of) and of("narrowing.budget"),
        ),
        Effect(
            ("measure",),
            "another --to, without --budget for fp16 or bf16: mixed measures anyway",
            lambda of: _is_lossy(of) and not _is_mixed(of),
        ),
        Effect(
            ("inputs",),
            "--verify that runs the model, or --to without --no-measure",
            lambda of: runs_model(of("verify")) or _reads_inputs(of),
        ),
    )


def convert(
    source: ModelFile,
    out: OutFile = None,
    /,
    *,
    options: ConvertOptions,
    versions: Versions,
    narrowing: NarrowingWithPorts,
    bounds: Bounds,
    write: WriteOptions,
) -> None:
    """Convert the model of a file according to the options.

    Raises:
        UsageError: no option says what to convert, or options do not go together.
        OpsetError: nodes have no form at the opset; nothing is written.
        VerificationError: the outputs of the result differ, or a budget is not met; nothing is
            written.
    """
    to = _checked(options.to)
    passes: list[Pass] = []
    what: list[str] = []
    if versions.given:
        passes.append(versions.pass_(**({"numerics": "reassociating"} if options.expand else {})))
        words = {"to": "opset", "ir": "IR"}
        what += [f"{words[name]} {value}" for name, value in versions.given.items()]
    if to:
        passes += _precisions(to, narrowing, bounds, write.inputs, measures=options.measure)
        what += to
    if options.strip:
        passes.append(strip_pass(options.strip))
        what.append("stripped")
    if not passes:
        raise UsageError("nothing to convert: type --opset N, --ir N, --to fp16 or --strip all")
    names = ("dim", "input_shape", "backend", "max_memory")
    asked = {name: getattr(options, name) for name in names}
    written = write.for_optimize(**asked)
    said = ", ".join([*options.dim, *options.input_shape, *what])
    write_result(source, out, written, passes, said, html=options.html, command="convert")


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


def _precisions(
    to: Sequence[str],
    narrowing: PassOptions,
    bounds: PassOptions,
    inputs: tuple[str, ...],
    *,
    measures: bool,
) -> list[Pass]:
    """Return the passes of --to, in order."""
    from tiered.extensions.preparation.precisions import (
        PrecisionOptions,
        is_lossy,
        is_searched,
        precision_pass,
    )
    from tiered.pipeline import get_pass

    budget = narrowing["budget"]
    settings = PrecisionOptions(
        budget=budget,
        order=narrowing["order"],
        inputs=inputs,
        keep_ops=narrowing["skip_op_types"],
        keep_nodes=narrowing["skip_nodes"],
        keep_io=narrowing["keep_io_types"],
        bounds=bounds["bounds"],
        measures=measures,
    )
    passes = [precision_pass(name, settings) for name in to]
    lossy = [name for name in to if is_lossy(name)]
    # One conversion with a search measures by itself; of several the sum is not known.
    is_known = len(lossy) == 1 and is_searched(lossy[0], budget)
    if lossy and measures and not is_known:
        whole = budget if len(lossy) > 1 else ""
        passes.append(get_pass("measure_error", inputs=inputs, budget=whole))
    return passes
