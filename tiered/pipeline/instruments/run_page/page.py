"""The page of a run: sections and the data of its rewrites, from a trace and its result."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tiered.pipeline.instruments.run_page import pass_sections
from tiered.pipeline.instruments.run_page.rewrites import OF_RUN, rewrites_data
from tiered.pipeline.instruments.tracing.events import Span
from tiered.support.amounts import change, counted
from tiered.support.loading import paused_collector
from tiered.support.pages.render import page, short
from tiered.support.pages.sections import Section, Table, tables

if TYPE_CHECKING:
    from tiered.certify.certify_instrument import Certify
    from tiered.certify.rewrite_records import Findings
    from tiered.graph import Model
    from tiered.pipeline.result import OptimizeResult
    from tiered.verify.methods import VerificationMethod
    from tiered.verify.verify_instrument import Verify


_NO_FACTS: Final[Mapping[str, str]] = {}


def run_page(
    spans: Sequence[Span],
    result: OptimizeResult | None = None,
    *,
    times: bool = True,
    title: str = "",
    error: str = "",
    facts: Mapping[str, str] = _NO_FACTS,
) -> str:
    """Return the page of a run.

    Args:
        spans: what the passes did, as a trace records it.
        result: what came of it, if it is known.
        times: whether times are on the page; without them, the same run makes the same bytes.
        title: the heading; made from the name of the model by default.
        error: the error that ended the run.
        facts: what else the summary says of the run, such as the command line; empty ones are not
            shown.
    """
    with paused_collector():  # It would visit the whole trace, for more time than the page takes.
        return _run_page(spans, result, times=times, title=title, error=error, facts=facts)


def _run_page(
    spans: Sequence[Span],
    result: OptimizeResult | None,
    *,
    times: bool,
    title: str,
    error: str,
    facts: Mapping[str, str],
) -> str:
    runs = list(pass_sections.runs_of(spans))
    hide = _Folders([span.model for span in spans]).hide
    made = (rewrite for span in spans for inner in span.walk() for rewrite in inner.rewrites)
    rewrites = sorted(made, key=lambda rewrite: rewrite.at)
    named = list(dict.fromkeys(os.path.basename(span.model) for span in spans))
    heading = title or f"tiered: {', '.join(map(short, named)) or 'no pass ran'}"
    sections: list[Section | None] = [
        _summary(
            spans,
            result,
            hide(error),
            {name: short(hide(text), 1000) for name, text in facts.items() if text},
            times=times,
        ),
        pass_sections.timeline(runs, times=times),
        pass_sections.passes(runs, hide, times=times),
        OF_RUN.section("Rewrites", len(rewrites)),
        pass_sections.skipped(runs),
        pass_sections.declined(runs),
        None if result is None else _transposes(result.model),
        None if result is None or result.verify is None else _verification(result.verify),
        None if result is None or result.certify is None else _certificate(result.certify.findings),
    ]
    reasons = {span.name: pass_sections.reason_of(span) for span, *_ in runs}
    if result is None:
        payload = rewrites_data(rewrites, reasons)
    else:
        payload = rewrites_data(rewrites, reasons, result.model, _proofs(result.certify))
    payload["words"] = OF_RUN._asdict()
    return page(heading, [section for section in sections if section is not None], payload)


class _Folders:
    """Removes the folders of this machine from messages."""

    def __init__(self, files: Sequence[str]) -> None:
        around = [os.getcwd(), os.path.expanduser("~"), os.path.dirname(__file__)]
        around += [os.path.dirname(os.path.abspath(file)) for file in files if os.sep in file]
        self._folders = sorted({f"{folder}{os.sep}" for folder in around if len(folder) > 1})

    def hide(self, text: str) -> str:
        for folder in reversed(self._folders):
            text = text.replace(folder, "")
        return text


def _summary(
    spans: Sequence[Span],
    result: OptimizeResult | None,
    error: str,
    said: Mapping[str, str],
    *,
    times: bool,
) -> Section:
    notes = [f"The run ended with an error: {error}"] if error else []
    if result is None:
        facts = [*said.items(), *_span_facts(spans, times=times)]
        return tables("Summary", Table("The run", ("", ""), facts), notes=notes)
    was, now = result.before, result.after
    rows = [
        ("nodes", f"{was.nodes:,}", f"{now.nodes:,}", change(was.nodes, now.nodes)),
        ("parameters", f"{was.parameters:,}", f"{now.parameters:,}",
         change(was.parameters, now.parameters)),
        ("bytes", f"{was.nbytes:,}", f"{now.nbytes:,}", change(was.nbytes, now.nbytes)),
    ]  # fmt: skip
    notes += [short(text, 1000) for text in (*_interface(result), *result.model.notes)]
    return tables(
        "Summary",
        Table("The run", ("", ""), [*said.items(), *_result_facts(result, times=times)]),
        Table("The model", ("", "before", "after", "change"), rows),
        pass_sections.operators(was.operators, now.operators),
        notes=notes,
    )


def _interface(result: OptimizeResult) -> Iterator[str]:
    from tiered.pipeline.interface import interface_changes

    for text in interface_changes(result.model):
        yield f"Interface changed: {text}"


def _span_facts(spans: Sequence[Span], *, times: bool) -> Iterator[tuple[str, str]]:
    ran = [run.span for run in pass_sections.runs_of(spans) if run.span.outcome != "skipped"]
    yield "runs of passes", f"{len(ran):,}"
    yield "rewrites", f"{sum(len(span.rewrites) for span in ran):,}"
    if spans:
        yield "nodes before", f"{spans[0].nodes_before:,}"
        yield "nodes after", f"{spans[-1].nodes_after:,}"
    if times:
        yield "time", pass_sections.milliseconds(sum(span.seconds for span in spans))


def _result_facts(result: OptimizeResult, *, times: bool) -> Iterator[tuple[str, str]]:
    summary = result.summary
    yield "level", f"-O{summary.opt_level}"
    yield "target", short(summary.backend)
    yield "rewrites", f"{summary.rewrites:,}"
    yield "verified", _verified(result)
    yield "versions", _versions()
    if times:
        yield "time of all passes", pass_sections.milliseconds(summary.seconds)


def _versions() -> str:
    """Return the versions of what made the page, in words."""
    names = ("tiered", "onnx", "onnxruntime")
    return ", ".join(f"{name} {_version(name)}" for name in names)


def _version(name: str) -> str:
    if name == "tiered":
        from tiered import __version__

        return __version__
    return importlib.metadata.version(name)


def _transposes(model: Model) -> Section | None:
    """Return the Transposes of the result, with what blocks each; None if there are none."""
    if not any(graph.nodes_of("Transpose") for graph in model.graphs()):
        return None
    from tiered.analysis.layout.layout_page import left_section
    from tiered.analysis.layout.transpose_report import left_transposes

    left = left_transposes(model)
    return left_section(left) if left else None


def _verified(result: OptimizeResult) -> str:
    if result.verify is None:
        return "no"
    verdict = result.verify.verdict
    if verdict.word not in ("yes", "in part"):
        return str(verdict)
    return f"{verdict}: largest difference {result.verify.largest:.1e}"


def _ran(way: VerificationMethod) -> str:
    """Return what ran to verify a pass."""
    return {
        "model": "the whole model",
        "region": counted(way.nodes, "changed node"),
        "sameness": "nothing: no computation changed",
        "nothing": f"nothing: {short(way.why)}",
    }[way.by]


def _verification(verify: Verify) -> Section:
    ways = [
        (short(way.pass_name) or "all passes", _ran(way), way.inputs, way.judge)
        for way in verify.ways
    ]
    compared = [
        (number, short(output.name), f"{output.max_abs:.1e}", f"{output.max_rel:.1e}",
         output.note or "ok" if output.ok else output.reason)
        for number, comparison in enumerate(verify.comparisons, 1)
        for output in comparison.outputs
    ]  # fmt: skip
    return tables(
        "Verification",
        Table("Outputs after the last pass", ("inputs", "output", "max abs", "max rel", "verdict"),
              compared),
        Table("How each pass was verified", ("pass", "what ran", "inputs", "compared by"), ways),
    )  # fmt: skip


def _proofs(certify: Certify | None) -> dict[int, str]:
    """Return how each rewrite was proved, by its number."""
    if certify is None:
        return {}
    return {each.number: short(each.how, 1000) for each in certify.findings.rewrites if each.number}


def _certificate(findings: Findings) -> Section:
    from tiered.certify.rewrite_records import SAID

    counts = [(SAID[word], f"{count:,}") for word, count in findings.counts().items()]
    left = [
        (f"#{each.number}" if each.number else "", short(each.pass_name), short(each.how, 1000))
        for each in findings.left()
    ]
    shown = [Table("How rewrites were proved", ("", "rewrites"), counts)]
    if left:
        shown.append(Table("Rewrites without a proof", ("rewrite", "pass", "what is known"), left))
    return tables("Certificate", *shown, notes=[f"certified: {findings}"])
