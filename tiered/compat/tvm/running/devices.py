"""Devices by TVM's names, and `relay.annotation.on_device`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn

from tiered.extensions.partition.versions import check_metadata
from tiered.graph import Node, Value
from tiered.graph.core.marks import DEVICE
from tiered.support.errors import UsageError

__all__ = ["Device", "cpu", "cuda", "device", "gpu", "name_of_device", "on_device"]

_DEVICES: Final = {1: "cpu", 2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm"}
"""TVM's names of its types of devices. Source: dlpack.h."""
_KINDS: Final = {**{name: kind for kind, name in _DEVICES.items()}, "llvm": 1, "gpu": 2}


class Device(NamedTuple):
    """A device: its type as in dlpack.h, and its number."""

    device_type: int
    device_id: int = 0


def device(dev_type: int | str, dev_id: int = 0) -> Device:
    """Return a device by its type, or by the kind of a target.

    Raises:
        UsageError: no device has this type.
    """
    if isinstance(dev_type, str):
        words = dev_type.split()
        kind = _KINDS.get(words[0]) if words else None
        if kind is None:
            raise UsageError(f"there is no device {dev_type!r} ({', '.join(_KINDS)})")
        return Device(kind, dev_id)
    name_of_device(dev_type)
    return Device(dev_type, dev_id)


def cpu(dev_id: int = 0) -> Device:
    """Return a processor."""
    return device("cpu", dev_id)


def cuda(dev_id: int = 0) -> Device:
    """Return a graphics processor of NVIDIA."""
    return device("cuda", dev_id)


gpu = cuda


def name_of_device(given: int | str | Device) -> str:
    """Return the name of a device, as `tiered.device` has it: cpu, or cuda:1.

    Raises:
        UsageError: no device has this type.
    """
    if isinstance(given, str):
        return given
    kind, number = given if isinstance(given, Device) else (given, 0)
    if kind not in _DEVICES:
        known = ", ".join(f"{kind} is {name}" for kind, name in _DEVICES.items())
        raise UsageError(f"there is no device type {kind}: {known}")
    return f"{_DEVICES[kind]}:{number}" if number else _DEVICES[kind]


def on_device(body: Value | Node, device: int | str | Device, **_: Any) -> Any:
    """Mark the node of a value with its device, and return what was given.

    Raises:
        UsageError: no node computes the value, or no device has this type.
        ModelError: the IR version has no metadata of nodes.
    """
    node = body.producer if isinstance(body, Value) else body
    if node is None:
        raise UsageError(f"on_device: no node computes {body!r}")
    check_metadata(node.owner.model)
    node.owner.set_metadata(node, {**node.metadata, DEVICE: name_of_device(device)})
    return body


_REGIONS: Final = (
    "regions are marks of nodes here: tvm.transform.AnnotateTarget, MergeCompilerRegions and "
    "PartitionGraph make them"
)
_NO_EQUIVALENT: Final = {
    **dict.fromkeys(("compiler_begin", "compiler_end"), _REGIONS),
    **dict.fromkeys(("subgraph_start", "subgraph_end"), _REGIONS),
    "checkpoint": "tvm.transform.gradient(..., recompute=) computes values again",
    "stop_fusion": "FuseOps takes the nodes of a backend; a node of another stays outside",
}
"""Annotations of TVM that are no nodes here, and what does the same."""


def __getattr__(name: str) -> Callable[..., NoReturn]:
    """Return a function that says what an annotation is here.

    Raises:
        AttributeError: TVM has no such annotation.
    """
    if name not in _NO_EQUIVALENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise UsageError(f"relay.annotation.{name} makes no node: {_NO_EQUIVALENT[name]}")

    refuse.__name__ = name
    return refuse
