"""How the interface of a model differs from that of the file or proto that was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import onnx

from tiered.graph.core.types import read_type

if TYPE_CHECKING:
    from tiered.graph import Model

Infos = Sequence[onnx.ValueInfoProto]


def interface_changes(model: Model) -> list[str]:
    """Return what differs from the model as it was read: opsets, IR version, inputs, outputs."""
    origin = model.origin
    return [] if origin is None else list(_changes(model, origin))


def _changes(model: Model, origin: onnx.ModelProto) -> Iterator[str]:
    before = {entry.domain or "ai.onnx": entry.version for entry in origin.opset_import}
    for domain, version in model.opset_imports.items():
        old = before.get(domain or "ai.onnx")
        if old is not None and old != version:
            name = "opset" if not domain else f"opset of {domain}"
            yield f"{name} {old} -> {version}"
    if origin.ir_version != model.ir_version:
        yield f"IR version {origin.ir_version} -> {model.ir_version}"
    main = model.main
    # A declaration may still have the name that the value had in the file.
    inputs = zip(main.inputs, main.input_infos, strict=True)
    outputs = zip(main.outputs, main.output_infos, strict=True)
    yield from _side("input", origin.graph.input, {v.name: info for v, info in inputs})
    yield from _side("output", origin.graph.output, {v.name: info for v, info in outputs})


def _side(side: str, before: Infos, new: Mapping[str, onnx.ValueInfoProto]) -> Iterator[str]:
    old = {info.name: info for info in before}
    for name in old:
        if name not in new:
            yield f"{side} {name} removed"
    for name, info in new.items():
        now = read_type(info.type)
        if name not in old:
            yield f"{side} {name} added: {now}"
        elif (then := read_type(old[name].type)) != now:
            yield f"{side} {name}: {then} -> {now}"
    kept = [[name for name in one if name in other] for one, other in ((old, new), (new, old))]
    if kept[0] != kept[1]:
        yield f"{side}s in another order: {', '.join(kept[1])}"
