"""The versions that a result depends on; all machines of a fleet must have the same."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from functools import cache
from typing import Final

from tiered import __version__
from tiered.support.errors import FleetError

_PACKAGES: Final = ("onnx", "onnxruntime")


def versions() -> dict[str, str]:
    """Return the versions of tiered, onnx and onnxruntime in this process."""
    return {"tiered": __version__, **{name: _version(name) for name in _PACKAGES}}


@cache
def _version(name: str) -> str:
    """Return the version of a package; each result has it, and its metadata takes 1 ms to read."""
    return importlib.metadata.version(name)


def text_of(found: Mapping[str, str]) -> str:
    """Return versions as one string: "tiered 0.2.0, onnx 1.23.2"."""
    return ", ".join(f"{name} {version}" for name, version in found.items())


def check_versions(where: str, found: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """Check that a worker has the versions of the submitter.

    Raises:
        FleetError: it has others.
    """
    different = [name for name in expected if found.get(name) != expected[name]]
    if different:
        has = text_of({name: found.get(name, "none") for name in different})
        wanted = text_of({name: expected[name] for name in different})
        raise FleetError(
            f"the worker {where} has {has}, the submitter {wanted}; results would depend on the "
            "worker: install the same versions on both"
        )
