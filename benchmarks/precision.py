"""Half precision: tiered beside its peers, on models with float inputs and outputs.

    python -m benchmarks.precision --models examples/models --python other/bin/python

Each tool converts each model in a process of its own. A result is valid if the full check of onnx
takes it, onnxruntime runs it on both bindings of the dynamic dims, its inputs and outputs have the
types that they had, no output has a new NaN or Inf, and the relative error is below 1 %. The table
is printed in Markdown.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

TIMEOUT = 300.0
LARGEST_ERROR = 1e-2


class Result(NamedTuple):
    """What a tool made of a model.

    Attributes:
        failure: why it is not valid; empty if it is.
        error: the largest relative error of an output, on onnxruntime.
        casts: Casts that were added.
        size: bytes, in parts of those of the model.
    """

    failure: str
    error: float = math.nan
    casts: int = 0
    size: float = math.nan


# --- in the process of a tool --------------------------------------------------------------------


def _tiered(source: str, target: str) -> None:
    from tiered import Model, get_pass

    model = Model.load(source)
    get_pass("float_to_half").apply(model)
    model.save(target)


def _converter_common(source: str, target: str) -> None:
    import importlib

    import onnx

    float16 = importlib.import_module("onnxconverter_common.float16")
    made = float16.convert_float_to_float16(onnx.load(source), keep_io_types=True)
    onnx.save(made, target)


def _onnxruntime(source: str, target: str) -> None:
    import onnx
    from onnxruntime.transformers import float16

    made = float16.convert_float_to_float16(onnx.load(source), keep_io_types=True)
    onnx.save(made, target)


def _onnxslim(source: str, target: str) -> None:
    import onnxslim

    onnxslim.slim(source, target, dtype="fp16")


def _onnxsim(source: str, target: str) -> None:
    import onnx
    import onnxsim

    onnx.save(onnxsim.quantize_fp16(onnx.load(source), keep_io_types=True), target)


def _modelopt(source: str, target: str) -> None:
    import importlib

    import onnx

    autocast = importlib.import_module("modelopt.onnx.autocast")
    made = autocast.convert_to_mixed_precision(
        onnx_path=source, low_precision_type="fp16", keep_io_types=True
    )
    onnx.save(made, target)


TOOLS: dict[str, Callable[[str, str], None]] = {
    "tiered": _tiered,
    "onnxconverter-common": _converter_common,
    "onnxruntime.transformers": _onnxruntime,
    "onnxslim": _onnxslim,
    "onnxsim": _onnxsim,
    "modelopt autocast": _modelopt,
}


# --- the judge -----------------------------------------------------------------------------------


def judged(before: Path, after: Path, feeds: Sequence[Mapping[str, Any]]) -> Result:
    """Hold a converted model against the original.

    Args:
        before, after: the two files.
        feeds: inputs, for each binding of the dynamic dims.
    """
    import onnx

    from tiered.errors import TieredError
    from tiered.runtime import Session

    original, converted = onnx.load(before), onnx.load(after)
    casts = _casts(converted.graph) - _casts(original.graph)
    size = after.stat().st_size / before.stat().st_size
    try:
        onnx.checker.check_model(converted, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as failure:
        return Result(f"check: {_line(failure)}", casts=casts, size=size)
    if _interface(original) != _interface(converted):
        return Result("other inputs or outputs", casts=casts, size=size)
    worst = 0.0
    try:
        old, new = Session(original), Session(converted)
        for fed in feeds:
            worst = max(worst, _error(old.run(fed), new.run(fed)))
    except TieredError as failure:
        return Result(f"run: {_line(failure)}", casts=casts, size=size)
    wrong = "" if worst < LARGEST_ERROR else f"error {worst:.1e}"
    return Result(wrong, worst, casts, size)


def _casts(graph: Any) -> int:
    count = 0
    for node in graph.node:
        count += node.op_type == "Cast"
        count += sum(_casts(each.g) for each in node.attribute if each.HasField("g"))
    return count


def _interface(model: Any) -> list[tuple[str, int]]:
    values = (*model.graph.input, *model.graph.output)
    return [(value.name, value.type.tensor_type.elem_type) for value in values]


def _error(expected: Mapping[str, Any], found: Mapping[str, Any]) -> float:
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
        own = sys.executable if tool == "tiered" else python
        command = [own, "-m", "benchmarks.precision", "--convert", tool, str(file), str(target)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return Result(f"no result in {TIMEOUT:.0f} s")
        except subprocess.CalledProcessError as failure:
            lines = failure.stderr.decode(errors="replace").strip().splitlines()
            return Result(f"convert: {lines[-1][:90] if lines else 'it ended'}")
        return judged(file, target, feeds)


def feeds_of(file: Path) -> list[Mapping[str, Any]]:
    """Return inputs for both bindings of the dynamic dims."""
    import onnx

    from tests.conformance.inputs import feeds_for
    from tiered.runtime import Session

    model = onnx.load(file)
    session = Session(model)
    return [feeds_for(file, model, session, binding=binding) for binding in (0, 1)]


def main(models: Path, tools: Sequence[str], python: str) -> dict[str, list[Result]]:
    """Print a line for each model and tool, and the table; return all results."""
    found: dict[str, list[Result]] = {tool: [] for tool in tools}
    for file in sorted(models.glob("*.onnx")):
        feeds = feeds_of(file)
        for tool in tools:
            result = measured(tool, file, python, feeds)
            found[tool].append(result)
            said = result.failure or f"valid, error {result.error:.1e}"
            print(f"{file.stem:24} {tool:26} {result.casts:+5d} Casts  {said}", flush=True)
    print("\n" + table(found))
    return found


def table(found: Mapping[str, Sequence[Result]]) -> str:
    """Return a row for each tool; errors, Casts and sizes are those of valid results."""
    lines = [
        "| tool | valid | median error | largest error | Casts added | size |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for tool, results in found.items():
        valid = [result for result in results if not result.failure]
        row = [tool, f"{len(valid)} of {len(results)}", "", "", "", ""]
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


if __name__ == "__main__":
    if sys.argv[1:2] == ["--convert"]:
        TOOLS[sys.argv[2]](sys.argv[3], sys.argv[4])
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=Path("examples/models"))
    parser.add_argument("--tools", default=",".join(TOOLS), help="by comma")
    parser.add_argument("--python", default=sys.executable, help="that has the peers")
    given = parser.parse_args()
    chosen = given.tools.split(",")
    if unknown := [name for name in chosen if name not in TOOLS]:
        sys.exit(f"no tool named {unknown[0]}; known: {', '.join(TOOLS)}")
    main(given.models, chosen, given.python)
