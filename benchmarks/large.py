"""Large models: time and peak memory of tiered, of a plain copy, and of the peers that are asked.

The model has the shape of a Llama: 32 layers, about 4.4 GB of weights in a file of their own (or a
GB of them in the model itself). It is made on disk, tensor by tensor, so that making it takes no
memory either.

    python -m benchmarks.large --folder build/large --peers onnxsim onnxscript
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import cyclopts
import numpy as np
import onnx
from onnx import TensorProto, helper, parser

HIDDEN, INNER, HEADS, WORDS = 2048, 8192, 16, 32_000
BLOCK = np.random.default_rng(0).standard_normal(1 << 22).astype(np.float16).tobytes()

NORM = """{o}2 = Mul({x}, {x})  {o}m = ReduceMean<keepdims=1>({o}2, last)  {o}e = Add({o}m, eps)
    {o}s = Sqrt({o}e)  {o}d = Div({x}, {o}s)  {o} = Mul({o}d, w{o})"""
HEAD = """{o}p = MatMul({x}, w{o})  {o}b = Shape({x})  {o}b0 = Gather<axis=0>({o}b, i0)
    {o}b1 = Gather<axis=0>({o}b, i1)  {o}u0 = Unsqueeze({o}b0, zero)  {o}u1 = Unsqueeze({o}b1, zero)
    {o}z = Concat<axis=0>({o}u0, {o}u1, heads, each)  {o}w = Reshape({o}p, {o}z)
    {o} = Transpose<perm=[0,2,1,3]>({o}w)"""
ROTARY = """{o}l = Slice({x}, zero, half, axis3)  {o}h = Slice({x}, half, end, axis3)
    {o}n = Neg({o}h)  {o}j = Concat<axis=-1>({o}n, {o}l)  {o}c = Mul({x}, cos)
    {o}v = Mul({o}j, sin)  {o} = Add({o}c, {o}v)"""
LAYER = "\n".join(
    (
        NORM.format(o="L1", x="X"),
        *(HEAD.format(o=f"L{name}", x="L1") for name in ("q", "k", "v")),
        ROTARY.format(o="Lqr", x="Lq"),
        ROTARY.format(o="Lkr", x="Lk"),
        """Lkt = Transpose<perm=[0,1,3,2]>(Lkr)  La = MatMul(Lqr, Lkt)  Lsc = Mul(La, scale)
        Lf = Cast<to=1>(Lsc)  Lsm = Softmax<axis=-1>(Lf)  Lsh = Cast<to=10>(Lsm)
        Lid = Identity(Lsh)  Lav = MatMul(Lid, Lv)  Lat = Transpose<perm=[0,2,1,3]>(Lav)
        Las = Shape(L1)  Lar = Reshape(Lat, Las)  Lo = MatMul(Lar, wLo)  Lx = Add(X, Lo)""",
        NORM.format(o="L2", x="Lx"),
        """Lg = MatMul(L2, wLg)  Lup = MatMul(L2, wLup)  Lgs = Sigmoid(Lg)  Lsi = Mul(Lg, Lgs)
        Lmu = Mul(Lsi, Lup)  Ldn = MatMul(Lmu, wLdn)  Ly = Add(Lx, Ldn)""",
    )
)
SMALL = """<float16[1] eps = {1}, float16 scale = {11264}, int64 i0 = {0}, int64 i1 = {1},
    int64[1] zero = {0}, int64[1] heads = {16}, int64[1] each = {128}, int64[1] half = {64},
    int64[1] end = {9223372036854775807}, int64[1] axis3 = {3}, int64[1] last = {-1}>"""
SHAPES = {
    "1": [HIDDEN], "2": [HIDDEN], "q": [HIDDEN, HIDDEN], "k": [HIDDEN, HIDDEN],
    "v": [HIDDEN, HIDDEN], "o": [HIDDEN, HIDDEN], "g": [HIDDEN, INNER], "up": [HIDDEN, INNER],
    "dn": [INNER, HIDDEN],
}  # fmt: skip


def make_model(path: Path, *, layers: int, external: bool) -> None:
    """Write a model of so many layers; its weights go beside it, or into it."""
    steps, last = ["e = Gather<axis=0>(words, ids)"], "e"
    for layer in range(layers):
        text = LAYER.replace("ReduceMean<keepdims=1>", "ReduceMean")
        for name in ("X", "L"):
            text = _renamed(text, name, last if name == "X" else f"n{layer}_")
        steps.append(text)
        last = f"n{layer}_y"
    steps.append(f"y = Relu({last})")
    proto = parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> g (int64[batch,seq] ids, float16[128] cos,'
        f" float16[128] sin) => (float16[batch,seq,{HIDDEN}] y) {SMALL} {{ {' '.join(steps)} }}"
    )
    weights = {"words": [WORDS, HIDDEN]}
    for layer in range(layers):
        weights |= {f"wn{layer}_{name}": shape for name, shape in SHAPES.items()}
    if external:
        data = path.with_name(path.name + ".data")
        with data.open("wb") as file:
            for name, shape in weights.items():
                _add_external(proto, name, shape, data.name, file)
        onnx.save(proto, path)
        return
    for turn, (name, shape) in enumerate(weights.items()):
        raw = b"".join(_numbers(turn, int(np.prod(shape)) * 2))
        tensor = helper.make_tensor(name, TensorProto.FLOAT16, shape, raw, raw=True)
        proto.graph.initializer.append(tensor)
    onnx.save(proto, path)


def _renamed(text: str, old: str, new: str) -> str:
    """Give the names of a layer, which begin with L or wL, or are X, to one of many layers."""
    import re

    if old == "X":
        return re.sub(r"\bX\b", new, text)
    return re.sub(r"\b(w?)L(\w+)", rf"\g<1>{new}\g<2>", text)


def _add_external(
    proto: onnx.ModelProto, name: str, shape: list[int], location: str, file: BinaryIO
) -> None:
    length = int(np.prod(shape)) * 2
    file.write(b"\0" * (-file.tell() % 4096))
    tensor = proto.graph.initializer.add(name=name, data_type=TensorProto.FLOAT16, dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", file.tell()), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    for block in _numbers(len(proto.graph.initializer), length):
        file.write(block)


def _numbers(seed: int, length: int) -> list[bytes]:
    """Return so many bytes, different for each seed."""
    start = 2 * (seed * 7919 % (len(BLOCK) // 4))
    blocks = [BLOCK[start : start + length]]
    while (left := length - sum(map(len, blocks))) > 0:
        blocks.append(BLOCK[:left])
    return blocks


COMMANDS = {
    "tiered": ["-m", "tiered", "optimize", "-O3", "-q", "{source}", "{target}"],
    "onnxsim": ["-m", "onnxsim", "{source}", "{target}", "--save-as-external-data"],
    "onnxslim": ["-m", "onnxslim", "{source}", "{target}", "--save-as-external-data"],
    "onnxscript": [
        "-c",
        "import onnx, onnxscript.optimizer as o; onnx.save(o.optimize(onnx.load('{source}')),"
        " '{target}', save_as_external_data=True)",
    ],
}  # fmt: skip


def measured(arguments: Sequence[str]) -> tuple[int, float, int]:
    """Run a Python process; return its exit code, its seconds and its peak memory in bytes."""
    code = (
        "import resource, subprocess, sys; c = subprocess.run(sys.argv[1:]).returncode;"
        "print(c, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"
    )
    began = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-c", code, sys.executable, *arguments],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    exit_code, peak = ended.stdout.split()[-2:]
    return int(exit_code), seconds, int(peak)


def main(
    *,
    folder: Path = Path("build/large"),
    layers: int = 32,
    embedded: bool = False,
    peers: tuple[str, ...] = (),
    keep: bool = False,
) -> None:
    """Make a large model, and measure what each tool takes for it.

    Args:
        folder: where it goes; room for three copies is needed.
        layers: 32 are 4.4 GB; 7 embedded ones are 1 GB.
        embedded: keep the weights in the model file.
        peers: onnxsim, onnxslim, onnxscript; some take 16 GB of memory.
        keep: leave the files there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source, target = folder / "llama.onnx", folder / "out" / "llama.onnx"
    make_model(source, layers=layers, external=not embedded)
    nodes = len(onnx.load(source, load_external_data=False).graph.node)
    total = sum(entry.stat().st_size for entry in folder.iterdir() if entry.is_file())
    print(f"{nodes:,} nodes, {total / 1e9:.2f} GB")
    target.parent.mkdir(exist_ok=True)
    began = time.perf_counter()
    for entry in folder.iterdir():
        if entry.is_file():
            shutil.copyfile(entry, target.parent / entry.name)
    print(f"{'copy':12} {time.perf_counter() - began:8.1f} s")
    for name in ("tiered", *peers):
        shutil.rmtree(target.parent)
        target.parent.mkdir()
        command = [text.format(source=source, target=target) for text in COMMANDS[name]]
        exit_code, seconds, peak = measured(command)
        said = "" if exit_code == 0 else f"  failed ({exit_code})"
        print(f"{name:12} {seconds:8.1f} s  {peak / 1e6:10,.0f} MB{said}", flush=True)
    if not keep:
        shutil.rmtree(target.parent)
        for entry in (source, source.with_name(source.name + ".data")):
            entry.unlink(missing_ok=True)


if __name__ == "__main__":
    # A child that this process starts must not count what this process holds.
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    cyclopts.run(main)
