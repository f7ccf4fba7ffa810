"""The options of `tiered optimize` that watch the passes, and their printed results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, get_args

from tiered.cli.effects import Effect
from tiered.cli.line.declaration import Flags
from tiered.cli.output.terminal import printable
from tiered.cli.pass_names import split_names
from tiered.cli.shared_options import Html, Names
from tiered.passes.interface.report import Remark, RemarkKind
from tiered.support.errors import ModelError, UsageError, did_you_mean
from tiered.support.records import Record

if TYPE_CHECKING:
    from rich.console import Console

    from tiered.pipeline.instruments import Dump, Statistics, Timing, Trace

KINDS: tuple[str, ...] = get_args(RemarkKind)
ALL = "all"


def _are_kinds(word: str) -> bool:
    """Return whether a word lists kinds of remarks."""
    return all(entry in (*KINDS, ALL) for entry in word.split(","))


def _are_passes(word: str) -> bool:
    """Return whether a word lists passes."""
    from tiered.passes.interface.registry import registry

    entries = word.split(",")
    return all(entry == ALL or "*" in entry or registry.knows(entry) for entry in entries)


WhichPasses = Annotated[str | None, Flags(alone=ALL, accepts=_are_passes, expected="a pass")]


class WatchOptions(Record):
    """How `tiered optimize` watches its passes."""

    TITLE = "Watching passes"

    remarks: Annotated[
        str | None, Flags(alone=ALL, accepts=_are_kinds, expected="a kind of remark")
    ] = None
    """Print the remarks of passes: all, or some of =applied,missed,failed,
    analysis,skipped,deprecated,unmet,hook,check,verify."""
    print_pipeline: bool = False
    """Only print which passes would run, and why the others would not."""
    time: bool = False
    """Print how long each pass took, as a tree."""
    statistics: bool = False
    """Print how many nodes each pass tried, rewrote and declined."""
    trace: str | None = None
    """Save a trace of the run: .jsonl (JSON lines) or .json (Perfetto, chrome://tracing)."""
    html: Html = None
    """Write a page of the run: its passes, each rewrite with a diagram, and what was declined."""
    html_without_times: bool = False
    """Leave times out of the page, so that the same run writes the same bytes."""
    dump: str | None = None
    """A folder for the model after each pass that changed it, without its large weights."""
    dump_weights: bool = False
    """Let --dump write the weights too, each time."""
    print_before: WhichPasses = None
    """Print the model before each pass, or before =a,b."""
    print_after: WhichPasses = None
    """Print the model after each pass that changed it, or after =a,b."""
    diff: WhichPasses = None
    """Print the changes of each pass as a diff of nodes, or only those of =a,b."""
    limit: int | None = None
    """Stop after this many rewrites; the same number makes the same model every time."""
    config: str | None = None
    """A TOML file with any of these options; typed options take precedence."""
    set: Names = ()
    """Config options: NAME=VALUE (`tiered options` lists them). Repeatable."""

    EFFECTS = (
        Effect(("dump_weights",), "--dump DIR", lambda of: of("dump") is not None),
        Effect(("html_without_times",), "--html FILE", lambda of: of("html") is not None),
        Effect(
            (
                "remarks",
                "time",
                "statistics",
                "trace",
                "html",
                "dump",
                "print_before",
                "print_after",
                "diff",
                "limit",
                "verify",
                "certify",
                "reproducer",
            ),
            "a run of the passes, without --print-pipeline",
            lambda of: not of("print_pipeline"),
            typed=True,
        ),
        Effect(
            ("remarks", "time", "statistics"),
            "output, without --quiet",
            lambda of: not of("quiet"),
        ),
    )


class Watchers:
    """The instruments of the options."""

    def __init__(self, options: WatchOptions) -> None:
        self.options = options
        self.timing: Timing | None = None
        self.statistics: Statistics | None = None
        self.trace: Trace | None = None
        self.dump: Dump | None = None
        self.instruments: list[object] = []


def check_watch(options: WatchOptions) -> None:
    """Check the options before any file is read.

    Raises:
        UsageError: an unknown kind of remark, or a trace or page of an unknown form.
        ModelError: the trace or the page cannot be written.
    """
    remark_kinds(options)
    if options.limit is not None and options.limit < 0:
        raise UsageError(f"--limit takes a number from 0, not {options.limit}")
    if options.trace is not None:
        if not options.trace.endswith((".json", ".jsonl")):
            raise UsageError(
                f"--trace {options.trace!r}: the suffix says the form: .jsonl (JSON lines) or "
                ".json (Perfetto, chrome://tracing)"
            )
        folder = os.path.dirname(options.trace) or "."
        if not os.path.isdir(folder):
            raise ModelError(f"cannot write {options.trace!r}: no directory {folder!r}")


def config_of(entries: Sequence[str]) -> dict[str, Any]:
    """Return the checked config options of --set.

    Raises:
        UsageError: an entry is not NAME=VALUE.
        ConfigError: an unknown name, or a value of the wrong type.
    """
    from tiered.support.config_options import checked_config
    from tiered.support.option_text import parse_value

    values = {}
    for entry in entries:
        name, equals, text = entry.partition("=")
        if not equals:
            raise UsageError(f"--set takes NAME=VALUE, not {entry!r}")
        values[name.strip()] = parse_value(text.strip())
    return checked_config(values)


@contextmanager
def watching(options: WatchOptions) -> Iterator[Watchers]:
    """Create the instruments of the options; the trace is saved even if a pass fails."""
    watchers = Watchers(options)
    if options.time:
        from tiered.pipeline.instruments import Timing

        watchers.timing = Timing()
    if options.statistics:
        from tiered.pipeline.instruments import Statistics

        watchers.statistics = Statistics()
    if options.trace is not None or options.html is not None:
        from tiered.pipeline.instruments import Trace

        watchers.trace = Trace()
    if options.dump is not None:
        from tiered.pipeline.instruments import Dump

        watchers.dump = Dump(options.dump, weights=options.dump_weights)
    found = (watchers.timing, watchers.statistics, watchers.trace, watchers.dump)
    watchers.instruments += [instrument for instrument in found if instrument is not None]
    watchers.instruments += _printers(options)
    try:
        yield watchers
    except BaseException as error:
        try:
            _save(watchers)
        except ModelError as late:
            error.add_note(str(late))
        raise
    _save(watchers)


def _printers(options: WatchOptions) -> Iterator[object]:
    if options.print_before is not None or options.print_after is not None:
        from tiered.pipeline.instruments import PrintIR

        before = _which(options.print_before, "--print-before")
        yield PrintIR(before, _which(options.print_after, "--print-after"))
    if options.diff is not None:
        from tiered.pipeline.instruments import Diff

        yield Diff(_which(options.diff, "--diff"))


def _which(given: str | None, option: str) -> bool | tuple[str, ...]:
    if given is None or given == ALL:
        return given is not None
    return split_names([given], option)


def _save(watchers: Watchers) -> None:
    if watchers.trace is not None and watchers.options.trace is not None:
        watchers.trace.save(watchers.options.trace)


def remark_kinds(options: WatchOptions) -> tuple[str, ...]:
    """Return the kinds of remarks that --remarks selects.

    Raises:
        UsageError: an unknown kind.
    """
    if options.remarks is None:
        return ()
    if options.remarks == ALL:
        return KINDS
    kinds = split_names([options.remarks], "--remarks")
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(
                f"--remarks={kind}: expected {', '.join(KINDS)}{did_you_mean(kind, KINDS)}"
            )
    return kinds


def print_watched(console: Console, watchers: Watchers, remarks: Sequence[Remark]) -> None:
    """Print the results of the instruments and the remarks, at the end of a run."""
    if watchers.timing is not None:
        _print(console, "Time", watchers.timing.render())
    if watchers.statistics is not None:
        _print(console, "Statistics", watchers.statistics.render())
    if watchers.dump is not None:
        console.print(printable(watchers.dump), soft_wrap=True)
    kinds = remark_kinds(watchers.options)
    for kind in kinds:
        said = [str(remark) for remark in remarks if remark.kind == kind]
        if said:
            _print(console, f"Remarks: {kind}", "\n".join(said))


def _print(console: Console, title: str, text: str) -> None:
    console.print()
    console.print(title, style="bold")
    for line in text.splitlines():
        console.print(f"  {printable(line)}", soft_wrap=True)
