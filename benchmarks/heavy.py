"""What a model of 147 GB costs whose weights need not be read: `python -m benchmarks.heavy`.

The weights are in sparse files, which take next to no disk. There are three models: the weights
differ in their first element, in their last one, or not at all. Each command runs in a process of
its own, in turns with `tiered inspect` of the first model, and the figures are its processor time
over that one's, and its peak memory. `--check` makes more than `MEMORY` an error.

`--convert` measures conversions instead, which read and write all weights, of files with three
weights of `--rows` times 80 KiB each: seconds of processor time, what the process holds at its peak
without mapped files, and with them. The results take room on disk, twice for a while: a half, a
quarter and an eighth of the weights.
"""

import argparse
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import onnx
from onnx import TensorProto, helper

from tiered.support.memory_limit import held_by

MEMORY: Final = 300
"""Megabytes that a command may take."""

CONVERTED: Final = 1000
"""The same of a conversion, without mapped files."""

ROWS, COLUMNS = 20_000, 20_480
KINDS = ("first", "last", "equal")
COMMANDS = {
    "inspect": ("inspect", "{model}"),
    "-O3 --share-weights": ("optimize", "{model}", "{out}", "-O3", "--share-weights", "--force"),
    "check": ("check", "{model}", "--backend", "onnxruntime_cpu"),
    "memory": ("memory", "{model}"),
    "certify": ("certify", "{model}", "{model}"),
}


CONVERSIONS = {
    "fp16": ("convert", "{model}", "{out}", "--to", "fp16", "--force"),
    "int8-weights": ("convert", "{model}", "{out}", "--to", "int8-weights", "--force"),
    "int4-weights": (
        *("convert", "{model}", "{out}", "--opset", "21", "--to", "int4-weights", "--force"),
    ),
}


class Taken(NamedTuple):
    """What a process took: processor time in seconds, and megabytes at the peak.

    Attributes:
        own: the megabytes without mapped files; 0 where the system does not say.
    """

    seconds: float
    megabytes: float
    own: float
    code: int


def make(folder: Path, kind: str, files: int, rows: int = ROWS, columns: int = COLUMNS) -> Path:
    """Write a model of products with three weights in each file, and return its path."""
    folder.mkdir()
    nodes, weights, last, number = [], [], "x", 0
    nbytes = rows * columns * 4
    for file in range(files):
        path = folder / f"weights_{file}.bin"
        with path.open("wb") as out:
            out.truncate(3 * nbytes)
            for place in range(3):
                if kind != "equal":
                    out.seek(place * nbytes if kind == "first" else (place + 1) * nbytes - 4)
                    out.write(struct.pack("<f", file * 3 + place + 1))
                dims = [rows, columns] if number % 2 == 0 else [columns, rows]
                weight = TensorProto(name=f"w{number}", data_type=TensorProto.FLOAT, dims=dims)
                weight.data_location = TensorProto.EXTERNAL
                span = {"location": path.name, "offset": place * nbytes, "length": nbytes}
                for key, value in span.items():
                    weight.external_data.add(key=key, value=str(value))
                weights.append(weight)
                product = helper.make_node("MatMul", [last, weight.name], [f"p{number}"])
                copied = helper.make_node("Identity", [f"p{number}"], [f"i{number}"])
                last = f"r{number}"
                nodes += [product, copied, helper.make_node("Relu", [f"i{number}"], [last])]
                number += 1
    width = rows if number % 2 == 0 else columns
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", rows])
    y = helper.make_tensor_value_info(last, TensorProto.FLOAT, ["n", width])
    graph = helper.make_graph(nodes, "heavy", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def taken(words: Sequence[str], limit: float) -> Taken:
    """Return what a command of tiered took; a run that takes longer is stopped, with a code."""
    program = [sys.executable, "-m", "benchmarks.heavy", "--one", str(limit), *words]
    done = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True)
    seconds, megabytes, own, code = done.stdout.split()[-4:]
    return Taken(float(seconds), float(megabytes), float(own), int(code))


def one(limit: float, words: Sequence[str]) -> None:
    """Run a command as the only child of this process, and print what it took."""
    program = [sys.executable, "-m", "tiered", *words]
    running = subprocess.Popen(program, stdout=subprocess.DEVNULL)
    own, end = 0, time.monotonic() + limit
    while (code := running.poll()) is None:
        own = max(own, held_by(running.pid))
        if time.monotonic() > end:
            running.kill()
            running.wait()
            code = STOPPED
            break
        time.sleep(_POLL)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    most = usage.ru_maxrss / _UNITS_OF_A_MEGABYTE
    print(usage.ru_utime + usage.ru_stime, most, own / 1e6, code)


_POLL: Final = 0.005  # seconds
STOPPED: Final = 124
_UNITS_OF_A_MEGABYTE = 1 << 20 if sys.platform == "darwin" else 1 << 10


def main(files: int, limit: float, turns: int, kinds: Sequence[str] = KINDS) -> float:
    """Print the figures of each command on each model; return the most megabytes."""
    most = 0.0
    with tempfile.TemporaryDirectory() as place:
        models = {kind: make(Path(place) / kind, kind, files) for kind in kinds}
        size = files * 3 * ROWS * COLUMNS * 4 / 1e9
        print(f"{size:.0f} GB in {files} files; weights that differ: {', '.join(kinds)}")
        for name, words in COMMANDS.items():
            cells = []
            for model in models.values():
                out = str(model.with_name("out.onnx"))
                own = [word.format(model=model, out=out) for word in words]
                plain = ["inspect", str(models[kinds[0]])]
                pairs = [(taken(own, limit), taken(plain, limit)) for _ in range(turns)]
                ratio = statistics.median(mine.seconds / its.seconds for mine, its in pairs)
                memory = max(mine.megabytes for mine, _ in pairs)
                most = max(most, memory)
                code = pairs[0][0].code
                told = f" code {code}" if code else ""
                cells.append(f"{ratio:6.2f} {memory:5.0f} MB{told}")
            print(f"{name:22}" + "".join(f"{cell:>24}" for cell in cells), flush=True)
    return most


def converted(names: Sequence[str], files: int, rows: int, limit: float) -> float:
    """Print what conversions take; return the most megabytes that one holds."""
    most = 0.0
    with tempfile.TemporaryDirectory() as place:
        model = make(Path(place) / "model", "last", files, rows)
        nbytes = rows * COLUMNS * 4
        print(f"{files * 3 * nbytes / 1e9:.1f} GB in weights of {nbytes / 1e6:.0f} MB")
        for name in names:
            folder = model.with_name(name)
            folder.mkdir()
            out = str(folder / "out.onnx")
            words = [word.format(model=model, out=out) for word in CONVERSIONS[name]]
            found = taken(words, limit)
            memory = f"{found.own:.0f} MB, {found.megabytes:.0f} with mapped files"
            told = f" code {found.code}" if found.code else ""
            print(f"{name:22}{found.seconds:6.0f} s {memory}{told}", flush=True)
            most = max(most, found.own)
            shutil.rmtree(folder)
    return most


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(float(sys.argv[2]), sys.argv[3:])
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--limit", type=float, default=120, help="seconds of a command")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--convert", nargs="*", choices=CONVERSIONS, help="measure conversions")
    parser.add_argument("--rows", type=int, default=5_000, help="of the weights of --convert")
    given = parser.parse_args()
    if given.convert is not None:
        names = given.convert or list(CONVERSIONS)
        found, allowed = converted(names, given.files, given.rows, given.limit), CONVERTED
    else:
        found, allowed = main(given.files, given.limit, given.turns, given.kinds), MEMORY
    if given.check and found > allowed:
        sys.exit(f"a command takes {found:.0f} MB, more than {allowed}")
