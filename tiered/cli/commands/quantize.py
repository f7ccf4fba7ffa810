"""Quantise a model, and print what that costs, layer by layer.

--inputs are the samples that ranges are measured on; without any, inputs are made. Of four or
more samples, every fourth is kept to measure the result with.

Examples:
    tiered quantize in.onnx out.onnx --inputs data --budget 'sqnr>=20dB'
    tiered quantize in.onnx out.onnx --inputs samples --backend onnxruntime_cpu
    tiered quantize in.onnx out.onnx --dynamic
    tiered quantize in.onnx out.onnx --weights int4

With `--json`, one object: model, out, quantised, products, share_of_macs, other_operators, sqnr
(dB; "inf" without noise, "-inf" without signal; null if no output is of floats), differing (the
share of the elements that differ, if none is), sqnr_deployed (with onnxruntime's own
optimisations), saturates (whether its sums of 8-bit products saturate on this processor),
samples, made_inputs, returned, floating: [{op_type, nodes, reason}] (other operators that a target
of integers does not take), layers: [{node, op_type, output, dtype, scale, weight_scales, sqnr,
contribution, macs, reason}], method: null without --method auto, {method, ratios: {method: dB}};
latency: null without --latency, {ratio, low, high, verdict}; verified, verdict: null without
--verify, {word, why}.
With --dynamic or --weights, the object is that of `tiered optimize`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.console import Console

from tiered.cli.bounded import MemoryBound
from tiered.cli.effects import Effect
from tiered.cli.files import (
    check_output,
    load_model,
)
from tiered.cli.line.declaration import Flags
from tiered.cli.line.pass_options import OfPass, PassOptions
from tiered.cli.optimizing import write_result
from tiered.cli.output.tables import Number, print_table, seconds
from tiered.cli.output.terminal import Progress, notes, print_json, printable, results
from tiered.cli.shared_options import (
    BackendName,
    Html,
    ModelFile,
    OutFile,
    WriteOptions,
    runs_model,
)
from tiered.cli.writing import Goal
from tiered.support.errors import UsageError
from tiered.support.records import Record
from tiered.support.whole_files import write_json, write_text

if TYPE_CHECKING:
    import onnx

    from tiered.extensions.measurement.latency_result import Ratio
    from tiered.extensions.preparation.promise_mark import Carried
    from tiered.graph import Model
    from tiered.numerics.quantization.quantization_report import QuantizationReport
    from tiered.numerics.quantization.quantization_result import QuantizationResult
    from tiered.passes import Pass

HEADERS = ("layer", "operator", "dtype", "scale", "dB alone", "share of error", "multiply-adds")
LATENCY_MINUTES = 0.5
"""The limit of the measurement of --latency."""

FEW = 12
"""Rows of the table without -v: those with the largest part of the error."""


def _is_measured(of: Callable[[str], Any]) -> bool:
    return not of("dynamic") and of("weights") is None


def _reads_inputs(of: Callable[[str], Any]) -> bool:
    """Return whether quantisation itself runs the model on inputs."""
    return _is_measured(of) or of("weights") == "int4" or of("settings.budget")


def _is_fitted(of: Callable[[str], Any]) -> bool:
    """Return whether weights are rounded for samples."""
    return _is_measured(of) or of("weights") == "int4"


class QuantizeOptions(Record):
    """The options of `tiered quantize` that no pass has; --inputs are the samples."""

    dynamic: bool = False
    """Measure the range of data in each run, instead of on samples."""
    weights: Literal["int8", "int4"] | None = None
    """Quantise weights only, and compute in float."""
    backend: BackendName = None
    """The target. Its table decides dtypes, symmetry and operators."""
    latency: bool = False
    """Measure the latency beside that of the original, and say whether 8 bits pay here."""
    report: str | None = None
    """A file for the report: .json, or .svg for a chart."""
    html: Html = None
    """Write the report as a page, with all layers."""

    EFFECTS = (
        Effect(
            (
                "report",
                "html",
                "backend",
                "latency",
                "settings.order",
                "settings.method",
                "settings.percentile",
            ),
            "measured ranges, without --dynamic and --weights",
            _is_measured,
        ),
        Effect(
            ("verify",),
            "--dynamic or --weights: the whole model is compared",
            lambda of: not _is_measured(of) or of("verify") not in ("region", "structure"),
        ),
        Effect(
            ("settings.percentile",),
            "--method percentile or auto",
            lambda of: of("settings.method") in ("percentile", "auto"),
        ),
        Effect(("settings.order",), "--budget", lambda of: of("settings.budget")),
        Effect(
            ("settings.reduce_range", "settings.processor"),
            "products of integers, not --weights",
            lambda of: of("weights") is None,
        ),
        Effect(
            ("settings.processor",),
            "weights of 8 bits, not --reduce-range",
            lambda of: not of("settings.reduce_range"),
        ),
        Effect(
            ("inputs",),
            "--budget, or --verify that runs the model",
            lambda of: _reads_inputs(of) or runs_model(of("verify")),
        ),
        Effect(("settings.seed",), "--budget", _reads_inputs),
        Effect(
            ("settings.samples", "settings.rounding"),
            "measured ranges or --weights int4",
            _is_fitted,
        ),
        Effect(
            ("settings.samples", "settings.seed"),
            "generated inputs, without --inputs",
            lambda of: not of("inputs"),
        ),
    )


QuantizeSettings = Annotated[
    PassOptions,
    OfPass(
        "quantize",
        without=("inputs",),
        reduce_range=Flags(off="--no-reduce-range"),
        processor=Flags("--for", "--processor"),
        skip_op_types=Flags("--keep-ops", "--skip-op-types", splits=True),
        skip_nodes=Flags("--keep-nodes", "--skip-nodes"),
    ),
]


def quantize(
    source: ModelFile,
    out: OutFile = None,
    /,
    *,
    options: QuantizeOptions,
    settings: QuantizeSettings,
    bound: MemoryBound,
    write: WriteOptions,
) -> None:
    """Quantise the model of a file.

    Raises:
        UsageError: options that do not go together.
        ModelError: a file cannot be read or written.
        RuntimeFailure: onnxruntime does not run the model.
        TargetError: the model has nothing to quantise.
        VerificationError: the outputs moved further than promised; nothing is written.
    """
    if options.dynamic and options.weights is not None:
        raise UsageError("--dynamic and --weights are two ways to quantise; use one")
    if options.dynamic or options.weights is not None:
        made = _other_pass(options, settings, write.inputs)
        write_result(source, out, write.for_optimize(), [made], "quantised")
        return
    if options.report is not None and not options.report.endswith((".json", ".svg")):
        raise UsageError(f"--report {options.report!r}: expected a file .json or .svg")
    from tiered.numerics.precision.budget import budget_of

    budget = budget_of(settings["budget"]) if settings["budget"] else None
    goal = Goal.of(source, out, write.for_optimize())
    target = goal.path
    if options.report is not None:
        check_output(source, options.report)
        if target is not None and os.path.realpath(target) == os.path.realpath(options.report):
            raise UsageError(f"OUT and --report are one file, {printable(target)!r}; name two")
    with Progress(enabled=not (write.json or write.quiet)) as progress:
        from tiered.cli.source_mark import PRECISION, write_mark
        from tiered.numerics.precision.narrowing import unmatched
        from tiered.numerics.quantization.verified import verified_ratio
        from tiered.pipeline.result import ModelStatistics

        model = load_model(source)
        started, before = time.perf_counter(), ModelStatistics.of(model)
        missing = [*unmatched(model, settings["skip_op_types"], settings["skip_nodes"])]
        mark = goal.mark(model)
        original = _original(model, write.verify)
        progress.say("preparing")
        pass_ = settings.pass_(inputs=write.inputs)
        found, report = _quantized(model, pass_, options.backend, progress)
        taken = time.perf_counter() - started
        verdict = None
        if original is not None:
            progress.say("verifying")
            verdict = verified_ratio(original, model, found, budget)
        if mark is not None and goal.written is not None:
            progress.say(f"writing {printable(goal.written)}")
            write_mark(model, mark, _carried(settings, write.inputs))
            goal.save(model, mark, {PRECISION})
        after = ModelStatistics.of(model)
        latency = None
        if options.latency:
            progress.say("measuring the latency")
            latency = _latency(source, model)
    if options.report is not None:
        _write(options.report, report, source)
    if options.html is not None:
        _write_html(options.html, report, source)
    if write.json:
        proof = {
            "verified": verdict is not None and verdict.is_proved,
            "verdict": None if verdict is None else asdict(verdict),
        }
        method = None if found.method is None else found.method.record()
        found_record = {**report.record(), "method": method, "latency": _record_of(latency)}
        print_json({"model": source, "out": goal.written, **found_record, **proof})
    elif not write.quiet:
        from tiered.cli.output.summary import print_change

        ends = f"{printable(source)} -> {printable(goal.written or 'nothing written')}"
        results().print(f"{ends}  (quantised, {seconds(taken)})", soft_wrap=True)
        print_change(results(), before, after)
        _print(results(), report, None if write.verbose else FEW)
        if found.method is not None:
            results().print(str(found.method), soft_wrap=True)
        results().print(_said_of(latency), soft_wrap=True)
        results().print(f"verified: {verdict or 'no (--verify compares with the original)'}")
        if warning := found.warning:
            notes().print(f"tiered: warning: {warning}", soft_wrap=True)
        for text in missing:
            notes().print(f"tiered: warning: {text}", soft_wrap=True)
        if report.quantized and (refused := _missing_operators(options.backend)):
            names = " or ".join(refused)
            notes().print(f"tiered: warning: {options.backend} takes no {names}", soft_wrap=True)
        if found.calibration is not None and found.calibration.is_made:
            notes().print("tiered: warning: no --inputs: ranges are those of generated inputs")


def _other_pass(options: QuantizeOptions, settings: PassOptions, inputs: tuple[str, ...]) -> Pass:
    """Return the pass of --dynamic or --weights; it has the options of `quantize` that count."""
    others = {"inputs": inputs} if options.weights == "int4" or settings["budget"] else {}
    name = "quantize_dynamic" if options.dynamic else f"weights_to_{options.weights}"
    return settings.pass_(name, **others)


def _quantized(
    model: Model, pass_: Pass, backend: str | None, progress: Progress
) -> tuple[QuantizationResult, QuantizationReport]:
    """Run the pass, as `tiered optimize --passes` does, and return what it did."""
    from tiered.numerics.quantization.quantization_report import report_of
    from tiered.numerics.quantization.watching import QuantizationWatcher, watching_quantization
    from tiered.pipeline.optimize import optimize_model

    made: list[tuple[QuantizationResult, QuantizationReport]] = []

    def note(found: QuantizationResult) -> None:
        made.append((found, report_of(found, found.shapes)))

    with watching_quantization(QuantizationWatcher(progress.say, note)):
        optimize_model(model, passes=[pass_], backend=backend)
    return made[-1]


def _latency(source: str, model: Model) -> Ratio:
    """Return the latency of the quantised model by that of the original, on this processor."""
    from tiered.extensions.measurement.latency_bench import bench

    with TemporaryDirectory() as folder:
        made = os.path.join(folder, os.path.basename(source))
        model.save(made)
        return bench(source, made, minutes=LATENCY_MINUTES).ratios[0]


def _said_of(latency: Ratio | None) -> str:
    """Return the latency in words, or how to ask for it."""
    if latency is None:
        return "latency: not measured (--latency compares with the original)"
    found = latency.interval
    said = f"latency: {found.median:.2f} of the original's ({found.low:.2f} to {found.high:.2f})"
    ends = {"faster": "8 bits pay here", "too few rounds": latency.verdict}
    return f"{said}: {ends.get(latency.verdict, '8 bits do not pay on this processor')}"


def _record_of(latency: Ratio | None) -> dict[str, Any] | None:
    """Return the latency as JSON has it."""
    if latency is None:
        return None
    found = latency.interval
    ends = {"ratio": found.median, "low": found.low, "high": found.high}
    return {**ends, "verdict": latency.verdict}


def _original(model: Model, verify: str | None) -> onnx.ModelProto | None:
    """Return the model as it was read, if it is to be verified."""
    from tiered.graph.io.export import export_model
    from tiered.verify.methods import how_of

    return None if how_of(verify) == "off" else export_model(model, is_bare=True)


def _missing_operators(backend: str | None) -> list[str]:
    """Return the operators of quantised models that a target does not take."""
    from tiered.targets import get_backend

    if backend is None:
        return []
    target = get_backend(backend)
    return [name for name in ("QuantizeLinear", "DequantizeLinear") if not target.rules(name)]


def _carried(settings: PassOptions, inputs: Sequence[str]) -> Carried:
    """Return what the result promises, as that of the pass does."""
    from tiered.extensions.preparation.precisions import conversion_promise
    from tiered.extensions.preparation.promise_mark import Carried

    promise = conversion_promise(settings.pass_().info, settings["budget"])
    return Carried(promise, "given" if inputs else "generated")


def _write(path: str, report: QuantizationReport, source: str) -> None:
    """Write the report in the form of the suffix of a file."""
    from tiered.numerics.quantization.quantization_report import report_svg

    name = os.path.basename(source)
    if path.endswith(".svg"):
        write_text(path, report_svg(report, f"{name}: signal to noise of each product, alone"))
    else:
        write_json(path, {"model": source, **report.record()})


def _write_html(path: str, report: QuantizationReport, source: str) -> None:
    """Write the report as a page."""
    from tiered.cli.output.report_page import write_report
    from tiered.numerics.quantization.quantization_report import report_svg

    write_report(
        path,
        "quantize",
        [source],
        lambda console: _print(console, report, None),
        {"Signal to noise of each product": report_svg(report, "each product alone")},
    )


def _print(console: Console, report: QuantizationReport, limit: int | None) -> None:
    done = [row for row in report.rows if not row.reason]
    shown = done if limit is None else sorted(done, key=lambda row: -row.contribution)[:limit]
    cells = [
        (
            row.node or row.output,
            row.op_type,
            row.dtype,
            Number("" if row.scale is None else f"{row.scale:.3g}"),
            Number("" if row.sqnr is None else f"{row.sqnr:.1f}"),
            Number("" if row.sqnr is None else f"{row.contribution:.1%}"),
            row.macs or "",  # unknown in a body
        )
        for row in shown
    ]
    if cells:
        print_table(console, "Quantised layers, largest error first", HEADERS, cells)
    if len(done) > len(shown):
        console.print(f"  and {len(done) - len(shown):,} more (-v lists them)")
    kept = [row for row in report.rows if row.reason]
    if kept:
        rows = [(row.node or row.output, row.op_type, row.reason) for row in kept]
        print_table(console, "Layers that stay float", ("layer", "operator", "reason"), rows)
    console.print(
        f"{report.quantized} of {len(report.rows)} layers and {report.share_of_macs:.1%} of the "
        "multiply-adds are quantised",
        soft_wrap=True,
    )
    if report.floating:
        title = "Other operators that stay float"
        print_table(console, title, ("operator", "nodes", "reason"), report.floating)
    if report.others:
        console.print(f"other operators that are quantised: {report.others}")
    if report.sqnr is not None:
        console.print(f"signal to noise of the outputs: {report.sqnr:.1f} dB")
    if report.differing is not None:
        console.print(f"no output is of floats; {report.differing:.2%} of the elements differ")
