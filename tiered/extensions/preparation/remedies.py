"""Remedies: changes of a preparation that may make a model legal on a target, or smaller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tiered.extensions.preparation.preparation_options import PrepareOptions
from tiered.graph.core.dtypes import DataType
from tiered.pipeline.leftovers import fixing_sizes

if TYPE_CHECKING:
    from tiered.graph import Model
    from tiered.targets import Backend, Coverage

FUNCTIONS_SINCE: Final = 8
"""The first IR version with local functions, which operators of another layout are."""
_NEWEST: Final = (21, 10)
"""An opset and the IR version of it that runtimes of several years read."""
_LAYOUT_OPSET: Final = 17


@dataclass(frozen=True)
class Remedy:
    """One change of the options of a preparation.

    Attributes:
        what: the change, in words.
        why: the fact that asks for it.
        changes: the fields of `PrepareOptions` that it sets; `to` is added to.
        is_needed: whether the target refuses every node without it.
    """

    what: str
    why: str
    changes: dict[str, Any]
    is_needed: bool = False

    def applied(self, options: PrepareOptions) -> PrepareOptions:
        """Return options with the change."""
        to = (*options.to, *self.changes.get("to", ()))
        return replace(options, **{**self.changes, "to": to})


def for_target(model: Model, target: Backend, coverage: Coverage) -> Iterator[Remedy]:
    """Yield what may make a target take more of a model, what others depend on first."""
    yield from _versions(model, target)
    if target.shapes == "static" and (remedy := fixing(model)) is not None:
        yield replace(remedy, why=f"{target} takes static shapes only", is_needed=True)
    if not target.computes_floats and not _has_few_bits(model):
        why = f"{target} computes no float32"
        if DataType.FLOAT16 in target.activations:
            yield Remedy("compute in float16", why, {"to": ("fp16",)}, is_needed=True)
        else:
            yield Remedy("quantise first", why, {"to": ("int8",)}, is_needed=True)
    if any("int64" in reason for gap in coverage.gaps for reason in gap.reasons):
        yield Remedy("int64 to int32", "int64 is refused", {"to": ("int32",)})
    yield Remedy("approximations too", "exact replacements do not suffice", {"opt_level": 4})


def _versions(model: Model, target: Backend) -> Iterator[Remedy]:
    """Yield other versions: within the bounds of the target, or with more operators."""
    opset, bounds = model.main.opset(), target.opset
    # Some targets have edits that convert to their opset in the course of the pipeline.
    is_needed = not any("convert_opset" in edit.passes for edit in target.edits)
    if not bounds.holds(opset):
        nearest = int(bounds.nearest(opset))
        why = f"opset {opset} is not in {bounds}"
        yield Remedy(f"opset {nearest}", why, {"opset": nearest}, is_needed=is_needed)
        changes = {"opset": nearest, "expand": True}
        yield Remedy(f"opset {nearest}, with bodies", why, changes, is_needed=is_needed)
    if not target.ir_version.holds(model.ir_version):
        nearest = int(target.ir_version.nearest(model.ir_version))
        why = f"IR version {model.ir_version} is not in {target.ir_version}"
        yield Remedy(f"IR version {nearest}", why, {"ir": nearest}, is_needed=True)
    elif model.ir_version < FUNCTIONS_SINCE and target.ir_version.holds(FUNCTIONS_SINCE):
        why = "operators of another layout are local functions, which IR 8 brought"
        yield Remedy("IR version 8", why, {"ir": FUNCTIONS_SINCE})
    for newer in (_LAYOUT_OPSET, _NEWEST[0]):
        if opset < newer and bounds.holds(newer) and bounds.holds(opset):
            yield Remedy(f"opset {newer}", "newer operators are whole", {"opset": newer})


def for_any_runtime() -> Iterator[Remedy]:
    """Yield what may make a runtime open a model: older versions."""
    opset, ir = _NEWEST
    yield Remedy(f"IR version {ir}", "no runtime opens the model", {"ir": ir})
    yield Remedy(f"opset {opset}", "no runtime opens the model", {"opset": opset, "ir": ir})


def fixing(model: Model) -> Remedy | None:
    """Return what fixes the dynamic dims; None if there are none."""
    dims, shapes = fixing_sizes(model)
    if not dims and not shapes:
        return None
    return Remedy("fix dims", "dims are dynamic", {"dims": dims, "input_shapes": shapes})


def gaining(model: Model, options: PrepareOptions, target: Backend | None) -> Iterator[Remedy]:
    """Yield what may make a model smaller or faster, beside what makes it legal."""
    yield Remedy("remove texts and inner names", "no runtime reads them", {"strip": ("all",)})
    if not options.dims and not options.input_shapes and (remedy := fixing(model)) is not None:
        yield replace(remedy, why="what depends on sizes is then constant")
    if _is_narrow(options.to) or _has_few_bits(model):
        return
    yield Remedy("compute in float16", "half the bytes", {"to": ("fp16",)})
    if target is not None and target.quantization_form == "qdq":
        yield Remedy("quantise", "a quarter of the bytes", {"to": ("int8",)})
    if target is None:
        yield Remedy("weights in 8 bits", "a quarter of the bytes", {"to": ("int8-weights",)})


def _is_narrow(to: Sequence[str]) -> bool:
    return any(name != "int32" for name in to)


def _has_few_bits(model: Model) -> bool:
    """Return whether a model is quantised already, or has halves."""
    names = ("QuantizeLinear", "DequantizeLinear")
    if any(graph.nodes_of(name) for graph in model.graphs() for name in names):
        return True
    weights = (value.default for graph in model.graphs() for value in graph.initializers)
    return any(w is not None and w.dtype in (DataType.FLOAT16, DataType.BFLOAT16) for w in weights)
