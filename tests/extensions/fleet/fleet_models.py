"""A fleet of models for acceptance: given ones under changed names and shapes, cases, hostile ones.

python -m tests.extensions.fleet.fleet_models FOLDER --models examples/models --count 300
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

from tiered.testing import parse

SHARE_GIVEN, SHARE_HOSTILE = 1 / 3, 0.15
"""The shares of the given models and of the hostile ones; the rest are node cases."""


def make_fleet(folder: Path, models: Path, count: int, seed: int = 0) -> list[Path]:
    """Write models into a folder and return their paths.

    Args:
        folder: to write into.
        models: a folder of ONNX models.
        count: how many to write.
        seed: of the choices.
    """
    rng = random.Random(seed)
    given, hostile = int(count * SHARE_GIVEN), int(count * SHARE_HOSTILE)
    written = [
        *_write(folder / "given", itertools.islice(_variants(models), given)),
        *_write(folder / "hostile", itertools.islice(_hostile(rng, models), hostile)),
    ]
    with np.errstate(all="ignore"):
        cases = sorted(load_model_tests(kind="node"), key=lambda case: case.name)
    contents = [(c.name, c.model.SerializeToString()) for c in cases if c.model is not None]
    chosen = rng.sample(contents, count - len(written))
    return [*written, *_write(folder / "node", iter(chosen))]


def _write(folder: Path, contents: Iterator[tuple[str, bytes]]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in contents:
        paths.append(folder / f"{name}.onnx")
        paths[-1].write_bytes(content)
    return paths


def _variants(models: Path) -> Iterator[tuple[str, bytes]]:
    """Yield models with other names of values and nodes, and other sizes of symbolic dims."""
    files = sorted(models.glob("*.onnx"), key=lambda path: path.stat().st_size)
    for number in itertools.count():
        for path in files:
            proto = onnx.load(path)
            if number:
                _rename(proto, f"_{number}")
                _resize(proto, number)
            yield f"{path.stem}_{number}", proto.SerializeToString()


def _rename(proto: onnx.ModelProto, suffix: str) -> None:
    """Rename the nodes, and the values that nodes compute and no body reads."""
    graph = proto.graph
    fixed = {value.name for value in (*graph.input, *graph.output)}
    has_bodies = any(a.HasField("g") or a.graphs for node in graph.node for a in node.attribute)
    for node in graph.node:
        node.name += suffix
        if has_bodies:
            continue
        for names in (node.input, node.output):
            names[:] = [name if not name or name in fixed else name + suffix for name in names]
    if has_bodies:
        return
    for tensor in graph.initializer:
        if tensor.name not in fixed:
            tensor.name += suffix
    for value in graph.value_info:
        if value.name not in fixed:
            value.name += suffix


def _resize(proto: onnx.ModelProto, number: int) -> None:
    """Give other names to the symbolic dims of inputs and outputs; forget inferred shapes."""
    del proto.graph.value_info[:]
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_param"):
                dim.dim_param += f"_{number}"


# --- hostile inputs -------------------------------------------------------------------------------

CHAIN = "<ir_version: 10, opset_import: ['' : 21]> g (float[4] x) => (float[4] y) { %s }"


def _hostile(rng: random.Random, models: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what is no valid model, or hard to read, time and again with other content."""
    whole = min(models.glob("*.onnx"), key=lambda path: path.stat().st_size).read_bytes()
    for number in itertools.count():
        yield f"random_{number}", rng.randbytes(200 + number)
        yield f"cut_{number}", whole[: rng.randrange(1, len(whole))]
        flipped = bytearray(whole)
        for _ in range(20):
            flipped[rng.randrange(len(flipped))] = rng.randrange(256)
        yield f"flipped_{number}", bytes(flipped)
        yield f"empty_{number}", b"" if not number else b"\0" * number
        yield f"cycle_{number}", _text("a = Add(x, b) b = Add(x, a) y = Neg(b)", number)
        yield f"unknown_{number}", _text("y = NoSuchOperator(x)", number)
        yield f"missing_{number}", _text("y = Add(x, nowhere)", number)
        chain = " ".join(f"v{i + 1} = Neg(v{i})" for i in range(400))
        yield f"chain_{number}", _text(f"v0 = Neg(x) {chain} y = Neg(v400)", number)
        yield f"outside_{number}", _external("../../outside.bin", number)
        yield f"nothing_{number}", _external("nothing.bin", number)


def _text(nodes: str, number: int) -> bytes:
    proto = parse(CHAIN.replace("'", '"') % nodes)
    proto.doc_string = f"{number}"
    return bytes(proto.SerializeToString())


def _external(location: str, number: int) -> bytes:
    proto = parse(CHAIN.replace("'", '"') % "y = Add(x, w)")
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location="EXTERNAL")
    tensor.external_data.add(key="location", value=location)
    proto.graph.initializer.append(tensor)
    proto.doc_string = f"{number}"
    return bytes(proto.SerializeToString())


def main() -> None:
    """Write a fleet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=Path, default=Path("examples/models"))
    parser.add_argument("--count", type=int, default=300)
    given = parser.parse_args()
    made = make_fleet(given.folder, given.models, given.count)
    print(f"{len(made)} models, {sum(path.stat().st_size for path in made):,} bytes")


if __name__ == "__main__":
    main()
