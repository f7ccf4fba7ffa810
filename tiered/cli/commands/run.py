"""Run a model on onnxruntime, and print statistics of its outputs or of all its values.

Examples:
    tiered run in.onnx --inputs feeds.npz
    tiered run in.onnx --all-values --out values

With `--json`, one object: model; values: [{name, node, op, dtype, shape, min, max, nans, infs,
zeros, file}]. file is null without --out, and for what is no tensor; numbers that are not finite
are null.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from tiered.cli.files import load_model
from tiered.cli.line.declaration import Flags
from tiered.cli.output.record import finite
from tiered.cli.output.tables import Number, print_table
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shared_options import Json, ModelFile, Sampled
from tiered.support.amounts import counted
from tiered.support.errors import ModelError, UsageError, words_of
from tiered.support.whole_files import whole_file, write_json

if TYPE_CHECKING:
    from tiered.extensions.debug.all_values import AllValues, ValueStatistics
    from tiered.graph import Model

HEADERS = ("value", "operator", "type", "min", "max", "NaN", "Inf", "zeros")


class RunOptions(Sampled):
    """The options of `tiered run`."""

    all_values: Annotated[bool, Flags("--all-values", "--all")] = False
    """Every tensor that a node of the main graph computes, not only the outputs."""
    out: Annotated[str | None, Flags("--out", "-o")] = None
    """A folder for the values, each as a .npy file, and values.json."""
    json: Json = False


def run(file: ModelFile, /, *, options: RunOptions) -> None:
    """Run the model of a file.

    Raises:
        ModelError: a file cannot be read or written.
        UsageError: an input belongs to no input of the model, or there are several sets of inputs.
        RuntimeFailure: onnxruntime does not run the model.
    """
    model = load_model(file)
    from tiered.extensions.debug.all_values import run
    from tiered.runtime.inputs.samples import read_samples

    given = read_samples(options.inputs)
    if len(given) > 1:
        raise UsageError(f"tiered run takes one set of inputs; --inputs has {len(given)}")
    wanted = None if options.all_values else {value.name for value in model.main.outputs}
    with Progress(enabled=not options.json) as progress:
        progress.say(f"running {printable(file)}")
        values = run(model, given[0] if given else None, all_values=True, seed=options.seed)
        rows = list(_rows(values, model, wanted, options.out))
    record = {"model": file, "values": rows}
    if options.out is not None:
        write_json(os.path.join(options.out, "values.json"), record)
    if options.json:
        print_json(record)
        return
    title = counted(len(rows), "value") if options.all_values else "Outputs"
    print_table(results(), title, HEADERS, [_cells(row) for row in rows])


def _rows(
    values: AllValues, model: Model, wanted: set[str] | None, folder: str | None
) -> Iterator[dict[str, Any]]:
    """Yield the record of each value; its array is written at once, and not kept."""
    if folder is not None:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise ModelError(f"cannot write into {folder}: {words_of(error)}") from error
    uncomputed = _uncomputed(values, model)
    for number, (name, array) in enumerate(itertools.chain(values, uncomputed)):
        if wanted is None or name in wanted:
            written = None if folder is None else _saved(folder, number, name, array)
            yield _record(values.describe(name, array), written)


def _uncomputed(values: AllValues, model: Model) -> Iterator[tuple[str, Any]]:
    """Yield the outputs that no node computes: inputs and constants."""
    for value in dict.fromkeys(model.main.outputs):
        if value.name in values.feeds:
            yield value.name, values.feeds[value.name]
        elif value.default is not None:
            yield value.name, value.default.dense()


def _saved(folder: str, number: int, name: str, array: Any) -> str | None:
    """Write an array, and return the name of its file; None for what is no tensor."""
    import numpy as np

    if not isinstance(array, np.ndarray):
        return None
    # numpy cannot read dtypes of other packages: their bits are written.
    known = array if array.dtype.kind in "biufcOSU" else array.view(f"u{array.dtype.itemsize}")
    if known.dtype.kind == "O":
        known = known.astype(str)
    file = f"{number:05}_{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)[:80]}.npy"
    with whole_file(os.path.join(folder, file)) as written:
        np.save(written, known, allow_pickle=False)
    return file


def _record(found: ValueStatistics, file: str | None) -> dict[str, Any]:
    low, high = found.minimum, found.maximum
    return {
        "name": found.name,
        "node": found.node,
        "op": found.op_type,
        "dtype": found.dtype,
        "shape": None if found.shape is None else list(found.shape),
        "min": None if low is None else finite(low),
        "max": None if high is None else finite(high),
        "nans": found.nans,
        "infs": found.infs,
        "zeros": found.zeros,
        "file": file,
    }


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    kind = row["dtype"] if row["shape"] is None else f"{row['dtype']}{row['shape']}"
    ends = ["" if row[end] is None else f"{row[end]:.4g}" for end in ("min", "max")]
    counts = [row[name] for name in ("nans", "infs", "zeros")]
    return row["name"], row["op"], kind, *map(Number, ends), *counts
