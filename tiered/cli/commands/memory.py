"""Print how many bytes of tensors are alive at the peak, where it is, and what is alive there.

Constants are counted apart. Inputs are alive all the time.

Examples:
    tiered memory in.onnx --dim batch=8
    tiered memory in.onnx --svg memory.svg --json

`--json` prints one object: the fields of `MemoryPlan`, with `peak`, `peak_at` and `formula`, the
bytes at the peak as a polynomial in the dynamic dims, or null.
"""

from __future__ import annotations

import os

from rich.console import Console

from tiered import get_pass
from tiered.cli.bounded import MemoryBound
from tiered.cli.files import check_output
from tiered.cli.output.report_page import write_report
from tiered.cli.output.tables import print_table, size
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shapes import load_shaped
from tiered.cli.shared_options import Html, ModelFile, ReadOptions
from tiered.extensions.memory import MemoryPlan, memory_line, memory_plan, memory_svg, peak_formula
from tiered.support.whole_files import write_text

FEW = 10
"""Rows of the table without -v."""


def memory(
    file: ModelFile,
    /,
    *,
    default_dim: int = 16,
    in_place: bool = True,
    svg: str | None = None,
    html: Html = None,
    options: ReadOptions,
    bound: MemoryBound,
) -> None:
    """Print the memory plan of the model of a file.

    Args:
        default_dim: The size of a dynamic dim without --dim.
        in_place: Elementwise operators write over operands, and reshapes take no memory.
        svg: A file for the curve.
        html: Write a page with the curve and all tensors at the peak.

    Raises:
        UsageError: a wrong option.
        ModelError: the file cannot be read, or does not work with the shapes.
    """
    if svg is not None:
        check_output(file, svg)
    with Progress() as progress:
        model = load_shaped(file, options, progress)
        if model.functions:  # tensors in them have sizes where they are called
            get_pass("inline")(model)
        progress.say("planning")
        plan = memory_plan(model, default_dim=default_dim, in_place=in_place, views=in_place)
        found = peak_formula(model, plan)
        formula = None if found is None else str(found)
    if svg is not None:
        write_text(svg, memory_svg(plan, f"{os.path.basename(file)}: bytes alive at each node"))
    charts = {} if html is None else {"Bytes alive at each node": memory_svg(plan)}
    given = plan, default_dim, formula
    write_report(html, "memory", [file], lambda console: _print(console, *given, None), charts)
    if options.json:
        print_json({**_as_json(plan), "formula": formula})
    else:
        _print(results(), *given, None if options.verbose else FEW)


def _as_json(plan: MemoryPlan) -> dict[str, object]:
    return {
        **plan._asdict(),
        "steps": [step._asdict() for step in plan.steps],
        "lifetimes": [each._asdict() for each in plan.lifetimes],
        "peak": plan.peak,
        "peak_at": plan.peak_at,
    }


def _print(
    console: Console, plan: MemoryPlan, default_dim: int, formula: str | None, limit: int | None
) -> None:
    console.print(f"tensors at the peak: {size(plan.peak)}")
    console.print(f"constants: {size(plan.weights)}")
    if plan.steps:
        step = plan.steps[plan.peak_at]
        where = f"{step.node} ({step.op_type}), {plan.peak_at + 1} of {len(plan.steps)}"
        console.print(printable(f"at the node {where}"), soft_wrap=True)
        if formula is not None and not formula.isdecimal():
            console.print(printable(f"bytes there: {formula}"), soft_wrap=True)
        console.print(memory_line(plan))
    alive = plan.alive_at(plan.peak_at)
    rows = [(each.name, size(each.nbytes), each.last - each.first) for each in alive]
    if rows:
        print_table(
            console, "Alive at the peak", ("tensor", "bytes", "nodes long"), rows, limit=limit
        )
    if plan.assumed:
        named = ", ".join(name or "one without a name" for name in plan.assumed)
        console.print(
            printable(f"dynamic dims counted as {default_dim}: {named}; --dim NAME=SIZE sets one"),
            soft_wrap=True,
        )
    if plan.guessed:
        console.print(
            printable(
                f"values with unknown dims, counted as {default_dim} each: {len(plan.guessed):,}; "
                "-O2 may fold what they depend on"
            ),
            soft_wrap=True,
        )
    if plan.unknown:
        console.print(f"values of unknown rank, which count as nothing: {len(plan.unknown):,}")
