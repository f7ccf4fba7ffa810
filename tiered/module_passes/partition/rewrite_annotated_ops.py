"""A node  =>  the node, marked with its device and its pipeline stage"""

from tiered import Model, PassContext, UsageError, module_pass
from tiered.extensions.partition.device_marks import mark_devices


@module_pass(opt_level=None, touches=("*",))
def rewrite_annotated_ops(
    model: Model,
    ctx: PassContext,
    *,
    fallback_device: str = "",
    sharding: tuple[str, ...] = (),
    pipelining: tuple[str, ...] = (),
    propagate: bool = False,
) -> None:
    """Assign nodes to devices and pipeline stages: metadata `tiered.device` and `tiered.stage`.

    A cut assigns a node and its ancestors, but those of earlier cuts. Stages must never decrease
    along edges. `tiered.extensions.partition.device_partitions` makes partitions of the marks.

    Args:
        fallback_device: the device of nodes without one.
        sharding: cuts, as `node=device`.
        pipelining: cuts, as `node=stage`; nodes after the last one are of one more stage.
        propagate: nodes without a device, between nodes of one device, are on it too.
    """
    devices = dict(_split(entry) for entry in sharding)
    stages = {name: _stage(name, text) for name, text in map(_split, pipelining)}
    if devices or stages or fallback_device or propagate:
        mark_devices(model, devices, stages, fallback_device=fallback_device, propagate=propagate)


def _split(entry: str) -> tuple[str, str]:
    name, _, said = entry.rpartition("=")
    if not name or not said:
        raise UsageError(f"a cut is node=device or node=stage, not {entry!r}")
    return name, said


def _stage(name: str, text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"the stage of {name!r} is {text!r}; expected a whole number")
    return int(text)
