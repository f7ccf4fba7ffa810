"""Print where the time of a model goes on onnxruntime: by operator, by layer and by node.

Of two models, the nodes that do the same work are set side by side.

Examples:
    tiered profile in.onnx --roofline
    tiered profile before.onnx after.onnx --html profile.html

With `--json`, one object; times are in seconds of one run:
    models: of each model
        model, seconds (of a run while it is profiled), in_nodes (the part of it in nodes), runs,
        provider, threads, runtime_level, inputs: how it ran.
        machine: {multiply_adds_per_second, bytes_per_second} with --roofline, else null.
        operators, layers, inserted: [{name, nodes, seconds, share}]; `inserted` are the nodes that
            onnxruntime inserts for its kernels.
        nodes: in the order of execution, [{name, op_type, provider, layer, seconds, share, calls,
            inputs, outputs, bytes, multiply_adds, least_seconds, inserted, tensors, origins}].
        remarks: what a reader should know.
    pairs: of two models, [{name, layer, first, second, seconds, change}]: names of nodes that do
        the same work, the seconds of both sides, and by how much the second one is slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

from tiered.cli.files import check_input
from tiered.cli.line.declaration import Flags
from tiered.cli.measuring import Runs
from tiered.cli.output.tables import Number, print_table, short_time
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shared_options import Html, Json, Verbose
from tiered.graph.shape_text import parse_dims, parse_shapes
from tiered.support.amounts import counted
from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from tiered.extensions.measurement.profile.model_profile import NodeTime, Profile, ProfilePart
    from tiered.extensions.measurement.profile.pairs import Profiles

FEW: Final = 10
"""Rows of a table without -v."""
_NODES: Final = ("node", "operator", "time", "share", "calls", "tensors")
_ROOF: Final = ("multiply-adds", "bytes", "least time", "of that")


class ProfileOptions(Runs):
    """The options of `tiered profile`."""

    runs: int = 30
    """How many runs are measured of each model."""
    depth: int | None = None
    """Steps of the path of a layer; by default as many as make few layers."""
    roofline: bool = False
    """Measure what the machine does at most, and set each node beside it."""
    html: Html = None
    """Write a page: all tables, a flame chart, and the graph coloured by time."""
    perfetto: str | None = None
    """Save onnxruntime's own trace (.json), for Perfetto and chrome://tracing."""
    verbose: Verbose = False
    """Print all rows."""
    json: Json = False


def profile(
    model: str, other: Annotated[str | None, Flags("B")] = None, /, *, options: ProfileOptions
) -> None:
    """Profile the models of files, and print where their time goes.

    Args:
        model: The ONNX file to profile.
        other: An ONNX file with the same inputs, such as the result of a run.

    Raises:
        UsageError: an option is wrong, or models take different inputs.
        ModelError: a file cannot be read or written.
        RuntimeFailure: onnxruntime does not open or run a model.
    """
    files = [model] if other is None else [model, other]
    shapes, dims = parse_shapes(options.input_shape), parse_dims(options.dim)
    if options.depth is not None and options.depth < 1:
        raise UsageError(f"--depth is 1 or more, not {options.depth}")
    for file in files:
        check_input(file)
    from tiered.extensions.measurement.latency_bench import How
    from tiered.extensions.measurement.profile.profiling import profiled

    how = How(options.provider, options.threads, options.runtime_level)
    with Progress(enabled=not options.json) as progress:
        found = profiled(
            files,
            how,
            options.runs,
            inputs=options.inputs,
            seed=options.seed,
            dims=dims,
            input_shapes=shapes,
            roofline=options.roofline,
            perfetto=options.perfetto,
            say=lambda text: progress.say(f"profiling: {text}"),
        )
    if options.html is not None:
        _write_page(options.html, files, found, options)
    if options.json:
        print_json(found.to_dict())
        return
    _print(results(), found, options, None if options.verbose else FEW)


def _write_page(path: str, files: Sequence[str], found: Profiles, options: ProfileOptions) -> None:
    from tiered.cli.output.report_page import write_report
    from tiered.extensions.measurement.profile.profile_charts import flame_svg, graph_svg

    charts = {}
    for letter, model in zip("AB", found.models, strict=False):
        of = f" of {letter}" if len(found.models) > 1 else ""
        charts[f"Layers{of} by time"] = flame_svg(model)
        charts[f"Graph{of} by time"] = graph_svg(model)
    write_report(
        path, "profile", files, lambda console: _print(console, found, options, None), charts
    )


def _print(console: Console, found: Profiles, options: ProfileOptions, limit: int | None) -> None:
    for letter, model in zip("AB", found.models, strict=False):
        _print_head(console, f"{letter}: " if len(found.models) > 1 else "", model)
        for remark in model.remarks:
            console.print(printable(f"  {remark}"), soft_wrap=True)
    if len(found.models) > 1:
        _print_both(console, found, options, limit)
        return
    (model,) = found.models
    print_table(console, "By operator", ("operator", "nodes", "time", "share"),
                [_part(part) for part in model.operators[:limit]])  # fmt: skip
    layers = model.layers(options.depth)
    if len(layers) > 1:
        print_table(console, "By layer", ("layer", "nodes", "time", "share"),
                    [_part(part) for part in layers[:limit]])  # fmt: skip
    print_table(
        console, "By node", (*_NODES, *(_ROOF if model.machine is not None else ())),
        [_node(model, node) for node in model.slowest], limit=limit,
    )  # fmt: skip


def _print_head(console: Console, letter: str, model: Profile) -> None:
    import onnxruntime

    opening = model.opening
    console.print(
        printable(
            f"{letter}{model.name}: {short_time(model.in_nodes)} in "
            f"{counted(len(model.nodes), 'node')}, the median of {counted(model.runs, 'run')}; "
            f"onnxruntime {onnxruntime.__version__}, {opening.provider}, "
            f"threads {opening.threads}, "
            f"optimisations {opening.level}"
        ),
        soft_wrap=True,
    )
    if model.machine is not None:
        console.print(
            f"  the machine: {model.machine.multiply_adds / 1e9:.3g} billion multiply-adds and "
            f"{model.machine.nbytes / 1e9:.3g} GB a second",
            soft_wrap=True,
        )


def _print_both(
    console: Console, found: Profiles, options: ProfileOptions, limit: int | None
) -> None:
    from tiered.extensions.measurement.profile.layers import text_of
    from tiered.extensions.measurement.profile.pairs import operators_of

    first, second = ({part.name: part for part in model.operators} for model in found.models)
    both: list[tuple[str, float, float]] = []
    for name in dict.fromkeys((*first, *second)):
        a, b = (each[name].seconds if name in each else 0.0 for each in (first, second))
        both.append((name, a, b))
    both.sort(key=lambda row: (-abs(row[2] - row[1]), row[0]))
    print_table(console, "By operator", ("operator", "A", "B", "B - A"), [
        (name, short_time(a), short_time(b), _change(b - a)) for name, a, b in both[:limit]
    ])  # fmt: skip
    layers = found.layers(options.depth)
    if len(layers) > 1:
        print_table(console, "By layer", ("layer", "A", "B", "B - A"), [
            (each.name, *(None if part is None else short_time(part.seconds)
                          for part in (each.first, each.second)), _change(each.change))
            for each in layers[:limit]
        ])  # fmt: skip
    print_table(console, "The same work", ("up to the tensor", "layer", "A", "B", "B - A",
                "operators of A", "operators of B"), [
        (pair.name, text_of(pair.layer), short_time(pair.seconds[0]), short_time(pair.seconds[1]),
         _change(pair.change), operators_of(pair.first), operators_of(pair.second))
        for pair in found.pairs
    ], limit=limit)  # fmt: skip


def _part(part: ProfilePart) -> tuple[object, ...]:
    return part.name, part.count, short_time(part.seconds), Number(f"{part.share:.1%}")


def _node(model: Profile, node: NodeTime) -> tuple[object, ...]:
    share = Number(f"{model.share(node.seconds):.1%}")
    row = (node.name, node.op_type, short_time(node.seconds), share, node.calls, node.shapes)
    if node.least is None:
        return row
    reached = node.least / node.seconds if node.seconds else 0.0
    return (*row, node.multiply_adds, node.nbytes, short_time(node.least), Number(f"{reached:.0%}"))


def _change(amount: float) -> Number:
    return Number(f"{'-' if amount < 0 else '+'}{short_time(abs(amount))}")
