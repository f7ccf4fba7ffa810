"""Digests of what tiered makes of whole models: one file that a change of the code must not change.

`python -m tests.conformance.digests --models DIR --write FILE` records them; with `--against FILE`
it lists what differs. `make digests` holds the present code against the recorded file.
"""

import functools
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import cyclopts
import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

import tiered
from tiered.runtime import make_inputs

RECORDED: Final = Path(__file__).with_name("digests.json")
MODELS: Final = Path(__file__).parents[2] / "examples" / "models"
LEVELS: Final = (0, 1, 2, 3, 4)

Digests = dict[str, dict[str, str]]


def model_files(folder: Path) -> list[Path]:
    """Return the models of a folder, and the nine light ones that onnx ships."""
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return [*sorted(folder.glob("*.onnx")), *sorted(light.glob("light_*.onnx"))]


def digests_of(path: Path) -> dict[str, str]:
    """Return the digests of a model: of inputs that are made for it, and of each result."""
    inputs = make_inputs(str(path)).feeds
    found = {"inputs": _digest(*(part for name in sorted(inputs) for part in _told(inputs[name])))}
    for setting, options in _settings():
        result = tiered.optimize(onnx.load(path), **options)
        assert isinstance(result, ModelProto)
        found[setting] = _digest(result.SerializeToString(deterministic=True))
        found[f"{setting} structure"] = _digest(structure_of(result))
    return found


def _settings() -> Iterator[tuple[str, dict[str, Any]]]:
    for level in LEVELS:
        yield f"O{level}", {"opt_level": level}
    yield "O3 onnxruntime_cpu", {"opt_level": 3, "backend": "onnxruntime_cpu"}


def structure_of(model: ModelProto) -> bytes:
    """Return a model without the numbers of its floats.

    Numbers that constant folding computes may differ in the last bits between processors.
    """
    bare = ModelProto()
    bare.CopyFrom(model)
    pending: list[Any] = [bare.graph, *bare.functions]
    while pending:
        graph = pending.pop()
        for tensor in getattr(graph, "initializer", ()):
            _forget_floats(tensor)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    _forget_floats(attribute.t)
                pending += [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
    return bare.SerializeToString(deterministic=True)


def _forget_floats(tensor: onnx.TensorProto) -> None:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return
    if np.issubdtype(numpy_helper.to_array(tensor).dtype, np.integer):
        return
    for field in ("raw_data", "float_data", "double_data", "int32_data", "uint64_data"):
        tensor.ClearField(field)


def _told(array: np.ndarray[Any, Any]) -> tuple[bytes, bytes]:
    return f"{array.dtype} {array.shape}".encode(), array.tobytes()


def _digest(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()[:16]


@functools.cache
def recorded() -> Digests:
    """Return the digests that were recorded, by model and setting."""
    found: Digests = json.loads(RECORDED.read_text())
    return found


def differences(expected: Digests, actual: Digests) -> list[str]:
    """Return "model: setting" for each digest of the models of `actual` that is another one."""
    return [
        f"{model}: {setting}"
        for model, digests in actual.items()
        for setting, digest in digests.items()
        if expected.get(model, {}).get(setting) != digest
    ]


def main(
    *,
    models: Path = MODELS,
    against: Path = RECORDED,
    write: Annotated[Path | None, cyclopts.Parameter(help="record the digests here")] = None,
) -> None:
    """Make the digests of a folder of models; list those that differ from the recorded ones."""
    found: Digests = {}
    for path in model_files(models):
        found[path.name] = digests_of(path)
        print(path.name, flush=True)
    if write is not None:
        write.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        return
    changed = differences(json.loads(against.read_text()), found)
    print("\n".join(changed) or "no digest changed")
    raise SystemExit(1 if changed else 0)


if __name__ == "__main__":
    cyclopts.run(main)
