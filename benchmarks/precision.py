"""Half precision: tiered beside its peers, on models with float inputs and outputs.

    python -m benchmarks.precision --models examples/models --python other/bin/python

Each tool converts each model in a process of its own. A result is valid if the full check of onnx
takes it, onnxruntime runs it on both bindings of the dynamic dims, its inputs and outputs have the
types that they had, no output has a new NaN or Inf, and the relative error is below 1 %. The error
is the geometric mean of 32 samples, as that of a single one moves with the luck of rounding; of
each, that of the worst output. Two tables are printed in Markdown: of the tools, and of the models.
With --mixed the tools are tiered's mixed precision and lists of operators.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.half_tools import MIXED, TOOLS

TIMEOUT = 300.0
LARGEST_ERROR = 1e-2
SAMPLES = 32


class Result(NamedTuple):
    """What a tool made of a model.

    Attributes:
        failure: why it is not valid; empty if it is.
        error: the relative error of the worst output on onnxruntime, the mean of the samples.
        casts: Casts that were added.
        size: bytes, in parts of those of the model.
    """

    failure: str
    error: float = math.nan
    casts: int = 0
    size: float = math.nan


# --- the judge -----------------------------------------------------------------------------------


def judged(before: Path, after: Path, feeds: Sequence[Mapping[str, Any]]) -> Result:
    """Hold a converted model against the original.

    Args:
        before, after: the two files.
        feeds: the samples, for each binding of the dynamic dims.
    """
    import onnx

    from tiered.runtime import Session
    from tiered.support.errors import TieredError

    original, converted = onnx.load(before), onnx.load(after)
    casts = _casts(converted.graph) - _casts(original.graph)
    size = after.stat().st_size / before.stat().st_size
    try:
        onnx.checker.check_model(converted, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as failure:
        return Result(f"check: {_line(failure)}", casts=casts, size=size)
    if _interface(original) != _interface(converted):
        return Result("other inputs or outputs", casts=casts, size=size)
    try:
        old, new = Session(original), Session(converted)
        errors = [error_of(old.run(fed), new.run(fed)) for fed in feeds]
    except TieredError as failure:
        return Result(f"run: {_line(failure)}", casts=casts, size=size)
    worst = max(errors)
    wrong = "" if worst < LARGEST_ERROR else f"error {worst:.1e}"
    return Result(wrong, geometric_mean(errors), casts, size)


def geometric_mean(errors: Sequence[float]) -> float:
    """Return the geometric mean; 0 if an error is 0."""
    return math.exp(statistics.fmean(map(math.log, errors))) if all(errors) else 0.0


def _casts(graph: Any) -> int:
    count = 0
    for node in graph.node:
        count += node.op_type == "Cast"
        count += sum(_casts(each.g) for each in node.attribute if each.HasField("g"))
    return count


def _interface(model: Any) -> list[tuple[str, int]]:
    values = (*model.graph.input, *model.graph.output)
    return [(value.name, value.type.tensor_type.elem_type) for value in values]


def error_of(expected: Mapping[str, Any], found: Mapping[str, Any]) -> float:
    """Return the largest relative error of an output; Inf for a new NaN or Inf."""
    import numpy as np

    errors = [0.0]
    for name, array in expected.items():
        if array.dtype.kind != "f":
            continue
        finite = np.isfinite(array)
        if not np.isfinite(found[name][finite]).all():
            return math.inf
        exact = array[finite].astype(np.float64)
        norm = float(np.linalg.norm(exact)) or 1.0
        errors.append(float(np.linalg.norm(found[name][finite] - exact)) / norm)
    return max(errors)


def _line(failure: BaseException) -> str:
    return " ".join(str(failure).split())[:90]


# --- the table -----------------------------------------------------------------------------------


def measured(tool: str, file: Path, python: str, feeds: Sequence[Mapping[str, Any]]) -> Result:
    """Convert a model with a tool, and judge the result."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / file.name
        own = sys.executable if tool.startswith("tiered") else python
        command = [own, "-m", "benchmarks.half_tools", tool, str(file), str(target)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return Result(f"no result in {TIMEOUT:.0f} s")
        except subprocess.CalledProcessError as failure:
            lines = failure.stderr.decode(errors="replace").strip().splitlines()
            return Result(f"convert: {lines[-1][:90] if lines else 'it ended'}")
        return judged(file, target, feeds)


def feeds_of(file: Path, samples: int = SAMPLES) -> list[Mapping[str, Any]]:
    """Return samples, by turns for both bindings of the dynamic dims."""
    import onnx

    from tests.conformance.inputs import feeds_for
    from tiered.runtime import Session

    model = onnx.load(file)
    session = Session(model)
    return [
        feeds_for(file, model, session, binding=number % 2, seed=100 * number)
        for number in range(samples)
    ]


def main(models: Path, tools: Sequence[str], python: str) -> dict[str, dict[str, Result]]:
    """Print a line for each model and tool, and the tables; return all results by model."""
    found: dict[str, dict[str, Result]] = {}
    for file in sorted(models.glob("*.onnx")):
        feeds = feeds_of(file)
        found[file.stem] = {}
        for tool in tools:
            result = measured(tool, file, python, feeds)
            found[file.stem][tool] = result
            said = result.failure or f"valid, error {result.error:.1e}"
            print(f"{file.stem:24} {tool:26} {result.casts:+5d} Casts  {said}", flush=True)
    print(f"\n{table(found)}\n\n{table_of_models(found)}")
    return found


def table(found: Mapping[str, Mapping[str, Result]]) -> str:
    """Return a row for each tool; errors, Casts and sizes are those of valid results."""
    lines = [
        "| tool | valid | median error | largest error | Casts added | size |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for tool in dict.fromkeys(tool for results in found.values() for tool in results):
        valid = [results[tool] for results in found.values() if not results[tool].failure]
        row = [tool, f"{len(valid)} of {len(found)}", "", "", "", ""]
        if valid:
            errors = [result.error for result in valid]
            row[2:] = [
                f"{statistics.median(errors):.1e}",
                f"{max(errors):.1e}",
                f"{sum(result.casts for result in valid):+d}",
                f"{statistics.median(result.size for result in valid):.2f}",
            ]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def table_of_models(found: Mapping[str, Mapping[str, Result]]) -> str:
    """Return a row for each model: error and Casts of each tool; what is not valid in brackets.

    The last column has the error of the first tool as a multiple of the least of the valid ones.
    """
    tools = list(dict.fromkeys(tool for results in found.values() for tool in results))
    lines = [
        f"| model | {' | '.join(tools)} | ratio |",
        f"|---|{'---:|' * (len(tools) + 1)}",
    ]
    for model, results in found.items():
        valid = [result.error for result in results.values() if not result.failure]
        row = [_cell(results[tool]) for tool in tools]
        own, least = results[tools[0]].error, min(valid, default=math.nan)
        ratio = own / least if least else math.nan
        row.append("" if math.isnan(ratio) else f"{ratio:.2f}")
        lines.append(f"| {model} | {' | '.join(row)} |")
    return "\n".join(lines)


def _cell(result: Result) -> str:
    kind = result.failure.partition(":")[0]
    if kind in ("convert", "check", "run"):
        return f"({kind})" if kind == "convert" else f"({kind}, {result.casts:+d})"
    if result.failure:
        return f"({result.failure.replace('other inputs or outputs', 'interface')})"
    return f"{result.error:.2e}, {result.casts:+d}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=Path("examples/models"))
    parser.add_argument("--tools", default="", help="by semicolon")
    parser.add_argument("--mixed", action="store_true", help="mixed precision")
    parser.add_argument("--python", default=sys.executable, help="that has the peers")
    given = parser.parse_args()
    known = MIXED if given.mixed else TOOLS
    chosen = given.tools.split(";") if given.tools else list(known)
    if unknown := [name for name in chosen if name not in known]:
        sys.exit(f"no tool named {unknown[0]}; known: {'; '.join(known)}")
    main(given.models, chosen, given.python)
