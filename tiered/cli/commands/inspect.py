"""Print the contents of a model, without changing it.

Examples:
    tiered inspect in.onnx -v
    tiered inspect in.onnx --backend npu.toml

`--json` prints one object: the fields of `tiered.cli.facts.ModelFacts`.
"""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

from rich.console import Console

from tiered.cli.bounded import MemoryBound
from tiered.cli.facts import ModelFacts, gather_facts
from tiered.cli.line.declaration import Flags
from tiered.cli.output.report_page import write_report
from tiered.cli.output.summary import complaint_note, overridable_note
from tiered.cli.output.tables import print_table, size
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shapes import load_shaped
from tiered.cli.shared_options import BackendName, Html, ModelFile, ReadOptions
from tiered.pipeline.leftovers import fixing_hint
from tiered.support.amounts import counted
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.targets import Backend

FEW = 10
"""Rows of a table without -v."""


class InspectOptions(Record):
    """The target of `tiered inspect`, and what else it shows."""

    backend: BackendName = None
    """Count the unsupported nodes of each operator on this target."""

    integers: Annotated[bool, Flags(off="--no-integers")] = False
    """List the tensors that hold integers of few bits only: int3, uint5, bipolar."""

    html: Html = None
    """Write the report as a page, with all rows."""


def inspect(
    file: ModelFile, /, *, target: InspectOptions, options: ReadOptions, bound: MemoryBound
) -> None:
    """Print the contents of the model of a file.

    Raises:
        UsageError: a wrong name or option.
        ModelError: the file cannot be read.
    """
    backend = _backend(target.backend)
    with Progress() as progress:
        model = load_shaped(file, options, progress)
        facts = gather_facts(model, file, backend, integers=target.integers)
    limit = None if options.verbose else FEW
    given = replace(facts, file=os.path.basename(file)), target, None
    write_report(target.html, "inspect", [file], lambda console: _print(console, *given))
    if options.json:
        print_json(asdict(replace(facts, tensors=facts.tensors[:limit])))
        return
    _print(results(), facts, target, limit)


def _print(console: Console, facts: ModelFacts, target: InspectOptions, limit: int | None) -> None:
    _print_head(console, facts)
    _print_interface(console, facts, limit)
    _print_operators(console, facts, limit)
    _print_weights(console, facts, limit)
    if target.integers:
        _print_integers(console, facts, limit)


def _backend(name: str | None) -> Backend | None:
    if name is None:
        return None
    from tiered.targets import get_backend

    return get_backend(name)


def _print_head(console: Console, facts: ModelFacts) -> None:
    opsets = ", ".join(f"{domain} {version}" for domain, version in facts.opsets.items())
    made_by = f", made by {facts.producer}" if facts.producer else ""
    console.print(printable(f"{facts.file}: IR {facts.ir_version}, opsets {opsets}{made_by}"))
    for key, text in facts.metadata.items():
        console.print(printable(f"  {key}: {text}"))
    if facts.complaint:
        console.print(complaint_note(facts.complaint))


def _print_interface(console: Console, facts: ModelFacts, limit: int | None) -> None:
    ports = [("input", port) for port in facts.inputs if not port.overridable]
    ports += [("output", port) for port in facts.outputs]
    if any(port.inferred for _, port in ports):
        headers: tuple[str, ...] = ("", "name", "declared", "inferred")
        rows: list[tuple[str, ...]] = [
            (kind, port.name, port.type or "no type", port.inferred) for kind, port in ports
        ]
    else:
        headers, rows = ("", "name", "type"), [(kind, p.name, p.type) for kind, p in ports]
    print_table(console, "Interface", headers, rows)
    for symbol, places in facts.dynamic_dims.items():
        console.print(printable(f"dynamic dim {symbol}: {', '.join(places)}"))
    if facts.fixing:
        hint = fixing_hint(facts.fixing, whole=limit is None)
        console.print(printable(hint), soft_wrap=True)
    if facts.overridable:
        console.print(overridable_note(len(facts.overridable)))


def _print_operators(console: Console, facts: ModelFacts, limit: int | None) -> None:
    kinds = [kind for kind, counts in facts.operators.items() if counts or kind == "main"]
    names = sorted(
        {name for counts in facts.operators.values() for name in counts},
        key=lambda name: (-sum(facts.operators[kind].get(name, 0) for kind in kinds), name),
    )
    target = facts.backend
    rows = [
        (name, *counts, *([] if target is None else [target.refused.get(name, 0)]))
        for name in names
        for counts in [[facts.operators[kind].get(name, 0) for kind in kinds]]
    ]
    title = f"{counted(facts.nodes, 'node')}, {counted(len(names), 'operator')}"
    headers = ["operator", *kinds, *([] if target is None else [f"not taken by {target.name}"])]
    print_table(console, title, headers, rows, limit=limit)
    if target is not None:
        said = f"{target.name} takes {target.taken:,} of {counted(target.nodes, 'node')}"
        console.print(printable(f"{said}; `tiered check` says why not the others"))


def _print_weights(console: Console, facts: ModelFacts, limit: int | None) -> None:
    weights = facts.weights
    rows = [
        (dtype, row["tensors"], row["elements"], size(row["bytes"]))
        for dtype, row in weights.by_dtype.items()
    ]
    title = f"{counted(weights.elements, 'parameter')}, {size(weights.bytes)}"
    print_table(console, title, ("dtype", "tensors", "elements", "size"), rows)
    largest = [(tensor.name, tensor.type, size(tensor.bytes)) for tensor in facts.tensors]
    if largest:
        print_table(console, "Largest tensors", ("tensor", "type", "size"), largest, limit=limit)
    values = counted(facts.values, "value")
    console.print(f"types known after inference: {facts.typed:,} of {values}")


def _print_integers(console: Console, facts: ModelFacts, limit: int | None) -> None:
    rows = [(row.name, row.type, row.integers, f"{row.low}..{row.high}") for row in facts.integers]
    title = f"{counted(len(rows), 'tensor')} of integers of few bits"
    print_table(console, title, ("tensor", "type", "integers", "range"), rows, limit=limit)
