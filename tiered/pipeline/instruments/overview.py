"""The contents of a model in a few lines: interface, operators, weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiered.pipeline.result import ModelStatistics
from tiered.support.amounts import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tiered.graph import Model, Value


def overview_text(model: Model) -> str:
    """Return the interface, the operators and the size of a model as text."""
    opsets = ", ".join(f"{name or 'ai.onnx'} {v}" for name, v in model.opset_imports.items())
    counts = ModelStatistics.of(model)
    operators = ", ".join(f"{count} {name}" for name, count in counts.operators.items())
    lines = [
        f"IR {model.ir_version}, opsets {opsets}",
        *_ports("input", model.main.inputs),
        *_ports("output", model.main.outputs),
        f"{counted(counts.nodes, 'node')}{': ' if operators else ''}{operators}",
        f"{counted(counts.parameters, 'parameter')}, {counted(counts.nbytes, 'byte')}",
    ]
    if model.functions:
        lines.append(f"functions {', '.join(function.name for function in model.functions)}")
    return "\n".join(lines)


def _ports(kind: str, values: Iterable[Value]) -> list[str]:
    return [
        f"{kind} {value.name}: {value.type or 'unknown type'}"
        f"{' with a default' if value.is_overridable else ''}"
        for value in values
    ]
