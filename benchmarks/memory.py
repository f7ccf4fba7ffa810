"""`memory_plan` beside what onnxruntime allocates: `python -m benchmarks.memory --models DIR`.

Each model gets fixed shapes with a large batch. A child process loads it, without the arena and the
memory pattern, runs it once to be warm, and measures how far a second run raises the resident set
above that of the idle session. Large blocks are mapped by themselves and returned when they are
freed, so the peak is that of the tensors and of what kernels allocate besides. Linux only.

"apart" is onnxruntime with a buffer for each tensor (`enable_mem_reuse = False`), to compare with a
plan without views and without writing over operands; "reuse" is its default, which keeps a buffer
for a later tensor of the same shape.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiered import Model, get_pass
from tiered.extensions.memory import memory_plan
from tiered.runtime import make_inputs

LARGE_BLOCKS = {"MALLOC_MMAP_THRESHOLD_": "16384", "MALLOC_MMAP_MAX_": "1000000"}
"""glibc maps blocks from this size on by themselves."""

CHILD = """
import sys
import numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.enable_cpu_mem_arena = options.enable_mem_pattern = False
options.enable_mem_reuse = sys.argv[3] == "reuse"
options.intra_op_num_threads, options.log_severity_level = 1, 4
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feeds = dict(np.load(sys.argv[2]))
def kilobytes(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key))
session.run(None, feeds)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak of the resident set starts again
idle = kilobytes("VmRSS")
session.run(None, feeds)
print((kilobytes("VmHWM") - idle) * 1024)
"""


class Row(NamedTuple):
    """One model: the planned peaks without the inputs, and the measured ones, in bytes."""

    name: str
    plan: int
    plain: int
    apart: int
    reuse: int


def feeds_of(path: Path, batch: int) -> dict[str, Any]:
    """Return inputs with a batch, which is the first dim of the first input."""
    first = next(value for value in Model.load(path).main.inputs if not value.is_overridable)
    dim = first.dim(0)
    sizes = {"batch": batch, **({dim: batch} if isinstance(dim, str) else {})}
    return make_inputs(path, defaults=sizes).feeds


def static(path: Path, feeds: dict[str, Any]) -> Model:
    """Return the model with the shapes of its inputs fixed, and what follows from them folded."""
    model = Model.load(path)
    model.set_input_shapes({name: list(array.shape) for name, array in feeds.items()})
    get_pass("fold_constant")(model)
    return model


def peak(model: Model, feeds: dict[str, Any], *, reuses: bool) -> int:
    """Return the planned peak without the inputs, which the caller holds."""
    held: int = sum(array.nbytes for array in feeds.values())
    return memory_plan(model, views=reuses, in_place=reuses).peak - held


def measure(path: Path, batch: int, folder: str) -> Row:
    feeds = feeds_of(path, batch)
    model = static(path, feeds)
    planned, plain = (peak(model, feeds, reuses=reuses) for reuses in (True, False))
    files = [os.path.join(folder, name) for name in ("model.onnx", "feeds.npz")]
    model.save(files[0])
    np.savez(files[1], **feeds)
    apart, reuse = (allocated(path.name, [*files, setting]) for setting in ("apart", "reuse"))
    return Row(path.stem, planned, plain, apart, reuse)


def allocated(name: str, arguments: list[str]) -> int:
    """Return the bytes by which a run raises the resident set of a process."""
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments],
        env={**os.environ, **LARGE_BLOCKS}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode:
        raise SystemExit(f"{name}: {ended.stderr.strip().splitlines()[-1]}")
    return int(ended.stdout)


def correlations(pairs: list[tuple[int, int]]) -> tuple[float, float]:
    """Return Pearson's correlation of bytes, and of their logarithms."""
    columns = list(zip(*pairs, strict=True))
    logs = [[math.log(max(number, 1)) for number in column] for column in columns]
    return statistics.correlation(*columns), statistics.correlation(*logs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", required=True, type=Path)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args()
    print(f"{'MB':24} {'plan':>8} {'plain':>8} {'apart':>8} {'reuse':>8}  apart/plain", flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(options.models.glob("*.onnx")):
            row = measure(path, options.batch, folder)
            rows.append(row)
            sizes = " ".join(f"{each / 1e6:8.1f}" for each in row[1:])
            print(f"{row.name:24} {sizes}  {row.apart / row.plain:.2f}", flush=True)
    for name, pairs in (
        ("plain and apart", [(row.plain, row.apart) for row in rows]),
        ("plan and reuse", [(row.plan, row.reuse) for row in rows]),
    ):
        plain, logs = correlations(pairs)
        ratio = statistics.median(measured / planned for planned, measured in pairs)
        found = f"correlation {plain:.3f}, of logarithms {logs:.3f}; median ratio {ratio:.2f}"
        print(f"{name}: {found}")


if __name__ == "__main__":
    main()
