"""What the precision passes owe to a model: float16, bfloat16, mixed, int32 and float8.

    python -m tests.conformance.precision --models examples/models

A line for each model, as Markdown, and what failed; the exit code is 1 if anything did. Inputs are
described in the JSON beside a model, or made.

- float16: valid as `benchmarks.precision` says, with at most a Cast for each float input and
  output and for the sines and cosines of positions, no new NaN or Inf on onnx.reference either,
  with a row that is masked as a whole too.
- bfloat16: valid for the full check of onnx; onnxruntime does not run it.
- mixed: the budget holds on onnx.reference, for inputs that the pass has not seen.
- int32: equal bits on onnxruntime, for both bindings of the dynamic dims.
- float8: at least 30 dB for each weight, after a conversion to opset 21.

A second run of each pass changes nothing.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import cyclopts
import numpy as np
import onnx

from benchmarks.precision import error_of, feeds_of, judged
from tests.conformance.inputs import with_masked_row
from tiered import Model, PassContext, get_pass
from tiered.numerics.precision.budget import budget_of
from tiered.runtime import Reference, Session
from tiered.support.errors import TieredError

Feeds = Mapping[str, Any]

BUDGET = "cosine>=0.999"
LEAST_DECIBELS = 30.0
SEEN = 8
"""The seeds of inputs that the passes make themselves."""


class Row(NamedTuple):
    """What was measured of a model.

    Attributes:
        cells: by the head of the column.
        failures: what a pass owes and has not done.
    """

    cells: dict[str, str]
    failures: list[str]


class Converted(NamedTuple):
    """A model after a pass.

    Attributes:
        model: the result.
        proto: the same, as it is saved.
        remarks: what the pass has reported.
    """

    model: Model
    proto: onnx.ModelProto
    remarks: list[str]


def judge(file: Path) -> Row:
    """Run all passes on the model of a file."""
    row = Row({}, [])
    original = onnx.load(file)
    feeds = feeds_of(file, SEEN)
    for check in (_half, _bfloat16, _mixed, _int32, _float8):
        try:
            row.failures.extend(check(file, original, feeds, row.cells))
        except TieredError as error:
            row.failures.append(f"{check.__name__.strip('_')}: {str(error).splitlines()[0]}")
    return row


def _converted(original: onnx.ModelProto, name: str, **options: object) -> Converted:
    model, ctx = Model.from_proto(original), PassContext.isolated()
    get_pass(name).with_options(**options).apply(model, ctx)
    return Converted(model, model.to_proto(), [str(remark) for remark in ctx.remarks])


def _unrest(made: Converted, name: str, **options: object) -> Iterator[str]:
    if _converted(made.proto, name, **options).proto != made.proto:
        yield f"{name}: a second run changes the model"


def _half(
    file: Path, original: onnx.ModelProto, feeds: Sequence[Feeds], cells: dict[str, str]
) -> Iterator[str]:
    made = _converted(original, "float_to_half")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / file.name
        onnx.save(made.proto, target)
        found = judged(file, target, feeds)
    values = (*original.graph.input, *original.graph.output)
    most = sum(value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT for value in values)
    cells["Casts"] = f"{found.casts:+d} of {most}"
    cells["float16"] = found.failure or f"{found.error:.1e}"
    if found.failure:
        yield f"float_to_half: {found.failure}"
    most += 2 * any("unchanged: position" in remark for remark in made.remarks)
    if found.casts > most:
        yield f"float_to_half: {found.casts} Casts, more than {most} float inputs and outputs"
    before, by_reference = Session(original), Reference(made.proto)
    error = error_of(before.run(feeds[0]), by_reference.run(feeds[0]))
    cells["onnx.reference"] = f"{error:.1e}"
    masked = with_masked_row(file, feeds[0])
    if masked is not None:
        error = max(error, error_of(before.run(masked), by_reference.run(masked)))
        cells["a row masked"] = f"{error:.1e}"
        if math.isinf(error_of(before.run(masked), Session(made.proto).run(masked))):
            yield "float_to_half: NaN or Inf with a row that is masked as a whole"
    if error > 1e-2:
        yield f"float_to_half: error {error:.1e} on onnx.reference"
    yield from _unrest(made, "float_to_half")


def _bfloat16(
    file: Path, original: onnx.ModelProto, feeds: Sequence[Feeds], cells: dict[str, str]
) -> Iterator[str]:
    made = _converted(original, "float_to_bfloat16")
    kept = sum(_count(text) for text in made.remarks if " unchanged: " in text)
    cells["bfloat16 keeps"] = f"{kept} nodes"
    try:
        onnx.checker.check_model(made.proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as failure:
        yield f"float_to_bfloat16: {' '.join(str(failure).split())[:90]}"
    yield from _unrest(made, "float_to_bfloat16")


def _count(remark: str) -> int:
    """Return of how many nodes a remark is: `float_to_half: 3 Celu unchanged: reason`."""
    number = remark.partition(": ")[2].partition(" ")[0]
    return int(number) if number.isdigit() else 1


def _mixed(
    file: Path, original: onnx.ModelProto, feeds: Sequence[Feeds], cells: dict[str, str]
) -> Iterator[str]:
    made = _converted(original, "float_to_mixed", budget=BUDGET)
    budget = budget_of(BUDGET)
    found = Reference(made.proto).run(feeds[-1])
    measured = budget.measure(Session(original).run(feeds[-1]), found)
    assert measured is not None, "an output of floats"
    cells["mixed"] = f"{measured:.6f}"
    if not budget.holds(measured):
        yield f"float_to_mixed: {budget.metric} is {measured:.6g}, not {BUDGET}"


def _int32(
    file: Path, original: onnx.ModelProto, feeds: Sequence[Feeds], cells: dict[str, str]
) -> Iterator[str]:
    made = _converted(original, "int64_to_int32")
    cells["int32"] = next(
        (text.partition(": ")[2] for text in made.remarks if "compute in int32" in text), "nothing"
    ).replace(" compute in int32; Casts added:", ", Casts")
    before, after = Session(original), Session(made.proto)
    for number, fed in enumerate(feeds):
        found = after.run(fed)
        for name, array in before.run(fed).items():
            if not _is_equal(array, found[name]):
                yield f"int64_to_int32: {name} differs for sample {number}"
    yield from _unrest(made, "int64_to_int32")


def _is_equal(a: Any, b: Any) -> bool:
    if not isinstance(a, np.ndarray):
        return bool(a == b)
    same = a.dtype == b.dtype and a.shape == b.shape
    return same and (a.tobytes() == b.tobytes() if a.dtype.kind != "O" else bool((a == b).all()))


def _float8(
    file: Path, original: onnx.ModelProto, feeds: Sequence[Feeds], cells: dict[str, str]
) -> Iterator[str]:
    raised = original
    if max(each.version for each in original.opset_import if not each.domain) < 21:
        raised = _converted(original, "convert_opset", to=21).proto
    made = _converted(raised, "fp8_weight")
    least = math.inf
    weights = Model.from_proto(raised)
    for node in made.model.main.nodes_of("DequantizeLinear"):
        codes, scales = node.input(0), node.input(1)
        name, _, kind = codes.name.rpartition("_") if codes is not None else ("", "", "")
        if kind != "float8e4m3fn":  # the model's own
            continue
        values = (weights.main.value(name), codes, scales)
        arrays = [each.tensor.numpy() for each in values if each is not None and each.tensor]
        ratio = _decibels(*arrays, axis=node.attr("axis"))
        least = min(least, ratio)
        if ratio < LEAST_DECIBELS:
            yield f"fp8_weight: {name} has {ratio:.1f} dB"
    cells["float8"] = "no weights" if math.isinf(least) else f"{least:.1f} dB"
    yield from _unrest(made, "fp8_weight")


def _decibels(
    exact: np.ndarray[Any, Any],
    codes: np.ndarray[Any, Any],
    scales: np.ndarray[Any, Any],
    *,
    axis: int,
) -> float:
    """Return the signal to noise ratio of codes with a scale for each place of an axis."""
    shape = [-1 if at == axis else 1 for at in range(exact.ndim)]
    wide = exact.astype(np.float64)
    found = codes.astype(np.float64) * scales.astype(np.float64).reshape(shape)
    error = float(np.linalg.norm(found - wide))
    return 20 * math.log10(float(np.linalg.norm(wide)) / error) if error else math.inf


COLUMNS = (
    "float16", "onnx.reference", "a row masked", "Casts", "bfloat16 keeps", "mixed", "int32",
    "float8",
)  # fmt: skip


def main(*, models: Path = Path("examples/models"), only: str = "*") -> None:
    """Judge all models of a folder.

    Args:
        models: the folder of *.onnx files.
        only: a glob of their names.
    """
    print(f"| model | {' | '.join(COLUMNS)} |\n|---|{'---:|' * len(COLUMNS)}")
    failures = list[str]()
    for file in sorted(models.glob("*.onnx")):
        if fnmatch(file.stem, only):
            row = judge(file)
            cells = [row.cells.get(column, "") for column in COLUMNS]
            print(f"| {file.stem} | {' | '.join(cells)} |", flush=True)
            failures += [f"{file.stem}: {failure}" for failure in row.failures]
    print("\n".join(["", *failures, f"{len(failures)} failures"]))
    sys.exit(bool(failures))


if __name__ == "__main__":
    cyclopts.run(main)
