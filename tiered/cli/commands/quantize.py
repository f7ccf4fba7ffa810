"""`tiered quantize MODEL OUT`: quantise a model, and print what that costs, layer by layer.

With `--json`, one object: model, out, quantised, products, share_of_macs, other_operators, sqnr
(dB; null if it is infinite, or no output is of floats), differing (the share of the elements that
differ, if no output is of floats), sqnr_deployed (with onnxruntime's own optimisations), saturates
(whether its sums of 8-bit products saturate on this processor), samples, made_inputs, returned,
floating: [{op_type, nodes, reason}] (other operators that a target of integers does not take),
layers: [{node, op_type, output, dtype, scale, weight_scales, sqnr, contribution, macs, reason}],
method: null without --method auto, {method, ratios: {method: dB}}; latency: null without --latency,
{ratio, low, high, verdict}; verified, verdict: null without --verify, {word, why}.
With --dynamic or --weights, the object is that of `tiered optimize`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter
from rich.console import Console

from tiered.cli.command_flags import WriteOptions
from tiered.cli.commands.completion import complete_backend
from tiered.cli.commands.optimize import (
    check_options,
    check_target,
    save_marked,
    storage_of,
    write_result,
)
from tiered.cli.effects import Effect, check_effects
from tiered.cli.files import (
    check_data_files,
    check_input,
    check_output,
    choose_output,
    load_model,
)
from tiered.cli.flags import Flag, Names, OptimizeOptions
from tiered.cli.html import check_html
from tiered.cli.output.tables import Number, print_table
from tiered.cli.output.terminal import Progress, notes, print_json, printable, results
from tiered.cli.watch import WatchOptions
from tiered.support.errors import TargetError, UsageError
from tiered.support.whole_files import write_json, write_text

if TYPE_CHECKING:
    import onnx

    from tiered.cli.source_mark import SourceMark
    from tiered.extensions.measurement.result import Ratio
    from tiered.extensions.preparation.promise_mark import Carried
    from tiered.graph import Model
    from tiered.numerics.quantization.report import Report
    from tiered.numerics.quantization.result import QuantizationResult
    from tiered.numerics.quantization.settings import QuantizationSettings

HEADERS = ("layer", "operator", "dtype", "scale", "dB alone", "share of error", "multiply-adds")
LATENCY_MINUTES = 0.5
"""The limit of the measurement of --latency."""

FEW = 12
"""Rows of the table without -v: those with the largest part of the error."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class QuantizeOptions:
    """The options of `tiered quantize`; --inputs are the samples."""

    dynamic: Annotated[bool, Flag] = False
    """Measure the range of data in each run, instead of on samples."""
    weights: Annotated[Literal["int8", "int4"] | None, Parameter(show_default=False)] = None
    """Quantise weights only, and compute in float."""
    method: Literal["mse", "minmax", "percentile", "entropy", "auto"] = "mse"
    """How the range of a tensor follows from its numbers; auto: the best on samples held back."""
    percentile: float = 99.999
    """With --method percentile: the part of the numbers that is kept."""
    backend: Annotated[str | None, Parameter(show_default=False, completer=complete_backend)] = None
    """The target. Its table decides dtypes, symmetry and operators."""
    budget: Annotated[str | None, Parameter(show_default=False)] = None
    """How far outputs may move: 'sqnr>=20dB', 'cosine>=0.99'; the worst layers return to float."""
    order: Literal["auto", "error", "sensitivity"] = "auto"
    """The worst layers by their own error, or by its effect on the outputs, by gradients."""
    keep_ops: Names = ()
    """Operators that stay float. Repeatable, and several with commas."""
    keep_nodes: Names = ()
    """Globs of the names of nodes that stay float. Repeatable."""
    reduce_range: Annotated[
        bool | None, Parameter(negative="--no-reduce-range", show_default=False)
    ] = None
    """7 bits for weights; by default as the backend needs."""
    rounding: Literal["samples", "nearest"] = "samples"
    """Weights whose errors cancel on the data of samples, or to nearest, which is faster."""
    for_: Annotated[
        Literal["avx2", "vnni", "any"] | None, Parameter(name="--for", show_default=False)
    ] = None
    """The processor: without VNNI, pairs of weights are limited; by default the one at hand."""
    samples: int = 8
    """How many inputs are made, without --inputs."""
    seed: int = 0
    """Seed of the generated inputs."""
    latency: Annotated[bool, Flag] = False
    """Measure the latency beside that of the original, and say whether 8 bits pay here."""
    report: Annotated[str | None, Parameter(show_default=False)] = None
    """A file for the report: .json, or .svg for a chart."""
    html: Annotated[str | None, Parameter(show_default=False)] = None
    """Write the report as a page, with all layers."""


def _is_measured(of: Callable[[str], Any]) -> bool:
    return not of("dynamic") and of("weights") is None


def _reads_inputs(of: Callable[[str], Any]) -> bool:
    """Return whether quantisation itself runs the model on inputs."""
    return _is_measured(of) or of("weights") == "int4" or of("budget") is not None


EFFECTS: Final = (
    Effect(
        ("report", "html", "backend", "order", "method", "percentile", "latency"),
        "measured ranges, without --dynamic and --weights",
        _is_measured,
    ),
    Effect(
        ("verify",),
        "--dynamic or --weights: the whole model is compared",
        lambda of: not _is_measured(of) or of("verify") not in ("region", "structure"),
    ),
    Effect(
        ("rounding",),
        "measured ranges or --weights int4",
        lambda of: _is_measured(of) or of("weights") == "int4",
    ),
    Effect(
        ("percentile",),
        "--method percentile or auto",
        lambda of: of("method") in ("percentile", "auto"),
    ),
    Effect(("order",), "--budget", lambda of: of("budget") is not None),
    Effect(
        ("reduce_range", "for_"),
        "products of integers, not --weights",
        lambda of: of("weights") is None,
    ),
    Effect(("for_",), "weights of 8 bits, not --reduce-range", lambda of: not of("reduce_range")),
    Effect(
        ("inputs",),
        "--budget or --verify",
        lambda of: _reads_inputs(of) or of("verify") is not None,
    ),
    Effect(("seed",), "--budget", _reads_inputs),
    Effect(
        ("samples",),
        "measured ranges or --weights int4",
        lambda of: _is_measured(of) or of("weights") == "int4",
    ),
)


def run_quantize(
    source: str, out: str | None, options: QuantizeOptions, write: WriteOptions
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
    check_effects(EFFECTS, options, write)
    if options.dynamic or options.weights is not None:
        write_result(source, out, write.with_passes(_pass(options, write)), "quantised")
        return
    settings, written = _settings(options, write), write.with_passes("quantize")
    target = choose_output(out, write.output, may_lack=write.dry_run or write.json)
    check_options(written, WatchOptions())
    check_html(options.html)
    check_input(source)
    if target is not None:
        check_target(source, target, written)
    if options.report is not None:
        check_output(source, options.report)
        if target is not None and os.path.realpath(target) == os.path.realpath(options.report):
            raise UsageError(f"OUT and --report are one file, {printable(target)!r}; name two")
    with Progress(enabled=not (write.json or write.quiet)) as progress:
        from tiered.numerics.precision.narrowing import unmatched
        from tiered.numerics.quantization.verified import verified_ratio

        model = load_model(source)
        missing = [*unmatched(model, settings.skip_op_types, settings.skip_nodes)]
        mark = None if target is None else _mark(model, source, target, written)
        original = _original(model, write.verify)
        progress.say("preparing")
        found, report = _quantized(model, settings, options, progress)
        why_nothing = None if found.returned else found.plan.why_nothing(settings.keep)
        if why_nothing is not None:
            raise TargetError(f"quantize cannot do what it is asked for: {why_nothing}")
        verdict = None
        if original is not None:
            progress.say("verifying")
            verdict = verified_ratio(original, model, found, settings.budget)
        if target is not None and mark is not None and not write.dry_run:
            progress.say(f"writing {printable(target)}")
            _save(model, target, mark, written, _carried(settings))
        latency = None
        if options.latency:
            progress.say("measuring the latency")
            latency = _latency(source, model)
    if options.report is not None:
        _write(options.report, report, source)
    if options.html is not None:
        _write_html(options.html, report, source)
    if write.json:
        placed = None if write.dry_run else target
        proof = {
            "verified": verdict is not None and verdict.is_proved,
            "verdict": None if verdict is None else asdict(verdict),
        }
        method = None if found.method is None else found.method.record()
        found_record = {**report.record(), "method": method, "latency": _record_of(latency)}
        print_json({"model": source, "out": placed, **found_record, **proof})
    elif not write.quiet:
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


def _pass(options: QuantizeOptions, write: WriteOptions) -> str:
    """Return the pass of --dynamic or --weights, with its options."""
    import tiered

    name = "quantize_dynamic" if options.dynamic else f"weights_to_{options.weights}"
    kept = [name for names in options.keep_ops for name in names.split(",")]
    settings: dict[str, object] = {"skip_op_types": kept, "skip_nodes": list(options.keep_nodes)}
    if options.dynamic and options.reduce_range is not None:
        settings["reduce_range"] = options.reduce_range
    if options.dynamic and options.for_ is not None:
        settings["processor"] = options.for_
    if options.weights == "int4":
        settings.update(inputs=write.inputs, seed=options.seed, samples=options.samples)
        settings["rounding"] = options.rounding
    if options.budget is not None:
        settings.update(budget=options.budget, inputs=write.inputs, seed=options.seed)
    return str(tiered.get_pass(name).with_options(**settings))


def _settings(options: QuantizeOptions, write: WriteOptions) -> QuantizationSettings:
    from tiered.numerics.precision.budget import budget_of
    from tiered.numerics.quantization.settings import QuantizationSettings

    if options.report is not None and not options.report.endswith((".json", ".svg")):
        raise UsageError(f"--report {options.report!r}: expected a file .json or .svg")
    return QuantizationSettings(
        inputs=write.inputs,
        method=options.method,
        percentile=options.percentile,
        seed=options.seed,
        samples=options.samples,
        budget=None if options.budget is None else budget_of(options.budget),
        order=options.order,
        measures=True,
        skip_op_types=[name for names in options.keep_ops for name in names.split(",")],
        skip_nodes=options.keep_nodes,
        reduce_range=options.reduce_range,
        processor=options.for_,
        rounding=options.rounding,
    )


def _quantized(
    model: Model, settings: QuantizationSettings, options: QuantizeOptions, progress: Progress
) -> tuple[QuantizationResult, Report]:
    """Run the pass with the ones that it requires, and return what it did."""
    from tiered.context import PassContext
    from tiered.numerics.quantization.quantize import quantize_model
    from tiered.numerics.quantization.report import report_of
    from tiered.pipeline import get_pass

    context = PassContext.isolated(backend=options.backend)
    info = get_pass("quantize").info
    with context:
        for name in info.required:
            get_pass(name).apply(model, context)
        backend = context.backend if context.names_backend else None
        found = quantize_model(model, settings, backend=backend, on_step=progress.say)
        report = report_of(found, found.shapes)
        for name in info.followed_by:
            get_pass(name).apply(model, context)
    return found, report


def _latency(source: str, model: Model) -> Ratio:
    """Return the latency of the quantised model by that of the original, on this processor."""
    from tiered.extensions.measurement.bench import bench

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


def _mark(model: Model, source: str, target: str, options: OptimizeOptions) -> SourceMark:
    """Return the mark of a result, after checking that its files can be written."""
    from tiered.cli.source_mark import source_mark
    from tiered.graph.io.save import check_storage

    check_data_files(model, target)
    check_storage(model, storage_of(options))
    return source_mark(model, source, options.result_of)


def _carried(settings: QuantizationSettings) -> Carried:
    """Return what the result promises, as that of the pass does."""
    from tiered.extensions.preparation.precisions import conversion_promise
    from tiered.extensions.preparation.promise_mark import Carried
    from tiered.pipeline import get_pass

    budget = "" if settings.budget is None else str(settings.budget)
    promise = conversion_promise(get_pass("quantize").info, budget)
    return Carried(promise, "given" if settings.inputs else "generated")


def _save(
    model: Model, target: str, mark: SourceMark, options: OptimizeOptions, promise: Carried
) -> None:
    from tiered.cli.source_mark import write_mark

    write_mark(model, mark, promise)
    save_marked(model, target, mark, options)


def _write(path: str, report: Report, source: str) -> None:
    """Write the report in the form of the suffix of a file."""
    from tiered.numerics.quantization.report import report_svg

    name = os.path.basename(source)
    if path.endswith(".svg"):
        write_text(path, report_svg(report, f"{name}: signal to noise of each product, alone"))
    else:
        write_json(path, {"model": source, **report.record()})


def _write_html(path: str, report: Report, source: str) -> None:
    """Write the report as a page."""
    from tiered.cli.output.report_page import write_report
    from tiered.numerics.quantization.report import report_svg
    from tiered.support.pages.render import short

    write_report(
        path,
        f"tiered quantize {short(os.path.basename(source))}",
        lambda console: _print(console, report, None),
        {"Signal to noise of each product": report_svg(report, "each product alone")},
    )


def _print(console: Console, report: Report, limit: int | None) -> None:
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
        console.print(f"{report.others} other operators are quantised")
    if report.sqnr is not None:
        console.print(f"signal to noise of the outputs: {report.sqnr:.1f} dB")
    if report.differing is not None:
        console.print(f"no output is of floats; {report.differing:.2%} of the elements differ")
