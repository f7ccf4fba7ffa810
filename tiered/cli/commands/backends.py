"""List the targets of --backend, or describe one.

Examples:
    tiered backends
    tiered backends onnxruntime_cpu -v

`--json` prints an array of {name, doc, api_version, digest, operators, shapes, layout}, or {name,
error} for a plug-in that cannot be loaded; for NAME one object with its sources, limits, opset,
ir_version, edits and the rules of operators as well, and byte_products (exact, saturate or unknown)
if it reduces the range of weights: how the installed onnxruntime adds 8-bit products here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.text import Text

from tiered.cli.line.candidates import complete_backend
from tiered.cli.line.declaration import Flags
from tiered.cli.output.printed_pipeline import described_edit, print_edits
from tiered.cli.output.tables import Cell, print_table
from tiered.cli.output.terminal import print_json, printable, results
from tiered.cli.shared_options import AsJson, Verbose
from tiered.support.amounts import counted
from tiered.support.errors import BackendError
from tiered.support.operator_name import operator_name

if TYPE_CHECKING:
    from tiered.runtime.byte_products import ByteProducts
    from tiered.targets import Backend


def backends(
    name: Annotated[str | None, Flags(completes=complete_backend)] = None,
    /,
    *,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Print a table of all backends, or describe one.

    Args:
        name: A target, or its TOML file.
        verbose: List the rules of each operator.
    """
    from tiered.targets import backend_names, get_backend

    if name is not None:
        backend = get_backend(name)
        if as_json:
            print_json(_described(backend))
        else:
            _print_one(results(), backend, verbose=verbose)
        return
    summaries: list[dict[str, Any]] = []
    rows: list[tuple[Cell, ...]] = []
    for known in backend_names():
        try:
            backend = get_backend(known)
        except BackendError as error:
            # A broken plug-in must not hide the others.
            summaries.append({"name": known, "error": str(error)})
            rows.append((known, "", "", f"broken: {error}"))
        else:
            summaries.append(_summary(backend))
            rows.append((backend.name, _operators(backend), backend.shapes, backend.doc))
    if as_json:
        print_json(summaries)
    else:
        head = ("backend", "operators", "shapes", "")
        print_table(results(), counted(len(rows), "backend"), head, rows)


def _operators(backend: Backend) -> str:
    listed = sum(bool(rules) for rules in backend.operators.values())
    return "ONNX's own" if backend.unlisted == "standard" and not listed else f"{listed:,}"


def _summary(backend: Backend) -> dict[str, Any]:
    return {
        "name": backend.name,
        "doc": backend.doc,
        "api_version": backend.api_version,
        "digest": backend.digest,
        "operators": len(backend.operators),
        "shapes": backend.shapes,
        "layout": backend.layout,
    }


def _described(backend: Backend) -> dict[str, Any]:
    return {
        **_summary(backend),
        **_byte_products(backend),
        "sources": list(backend.sources),
        "limits": list(backend.limits),
        "opset": list(backend.opset),
        "ir_version": list(backend.ir_version),
        "edits": [described_edit(edit) for edit in backend.edits],
        "operators": {
            operator_name(domain, op_type): [str(rule) for rule in rules]
            for (domain, op_type), rules in backend.operators.items()
        },
    }


def _byte_products(backend: Backend) -> dict[str, ByteProducts]:
    """Return how this processor adds 8-bit products, for a target where that differs."""
    from tiered.runtime.byte_products import byte_products

    return {"byte_products": byte_products()} if backend.quantization.reduce_range else {}


def _print_one(console: Console, backend: Backend, *, verbose: bool) -> None:
    from tiered.runtime.byte_products import WORDS
    from tiered.targets.operator_rule import dtype_names

    console.print(Text(backend.name, style="bold"))
    console.print(f"  {printable(backend.doc)}")
    facts = {
        "shapes": backend.shapes,
        "opset": str(backend.opset),
        "IR version": str(backend.ir_version),
        "layout": backend.layout,
        "rank": "" if backend.max_rank is None else f"at most {backend.max_rank}",
        "activations": ", ".join(dtype_names(backend.activations)),
        "weights": ", ".join(dtype_names(backend.weights)),
        "quantised": backend.quantization.form,
        "operators": _operators(backend),
        "others": "refused" if backend.unlisted == "refused" else "those of ONNX are taken",
        "digest": backend.digest[:16],
    }
    for label, fact in facts.items():
        if fact:
            console.print(f"  {label + ':':<12} {printable(fact)}")
    for found in _byte_products(backend).values():
        console.print(f"  8-bit products on this processor: {WORDS[found]}")
    for label, texts in (("sources", backend.sources), ("limits", backend.limits)):
        for at, text in enumerate(texts):
            console.print(printable(f"  {label + ':' if at == 0 else '':<12} {text}"))
    print_edits(backend.edits)
    rows = [
        (operator_name(domain, op_type), str(rule))
        for (domain, op_type), rules in backend.operators.items()
        for rule in rules
    ]
    if verbose and rows:
        print_table(console, "Operators", ("operator", "conditions"), rows)
    elif rows:
        console.print(f"\n{counted(len(rows), 'rule')} of operators (-v lists them)")
