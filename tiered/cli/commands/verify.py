"""Run two models on the same inputs and compare their outputs; exit code 3 if they differ.

Examples:
    tiered verify before.onnx after.onnx --layers
    tiered verify before.onnx after.onnx --numerics exact

With `--json`, one object:
    first, second: the files.
    numerics: what is allowed; promised_by: "options", "marks" (the metadata of the files) or
        "default".
    ok: whether all outputs of all trials are within it (if not, the exit code is 3; if all outputs
        are random, so that none was compared, it is false, too, and the exit code 4).
    judged_by, judged_why: the runtime that ran both, and the reason if it is not onnxruntime alone.
    trials: [{dims: {symbol: size}, rules: {input: the rule that chose it}, outputs: [{name, ok,
        dtype, shape, max_abs, max_rel, max_ulp, cosine, argmax, nans, nan_mismatch, reason}]}];
        numbers that are not finite are null; argmax is the share of positions where the index of
        the largest element along the last axis is the same; nans are the counts of both.
    layers: with --layers {pairs, runs, judged_by, first_wrong: place or null, layers: [{place,
        node, op, first, second, and what an output has}]}, else null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from tiered.cli.bounded import MemoryBound
from tiered.cli.files import check_input, check_output
from tiered.cli.line.declaration import Flags
from tiered.cli.output.record import finite
from tiered.cli.output.tables import Number, print_table
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shared_options import AsJson, Html, Sampled
from tiered.support.amounts import counted
from tiered.support.errors import TargetError, VerificationError, original_runs
from tiered.support.pages.render import write_page
from tiered.support.whole_files import write_text

if TYPE_CHECKING:
    from rich.console import Console

    from tiered.extensions.debug import LayerComparison, ModelComparison, OutputRow, Trial

NumericClass = Literal["exact", "reassociating", "approximate", "lossy"]
HEADERS = ("output", "type", "max abs", "max rel", "ULP", "cosine", "argmax", "NaNs", "verdict")


class CompareOptions(Sampled):
    """How two models are compared."""

    numerics: NumericClass | None = None
    """Allowed difference: exact (same bits), reassociating (another order of sums), or more. By
    default what results of tiered carry: the promise of their steps; else reassociating, or
    approximate with --min-cosine."""
    rtol: float | None = None
    """Relative tolerance of every float output, instead of that of its dtype."""
    atol: float | None = None
    """Absolute tolerance; relative to the output's largest element if that is above 1."""
    min_cosine: float | None = None
    """Compare float outputs by their cosine (approximate and lossy only)."""
    layers: bool = False
    """Also find the first layer that differs, by tensors that both models have."""
    every_layer: bool = False
    """Compare every layer, not only those that the search for the first difference needs."""
    svg: str | None = None
    """A file for a chart of the layers."""
    html: Html = None
    """Write a page: the outputs, and the error of each layer as a curve."""


def verify(
    first: Annotated[str, Flags("A")],
    second: Annotated[str, Flags("B")],
    /,
    *,
    options: CompareOptions,
    bound: MemoryBound,
    as_json: AsJson = False,
) -> None:
    """Compare the models of two files, print the comparison, and raise if they differ.

    Args:
        first: The ONNX file with the correct outputs.
        second: The ONNX file to compare with it.

    Raises:
        VerificationError: an output differs by more than is allowed.
        TargetError: all outputs are random, so none was compared.
        NotVerifiable: onnxruntime does not run the first model.
        ModelError: a file cannot be read or written.
        UsageError: the file of --html has another suffix.
    """
    for file in (first, second):
        check_input(file)
        if options.svg is not None:
            check_output(file, options.svg)
    with Progress() as progress:
        progress.say(f"running {printable(first)} and {printable(second)}")
        from tiered.extensions.debug import compare_models

        promised = _promised(first, second, options)
        allowed = {**_allowed(options), **promised.settings}
        with promised.named(), original_runs(first):
            found = compare_models(first, second, **allowed)
        layers = _layers(first, second, options, allowed)
    if as_json:
        print_json({**_record(first, second, found, layers), "promised_by": promised.by})
    else:
        for number, trial in enumerate(found.trials, 1):
            _print_trial(results(), f"Trial {number} of {len(found.trials)}", trial)
        if layers is not None:
            _print_layers(results(), layers)
        if found.referee.why:
            results().print(printable(f"judged by {found.referee}"), soft_wrap=True)
    if layers is not None and options.svg is not None:
        _write_chart(layers, options.svg, f"{first} and {second}")
    if options.html is not None:
        from tiered.extensions.debug.comparison_page import comparison_page

        write_page(options.html, comparison_page(first, second, found, layers))
    with promised.named():
        found.raise_if_different(printable(second))
    left = "; ".join(found.not_comparable)
    if found.is_empty:
        raise TargetError(f"not verified: {left or 'the models have no outputs'}")
    if not as_json:
        said = f"; {left}" if left else ""
        results().print(printable(f"the models agree ({found.numerics}){said}"), soft_wrap=True)
        results().print(printable(promised.text), soft_wrap=True)


class _Promised(NamedTuple):
    """What is allowed, and who says so.

    Attributes:
        by: "options", "marks" or "default".
        settings: of `compare_models`.
        text: the same in words.
    """

    by: Literal["options", "marks", "default"]
    settings: dict[str, Any]
    text: str

    @contextmanager
    def named(self) -> Iterator[None]:
        """Add to an error who says what is allowed."""
        try:
            yield
        except VerificationError as error:
            error.add_note(self.text)
            raise


def _promised(first: str, second: str, options: CompareOptions) -> _Promised:
    """Return what is allowed: what the user says, the marks of the files, or the default."""
    given = (options.numerics, options.rtol, options.atol, options.min_cosine)
    if any(each is not None for each in given):
        return _Promised("options", {}, "allowed by the options")
    from tiered.cli.source_mark import promise_between

    carried = promise_between(first, second)
    if carried is None:
        return _Promised(
            "default",
            {},
            "assumed: neither file carries a promise about the other (results of tiered do, unless "
            "--strip marks removed it); --numerics states what is allowed",
        )
    settings: dict[str, Any] = {"numerics": carried.promise}
    more = ""
    if carried.ranges and not options.inputs:
        if carried.ranges == "generated":
            settings["inputs"] = _like_calibration(second, options.seed)
        else:
            more = "; it holds for inputs like the samples of its ranges: --inputs has them"
    text = f"allowed by the promise in the metadata: {carried}{more}; --numerics states another"
    return _Promised("marks", settings, text)


def _like_calibration(file: str, seed: int) -> list[Mapping[str, Any]]:
    """Return inputs of the kind that ranges were measured on, and none of those."""
    from tiered.cli.files import load_model
    from tiered.extensions.preparation.preparing import inputs_like_calibration

    return inputs_like_calibration(load_model(file), seed)


def _layers(
    first: str, second: str, options: CompareOptions, allowed: Mapping[str, Any]
) -> LayerComparison | None:
    if not (options.layers or options.every_layer or options.svg or options.html):
        return None
    from tiered.extensions.debug import layer_precision_compare

    return layer_precision_compare(first, second, every=options.every_layer, **allowed)


def _allowed(options: CompareOptions) -> dict[str, Any]:
    """Return the inputs and tolerances, as the functions that compare models take them."""
    names = ("inputs", "seed", "numerics", "rtol", "atol", "min_cosine")
    return {name: getattr(options, name) for name in names}


def _print_layers(console: Console, found: LayerComparison) -> None:
    rows = [
        (layer.place, layer.node, layer.op_type, *output_cells(layer.row)) for layer in found.layers
    ]
    title = (
        f"{len(found.layers)} of {counted(found.pairs, 'layer')}, in "
        f"{counted(found.runs, 'run')} of both models"
    )
    print_table(console, title, ("place", "node", "operator", *HEADERS), rows)
    wrong = found.first_wrong
    said = "no layer differs" if wrong is None else f"the first that differs: {wrong.node}"
    console.print(printable(said), soft_wrap=True)


def _write_chart(found: LayerComparison, path: str, title: str) -> None:
    from tiered.extensions.debug import layers_svg

    write_text(path, layers_svg(found, title))


def _layers_record(found: LayerComparison) -> dict[str, Any]:
    return {
        "pairs": found.pairs,
        "runs": found.runs,
        "judged_by": found.referee.runtime,
        "first_wrong": None if found.first_wrong is None else found.first_wrong.place,
        "layers": [
            {
                "place": layer.place,
                "node": layer.node,
                "op": layer.op_type,
                "first": layer.first,
                "second": layer.second,
                **output_record(layer.row),
            }
            for layer in found.layers
        ],
    }


def _record(
    first: str, second: str, found: ModelComparison, layers: LayerComparison | None
) -> dict[str, Any]:
    return {
        "first": first,
        "second": second,
        "numerics": str(found.numerics),
        "ok": found.ok and not found.is_empty,
        "judged_by": found.referee.runtime,
        "judged_why": found.referee.why,
        "layers": None if layers is None else _layers_record(layers),
        "trials": [
            {
                "dims": dict(trial.dims),
                "rules": dict(trial.rules),
                "outputs": [output_record(row) for row in trial.rows],
            }
            for trial in found.trials
        ],
    }


def output_record(row: OutputRow) -> dict[str, Any]:
    """Return how an output compares as plain data."""
    difference = row.difference
    return {
        "name": difference.name,
        "ok": difference.ok,
        "dtype": row.dtype,
        "shape": None if row.shape is None else list(row.shape),
        "max_abs": finite(difference.max_abs),
        "max_rel": finite(difference.max_rel),
        "max_ulp": difference.max_ulp,
        "cosine": difference.cosine,
        "argmax": row.argmax,
        "nans": list(row.nans),
        "nan_mismatch": difference.nan_mismatch,
        "reason": difference.reason or difference.note,
    }


def _print_trial(console: Console, title: str, trial: Trial) -> None:
    sizes = ", ".join(f"{dim}={size}" for dim, size in trial.dims.items())
    print_table(
        console,
        f"{title}{f' ({sizes})' if sizes else ''}",
        HEADERS,
        [output_cells(row) for row in trial.rows],
    )


def output_cells(row: OutputRow) -> tuple[object, ...]:
    """Return how an output compares as the cells of a table."""
    difference = row.difference
    kind = f"{row.dtype}{list(row.shape)}" if row.dtype and row.shape is not None else ""
    ulp = "" if difference.max_ulp is None else f"{difference.max_ulp:,}"
    nans = "" if not any(row.nans) else f"{row.nans[0]:,} and {row.nans[1]:,}"
    if difference.nan_mismatch:
        nans += f", {difference.nan_mismatch:,} differ"
    return (
        difference.name,
        kind,
        Number(f"{difference.max_abs:.1e}"),
        Number(f"{difference.max_rel:.1e}"),
        Number(ulp),
        Number("" if difference.cosine is None else f"{difference.cosine:.6f}"),
        Number("" if row.argmax is None else f"{row.argmax:.1%}"),
        nans,
        difference.note or "ok" if difference.ok else f"DIFFERS: {difference.reason}",
    )
