"""What measurements depend on beside the model: the machine, the runtime, and the inputs."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from tiered import __version__
from tiered.extensions.measurement.latency_bench import How
from tiered.support.amounts import counted
from tiered.support.processor import processor_name


def machine_text(how: How, objective: str, judge: str | None) -> str:
    """Return what measurements depend on beside the model and its inputs, in one line.

    Args:
        how: provider, threads, level and clock.
        objective: what is measured.
        judge: the command of the user or the name of another judge, None for onnxruntime.
    """
    import onnxruntime

    cores, system = counted(os.cpu_count() or 1, "core"), platform.system()
    name = processor_name() or platform.machine()
    parts: list[Any] = [f"tiered {__version__}", name, cores, system, objective]
    if judge is not None:
        return ", ".join((*parts, f"measured by {judge}"))
    opening = how.opening()
    parts += [
        f"onnxruntime {onnxruntime.__version__}", opening.provider, f"threads {opening.threads}",
        f"optimisations {opening.level}", f"{how.clock} time",
    ]  # fmt: skip
    return ", ".join(parts)


def sizes_text(model: onnx.ModelProto, feeds: Sequence[Mapping[str, Any]]) -> str:
    """Return the sizes that the dynamic dims of the inputs have in each sample, in one line."""
    return "; ".join(
        ", ".join(f"{name}={size}" for name, size in sorted(_sizes(model, each))) for each in feeds
    )


def _sizes(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> set[tuple[str, int]]:
    return {
        (dim.dim_param or f"{info.name}[{axis}]", size)
        for info in model.graph.input
        if isinstance(feeds.get(info.name), np.ndarray)
        for axis, (dim, size) in enumerate(
            zip(info.type.tensor_type.shape.dim, feeds[info.name].shape, strict=False)
        )
        if not dim.HasField("dim_value")
    }


def digest_of_arrays(samples: Sequence[Mapping[str, Any]]) -> str:
    """Return the digest of the user's samples; "" if there are none."""
    digest = hashlib.blake2b(digest_size=16)
    for place, sample in enumerate(samples):
        for name, value in sorted(sample.items()):
            digest.update(f"{place} {name} ".encode())
            _add(digest, value)
    return digest.hexdigest() if samples else ""


def _add(digest: Any, value: Any) -> None:
    """Add an input to a digest: an array, a sequence of them, or an optional that is empty."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype} {value.shape} ".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (list, tuple)):
        digest.update(f"sequence {len(value)} ".encode())
        for each in value:
            _add(digest, each)
    else:  # strings, and None
        digest.update(repr(value.tolist() if isinstance(value, np.ndarray) else value).encode())
