"""Print the regions of a model that a target takes, and write them.

Without --backend, the regions are those of devices and pipeline stages: by --sharding and
--pipelining, and by the marks in the file.

Examples:
    tiered partition in.onnx --backend npu.toml --as-models parts
    tiered partition in.onnx out.onnx --backend onnxruntime_cpu --deny Softmax,Erf

With `--json` one object:
    model, backend, denied; backend is null for devices and stages
    regions: [{name, target, nodes, operators, bytes_in, bytes_out, multiply_adds, share}]; the last
        one, "host", has the nodes that the target does not take.
    plan: the content of plan.json, with --as-models.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tiered.cli.bounded import MemoryBound
from tiered.cli.effects import Effect
from tiered.cli.files import check_data_files, check_output
from tiered.cli.output.report_page import write_report
from tiered.cli.output.tables import Number, print_table, size
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shapes import load_shaped
from tiered.cli.shared_options import BackendName, Html, ModelFile, Names, OutFile, ReadOptions
from tiered.cli.source_mark import check_replaced, source_mark, write_mark
from tiered.support.amounts import counted
from tiered.support.errors import UsageError
from tiered.support.records import Record
from tiered.support.whole_files import write_text

if TYPE_CHECKING:
    from rich.console import Console

    from tiered.extensions.partition import Partition, Plan, Region
    from tiered.graph import Model
    from tiered.targets import Backend

FEW = 20
"""Rows of the table without -v."""


class PartitionOptions(Record):
    """The options of `tiered partition`."""

    deny: Names = ()
    """Operators that the target must not get: Softmax,com.microsoft::Gelu. Repeatable."""
    sharding: Names = ()
    """NODE=DEVICE: the device of a node and of all that it needs. Repeatable, without --backend."""
    pipelining: Names = ()
    """NODE=STAGE: the pipeline stage of a node and of all that it needs. Repeatable."""
    as_models: str | None = None
    """The folder for a model of each region and of the nodes between them, and plan.json."""
    dot: str | None = None
    """The file for the graph of the regions, for Graphviz."""
    svg: str | None = None
    """The file for a chart of the same graph, as SVG."""
    html: Html = None
    """Write the report as a page, with the diagram of the regions."""
    horizontal: bool = False
    """Independent nodes may share a region, so that there are as few as possible."""
    single: bool = False
    """Keep regions of a single compute node."""
    force: bool = False
    """Replace ONNX models that are not earlier results of MODEL."""

    EFFECTS = (
        Effect(("deny", "horizontal", "single"), "--backend", lambda of: of("backend") is not None),
        Effect(
            ("sharding", "pipelining"),
            "cuts by hand alone; leave --backend out",
            lambda of: of("backend") is None,
        ),
        Effect(
            ("force",), "OUT or --as-models", lambda of: of("out") is not None or of("as_models")
        ),
    )


def partition(
    file: ModelFile,
    out: OutFile = None,
    /,
    *,
    backend: BackendName = None,
    chosen: PartitionOptions,
    options: ReadOptions,
    bound: MemoryBound,
) -> None:
    """Print the regions of a model that a target takes, and write what is asked for.

    Args:
        out: The file to write: the model with a local function for each region.

    Raises:
        UsageError: a wrong name or option.
        ModelError: a file cannot be read or written.
    """
    from tiered.extensions.partition import fuse_partitions, report_of, to_dot, to_svg
    from tiered.targets import get_backend

    # Report a wrong name before a large model is read.
    target = None if backend is None else get_backend(backend)
    folder = chosen.as_models
    pictures = {chosen.dot: to_dot, chosen.svg: to_svg}
    for written in (out, *pictures):
        if written is not None:
            check_output(file, written)
    if out is not None and not chosen.force:
        check_replaced(file, target=out)
    with Progress() as progress:
        model = load_shaped(file, options, progress)
        progress.say("looking for partitions")
        partitions = _partitions(model, target, chosen, is_written=out is not None)
        rows = report_of(model, partitions)
        for path, draw in pictures.items():
            if path is not None:
                write_text(path, draw(model, partitions))
        takes = "devices and stages have" if target is None else f"{target.name} takes"
        given = os.path.basename(file), takes, rows, None
        charts = (
            {} if chosen.html is None else {"Picture of the regions": to_svg(model, partitions)}
        )
        write_report(
            chosen.html, "partition", [file], lambda console: _print(console, *given), charts
        )
        plan = None if folder is None else _save_plan(model, partitions, file, chosen)
        if out is not None:
            check_data_files(model, out)
            domain = "partition" if target is None else target.name
            fuse_partitions(partitions, prefix="region_", domain=f"tiered.{domain}")
            write_mark(model, source_mark(model, file))
            model.save(out)
    if options.json:
        described = _described(file, None if target is None else target.name, chosen.deny, rows)
        print_json(described if plan is None else {**described, "plan": plan.described()})
    else:
        _print(results(), file, takes, rows, None if options.verbose else FEW)
        for written in (out, *pictures, chosen.html, folder):
            if written is not None:
                results().print(printable(f"wrote {written}"))


def _partitions(
    model: Model, target: Backend | None, chosen: PartitionOptions, *, is_written: bool
) -> list[Partition]:
    from tiered.extensions.partition import BackendSupport, CapabilityBasedPartitioner

    if target is None:
        return _marked(model, chosen, is_written=is_written)
    return CapabilityBasedPartitioner(
        model,
        {target.name: BackendSupport(target, _operators(chosen.deny))},
        allows_single_node_partition=chosen.single,
        skip_horizontal_fusion=not chosen.horizontal,
    ).propose_partitions()


def _marked(model: Model, chosen: PartitionOptions, *, is_written: bool) -> list[Partition]:
    """Return the partitions by device and stage, after the cuts of the command line.

    Args:
        model: the model.
        chosen: the options.
        is_written: the model is written, with marks as metadata of its nodes.

    Raises:
        UsageError: no node has a device or stage.
    """
    from tiered.extensions.partition import device_partitions
    from tiered.graph.core.marks import METADATA_SINCE
    from tiered.pipeline import get_pass

    cuts = {"sharding": chosen.sharding, "pipelining": chosen.pipelining}
    mark, version = model.mark(), model.ir_version
    if not is_written:
        model.set_ir_version(max(version, METADATA_SINCE))
    get_pass("rewrite_annotated_ops", **cuts)(model)
    partitions = device_partitions(model)
    if not is_written and version < METADATA_SINCE:
        model.undo_to(mark)  # the parts have no marks, which their IR version lacks
    if not partitions:
        raise UsageError(
            "no node has a device or stage: give --sharding or --pipelining, or a --backend"
        )
    return partitions


def _operators(deny: tuple[str, ...]) -> list[str]:
    return [name for entry in deny for name in entry.split(",") if name]


def _save_plan(
    model: Model, partitions: list[Partition], file: str, chosen: PartitionOptions
) -> Plan:
    """Write the models of the plan, and the partitions as DOT.

    Raises:
        UsageError: a file would overwrite the model, its weights, or a model that is not an earlier
            result.
    """
    from tiered.extensions.partition import as_models, to_dot

    folder, plan = chosen.as_models or ".", as_models(model, partitions)
    for name in (*(part.file for part in plan.parts), "host.onnx"):
        path = os.path.join(folder, name)
        if os.path.isdir(folder):
            check_output(file, path)
        check_data_files(model, path)
        if not chosen.force:
            check_replaced(file, target=path)
    for name in plan.stale_files(folder):
        path = os.path.join(folder, name)
        if os.path.exists(path) and not chosen.force:
            check_replaced(file, target=path)
    mark = source_mark(model, file)
    for written in (plan.host, *(part.model for part in plan.parts)):
        write_mark(written, mark)
    plan = plan.save(folder)
    write_text(os.path.join(folder, "partitions.dot"), to_dot(model, partitions))
    return plan


def _print(console: Console, file: str, takes: str, rows: list[Region], limit: int | None) -> None:
    taken = [row for row in rows if row.name != "host"]
    nodes, whole = sum(row.nodes for row in taken), sum(row.nodes for row in rows)
    console.print(
        printable(
            f"{file}: {takes} {nodes:,} of {counted(whole, 'node')} in "
            f"{counted(len(taken), 'region')}"
        )
    )
    table = [
        (
            row.name,
            row.nodes,
            size(row.bytes_in),
            size(row.bytes_out),
            Number(f"{_share(row, rows):.1%}"),
            ", ".join(f"{count} {name}" for name, count in row.operators.most_common(3)),
        )
        for row in rows
    ]
    headers = ("region", "nodes", "bytes in", "bytes out", "multiply-adds", "operators")
    # The last row is that of the other nodes.
    shown = table if limit is None or len(table) <= limit else [*table[: limit - 1], table[-1]]
    print_table(console, "Regions", headers, shown)
    if len(shown) < len(table):
        hidden = counted(len(table) - len(shown), "more row")
        console.print(f"  and {hidden} (-v lists them)")


def _share(row: Region, rows: list[Region]) -> float:
    return row.multiply_adds / (sum(each.multiply_adds for each in rows) or 1)


def _described(
    file: str, target: str | None, deny: tuple[str, ...], rows: list[Region]
) -> dict[str, Any]:
    return {
        "model": file,
        "backend": target,
        "denied": _operators(deny),
        "regions": [
            {
                "name": row.name,
                "target": row.target,
                "nodes": row.nodes,
                "operators": dict(sorted(row.operators.items())),
                "bytes_in": row.bytes_in,
                "bytes_out": row.bytes_out,
                "multiply_adds": row.multiply_adds,
                "share": _share(row, rows),
            }
            for row in rows
        ],
    }
