"""Quantisation: tiered beside its peers, on models with float inputs and outputs.

    python -m benchmarks.quantize --models examples/models --python other/bin/python

Each tool quantises each model in a process of its own, with eight samples, by the settings of equal
coverage: Conv, ConvTranspose, Gemm and MatMul, data in uint8, weights in int8 with a scale for each
channel. With `--dynamic` the tools quantise data in each run instead. A result is valid if the full
check of onnx takes it, onnxruntime runs it, all its scales are finite and at most 10,000, and no
data is quantised twice in one run. Its signal to noise ratio is that of the worst output on eight
other samples, on onnxruntime without optimisations of its own, and with these (deployed): on a
processor without VNNI sums of 8-bit products saturate then. The tables are printed in Markdown.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.quantizers import DYNAMIC, PRODUCTS, STATIC

TIMEOUT = 300.0
SAMPLES = 8
LARGEST_SCALE = 1e4
INTEGER = ("ConvInteger", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat")


class Result(NamedTuple):
    """What a tool made of a model.

    Attributes:
        failure: why it is not valid; empty if it is.
        quantised, products: how many products read dequantised data or are integer, and how many
            there are.
        decibels: the signal to noise ratio; infinite without an error.
        deployed: the same with onnxruntime's own optimisations.
        seconds: of the whole run of the tool.
        calibration: the processor seconds of the calibration alone; NaN for other tools.
        growth: MiB that the calibration added to the peak of the process and of its worker.
        reasons: why products stay float.
    """

    failure: str
    quantized: int = 0
    products: int = 0
    decibels: float = math.nan
    deployed: float = math.nan
    seconds: float = math.nan
    calibration: float = math.nan
    growth: float = math.nan
    reasons: tuple[str, ...] = ()


# --- the judge -----------------------------------------------------------------------------------


def judged(
    before: Path, after: Path, feeds: Sequence[Mapping[str, Any]], noted: Mapping[str, Any]
) -> Result:
    """Hold a quantised model against the original.

    Args:
        before, after: the two files.
        feeds: samples that the tool has not seen.
        noted: what the process of the tool reports.
    """
    import onnx

    from tiered.numerics.precision.noise import FloatReference
    from tiered.support.errors import TieredError

    original, made = onnx.load(before), onnx.load(after)
    quantized, products = coverage(made.graph)
    result = Result(
        "",
        quantized,
        products,
        seconds=noted["seconds"],
        calibration=noted.get("calibration", math.nan),
        growth=noted.get("growth", math.nan),
        reasons=tuple(noted.get("reasons", ())),
    )
    try:
        onnx.checker.check_model(made, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as failure:
        return result._replace(failure=f"check: {_line(failure)}")
    if wrong := [scale for scale in _scales(made.graph) if not 0 < scale <= LARGEST_SCALE]:
        return result._replace(failure=f"a scale is {wrong[0]:g}")
    if twice := _measured_twice(made.graph):
        return result._replace(failure=f"{twice} is quantised twice in a run")
    if not noted.get("is_fixed", True):
        return result._replace(failure="a second run changes it")
    try:
        ratio = FloatReference(original, "", feeds).decibels(made)
        deployed = _deployed(original, made, feeds)
    except TieredError as failure:
        return result._replace(failure=f"run: {_line(failure)}")
    # Without an output of floats there is no ratio.
    return result._replace(decibels=math.nan if ratio is None else ratio, deployed=deployed)


def coverage(graph: Any, outer: frozenset[str] = frozenset()) -> tuple[int, int]:
    """Return how many products of a graph and its bodies are quantised, of how many.

    A product counts if it reads dequantised data, or is an operator of integers.
    """
    dequantized = outer.union(name for node in graph.node for name in node.output
                              if node.op_type == "DequantizeLinear")  # fmt: skip
    quantized = products = 0
    for node in graph.node:
        if node.op_type in PRODUCTS:
            products += 1
            quantized += dequantized.issuperset(node.input[:2])
        elif node.op_type in INTEGER:
            products, quantized = products + 1, quantized + 1
        for attribute in node.attribute:
            if attribute.HasField("g"):
                inner = coverage(attribute.g, dequantized)
                quantized, products = quantized + inner[0], products + inner[1]
    return quantized, products


def _measured_twice(graph: Any) -> str:
    """Return data that several DynamicQuantizeLinear of a graph read; empty without any."""
    read = [node.input[0] for node in graph.node if node.op_type == "DynamicQuantizeLinear"]
    return next((name for name in read if read.count(name) > 1), "")


def _scales(graph: Any) -> list[float]:
    from onnx import numpy_helper

    names = {node.input[1] for node in graph.node
             if node.op_type in ("QuantizeLinear", "DequantizeLinear")}  # fmt: skip
    tensors = [tensor for tensor in graph.initializer if tensor.name in names]
    return [float(number) for tensor in tensors for number in numpy_helper.to_array(tensor).ravel()]


def _deployed(original: Any, made: Any, feeds: Sequence[Mapping[str, Any]]) -> float:
    """Return the ratio with the optimisations that users get."""
    from collections import defaultdict

    from tiered.numerics.precision.noise import Noise
    from tiered.runtime import Session

    exact, found = Session(original), Session(made, setting="default")
    noise: dict[str, Noise] = defaultdict(Noise)
    for fed in feeds:
        outputs = found.run(fed)
        for name, array in exact.run(fed).items():
            if array.dtype.kind == "f":
                noise[name].add(array, outputs[name])
    return min((each.decibels for each in noise.values()), default=math.inf)


def _line(failure: BaseException) -> str:
    return " ".join(str(failure).split())[:90]


# --- the table -----------------------------------------------------------------------------------


def measured(
    tool: str,
    file: Path,
    python: str,
    folder: Path,
    feeds: Sequence[Mapping[str, Any]],
    *,
    dynamic: bool = False,
) -> Result:
    """Quantise a model with a tool, and judge the result."""
    with tempfile.TemporaryDirectory() as work:
        target, notes = Path(work) / file.name, Path(work) / "notes.json"
        own = python if tool == "onnxsim" else sys.executable
        command = [own, "-m", "benchmarks.quantize", "--dynamically" if dynamic else "--statically"]
        command += map(str, (tool, file, target, folder, notes))
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return Result(f"no result in {TIMEOUT:.0f} s")
        except subprocess.CalledProcessError as failure:
            lines = failure.stderr.decode(errors="replace").strip().splitlines()
            return Result(f"quantise: {lines[-1][:90] if lines else 'it ended'}")
        return judged(file, target, feeds, json.loads(notes.read_text()))


def samples_of(file: Path, first: int) -> list[Mapping[str, Any]]:
    """Return samples for a model, from a seed on."""
    import onnx

    from tests.conformance.inputs import feeds_for
    from tiered.runtime import Session

    model = onnx.load(file)
    session = Session(model)
    seeds = range(first, first + SAMPLES)
    return [feeds_for(file, model, session, binding=0, seed=seed) for seed in seeds]


def main(
    models: Path, tools: Sequence[str], python: str, *, dynamic: bool = False
) -> dict[str, dict[str, Result]]:
    """Print a line for each model and tool, and the tables; return all results by model."""
    import numpy as np

    found: dict[str, dict[str, Result]] = {}
    for file in sorted(models.glob("*.onnx")):
        unseen = samples_of(file, 100)
        with tempfile.TemporaryDirectory() as folder:
            for number, sample in enumerate(samples_of(file, 1)):
                np.savez(Path(folder) / f"{number}.npz", **sample)
            for tool in tools:
                result = measured(tool, file, python, Path(folder), unseen, dynamic=dynamic)
                found.setdefault(file.stem, {})[tool] = result
                ratios = f"{result.decibels:.1f} dB, {result.deployed:.1f} dB deployed"
                said = result.failure or f"{ratios}, {result.seconds:.1f} s"
                of = f"{result.quantized} of {result.products}"
                print(f"{file.stem:24} {tool:12} {of:12} {said}", flush=True)
    print("\n" + by_model(found, tools) + "\n\n" + by_tool(found, tools))
    return found


def by_model(found: Mapping[str, Mapping[str, Result]], tools: Sequence[str]) -> str:
    """Return a row for each model: products quantised and both ratios of each tool."""
    lines = [f"| model | {' | '.join(f'{tool}: products | dB | deployed' for tool in tools)} |"]
    lines.append("|---|" + "---:|---:|---:|" * len(tools))
    for model, results in found.items():
        cells = []
        for tool in tools:
            result = results[tool]
            ratios = f"{result.decibels:.1f} | {result.deployed:.1f}"
            ratios = "fails | " if result.failure else ratios
            cells += [f"{result.quantized} of {result.products}", ratios]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines)


def by_tool(found: Mapping[str, Mapping[str, Result]], tools: Sequence[str]) -> str:
    """Return a row for each tool; gains are those over it at equal coverage, of tiered."""
    lines = [
        "| tool | valid | products | median dB | least dB | least dB, deployed "
        "| gain of tiered, dB | gain, deployed | seconds |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for tool in tools:
        results = [each[tool] for each in found.values()]
        valid = [each for each in results if not each.failure]
        ratios = [each.decibels for each in valid if math.isfinite(each.decibels)] or [math.nan]
        deployed = [each.deployed for each in valid if math.isfinite(each.deployed)] or [math.nan]
        quantized, products = (sum(getattr(each, name) for each in valid)
                               for name in ("quantized", "products"))  # fmt: skip
        row = [
            tool,
            f"{len(valid)} of {len(results)}",
            f"{quantized} of {products}",
            f"{statistics.median(ratios):.1f}",
            f"{min(ratios):.1f}",
            f"{min(deployed):.1f}",
            *_gains(found, [tool]),
            f"{statistics.median([each.seconds for each in valid] or [math.nan]):.1f}",
        ]
        lines.append(f"| {' | '.join(row)} |")
    peers = [tool for tool in tools if tool.startswith("onnxruntime")]
    if len(peers) > 1:
        over, deployed_over = _gains(found, peers)
        lines.append(f"| the best of onnxruntime's | | | | | | {over} | {deployed_over} | |")
    own = [each["tiered"] for each in found.values() if "tiered" in each]
    own = [each for each in own if not math.isnan(each.calibration)]
    if own:
        slowest = max(each.calibration for each in own)
        lines += ["", f"Calibration of tiered: at most {slowest:.1f} s of processor time, "
                      f"{max(each.growth for each in own):.0f} MiB more."]  # fmt: skip
    return "\n".join(lines)


def _gains(found: Mapping[str, Mapping[str, Result]], peers: Sequence[str]) -> tuple[str, str]:
    """Return how much less noise tiered has than the best of some peers, off and deployed."""
    pairs = list[tuple[Result, list[Result]]]()
    for results in found.values():
        own = results.get("tiered")
        others = [] if own is None else [results[peer] for peer in peers]
        others = [] if own is None else [each for each in others if _comparable(own, each)]
        if own is not None and others and peers != ["tiered"]:
            pairs.append((own, others))
    if not pairs:
        return "", ""
    off = [own.decibels - max(each.decibels for each in others) for own, others in pairs]
    deployed = [own.deployed - max(each.deployed for each in others) for own, others in pairs]
    return f"{statistics.fmean(off):+.1f} ({len(off)} models)", f"{statistics.fmean(deployed):+.1f}"


def _comparable(one: Result, other: Result) -> bool:
    """Return whether two results are valid, of equal coverage, and have an error."""
    has_equal_coverage = one.quantized == other.quantized > 0
    is_valid = not one.failure and not other.failure and has_equal_coverage
    return is_valid and math.isfinite(one.decibels) and math.isfinite(other.decibels)


if __name__ == "__main__":
    if sys.argv[1:2] in (["--dynamically"], ["--statically"]):
        tools = DYNAMIC if sys.argv[1] == "--dynamically" else STATIC
        tool, source, target, folder, notes = sys.argv[2:]
        started = time.perf_counter()
        noted = tools[tool](source, target, folder)
        noted["seconds"] = time.perf_counter() - started - noted.get("elapsed", 0.0)
        Path(notes).write_text(json.dumps(noted), encoding="utf-8")
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=Path("examples/models"))
    parser.add_argument("--tools", default="tiered,onnxruntime", help="by comma")
    parser.add_argument("--python", default=sys.executable, help="that has onnxsim")
    parser.add_argument("--dynamic", action="store_true", help="data is quantised in each run")
    given = parser.parse_args()
    known = DYNAMIC if given.dynamic else STATIC
    chosen = given.tools.split(",")
    if unknown := [name for name in chosen if name not in known]:
        sys.exit(f"no tool named {unknown[0]}; known: {', '.join(known)}")
    main(given.models, chosen, given.python, dynamic=given.dynamic)
