"""Write models as one: outputs of A become inputs of B, outputs of both inputs of a third.

Opsets, functions and names are reconciled; inputs of equal name and type are one input.

Examples:
    tiered merge encoder.onnx decoder.onnx out.onnx
    tiered merge a.onnx b.onnx out.onnx --map features=x --prefix b_ --verify
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from tiered.cli.bounded import MemoryBound
from tiered.cli.files import load_model
from tiered.cli.line.declaration import Flags
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shared_options import WHOLE, Names, ResultOptions, runs_model
from tiered.cli.source_mark import write_mark
from tiered.cli.writing import Goal
from tiered.support.amounts import counted
from tiered.support.errors import UsageError
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.graph import Model
    from tiered.pipeline.compose.connections import Connections


class MergeOptions(Record):
    """The options of `tiered merge`."""

    map: Annotated[Names, Flags("--map", "--io-map", "--connect")] = ()
    """Connect an output of A with an input of B: out=in. Repeatable, also for one output and
    several inputs. By default those of equal name; names is the same, and connects nothing if
    there are none."""
    prefix: str = ""
    """A prefix for the names of B that are not connected."""
    keep: bool = False
    """Connected outputs of A stay outputs."""

    EFFECTS = (WHOLE,)


def merge(
    first: Annotated[str, Flags("A")],
    second: Annotated[str, Flags("B")],
    /,
    *more: Annotated[str, Flags("OUT")],
    options: MergeOptions,
    bound: MemoryBound,
    write: ResultOptions,
) -> None:
    """Merge the models of files.

    Args:
        first: The ONNX file with the first model.
        second: The ONNX file with the model that reads its outputs.
        more: Further models, and last the file to write: A B C OUT; with -o models only. OUT is
            optional with --dry-run and --json.

    Raises:
        UsageError: there is no such output or input, or nothing connects.
        ModelError: the models do not fit together, or a file cannot be read or written.
        VerificationError: the result computes something else; nothing is written.
    """
    if write.result_of is not None:
        raise UsageError("--result-of has no effect: the result is one of several models")
    files = [first, second, *more]
    has_out = write.output is None and len(files) > 2
    sources, out = (files[:-1], files[-1]) if has_out else (files, None)
    goal = Goal.of(sources[0], out, write.for_optimize(), *sources[1:])
    connect = _connections(options.map)
    if len(sources) > 2 and (isinstance(connect, dict) or options.prefix):
        raise UsageError("--map OUT=IN and --prefix are for two models; merge them two by two")
    models = [load_model(file) for file in sources]
    mark = goal.mark(*models)
    from tiered.pipeline.compose.merging import merged_model

    with Progress(enabled=not write.quiet) as progress:
        progress.say(f"merging {' and '.join(map(printable, sources))}")
        before = [model.copy() for model in models] if runs_model(write.verify) else []
        made, names = models[0], list[Mapping[str, str]]()
        for model in models[1:]:
            made, named = merged_model(
                made, model, connect=connect, prefix=options.prefix, keep=options.keep
            )
            names.append(named)
        made.check()
        if before:
            from tiered.verify.merged import check_merged

            progress.say("running the models")
            check_merged(before, made, names, write.inputs)
        if mark is not None and goal.written is not None:
            write_mark(made, mark)
            goal.save(made, mark, ())
    record = _record(sources, goal.written, made)
    record["verified"] = bool(before)
    if write.json:
        print_json(record)
    elif not write.quiet:
        _print(record)


def _connections(entries: tuple[str, ...]) -> Connections | None:
    """Return the inputs by output of --map.

    Raises:
        UsageError: an entry is not OUT=IN, or is given twice.
    """
    if entries == ("names",):
        return "names"
    found: dict[str, list[str]] = {}
    for entry in entries:
        source, _, name = entry.rpartition("=")
        if not source or not name:
            raise UsageError(f"--map takes OUT=IN, or names alone, not {entry!r}")
        if name in found.setdefault(source, []):
            raise UsageError(f"--map: {entry!r} is given twice")
        found[source].append(name)
    return found or None


def _record(sources: Sequence[str], target: str | None, made: Model) -> dict[str, Any]:
    from tiered.cli.facts import declared_types

    return {
        "first": sources[0],
        "second": sources[1],
        "more": [*sources[2:]],
        "output": target,
        "nodes": sum(len(graph.nodes) for graph in made.graphs()),
        "opset": made.opset(),
        "inputs": declared_types(made.main.inputs, made.main.input_infos),
        "outputs": declared_types(made.main.outputs, made.main.output_infos),
    }


def _print(record: dict[str, Any]) -> None:
    console = results()
    goal = record["output"] or "nothing written"
    sources = " + ".join((record["first"], record["second"], *record["more"]))
    console.print(printable(f"{sources} -> {goal}"), soft_wrap=True)
    console.print(f"{counted(record['nodes'], 'node')}, opset {record['opset']}")
    for what in ("inputs", "outputs"):
        named = ", ".join(f"{name}: {kind}" for name, kind in record[what].items())
        console.print(printable(f"{what}: {named}"), soft_wrap=True)
    which = "the" if record["more"] else "both"
    is_verified = f"yes (exact; {which} models ran one after the other)"
    console.print(f"verified: {is_verified if record['verified'] else 'no (--verify)'}")
