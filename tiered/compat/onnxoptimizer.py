"""`optimize` with the arguments and the result of onnxoptimizer's.

model = optimize(onnx.load("model.onnx"), ["eliminate_identity", "fuse_bn_into_conv"])
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx

import tiered

__all__ = ["get_available_passes", "get_fuse_and_elimination_passes", "optimize"]


def get_available_passes() -> list[str]:
    """Return the names of all passes."""
    return list(tiered.pass_names())


def get_fuse_and_elimination_passes() -> list[str]:
    """Return the names of the passes that fuse and eliminate."""
    return [name for name in tiered.pass_names() if name.startswith(("eliminate_", "fuse_"))]


def optimize(
    model: onnx.ModelProto, passes: Sequence[str] | None = None, fixed_point: bool = False
) -> onnx.ModelProto:
    """Return the model after some passes, whatever their levels.

    Args:
        model: it stays as it is.
        passes: names in their order; the default pipeline at level 3 without it.
        fixed_point: run them until nothing changes; the default pipeline does so anyway.

    Raises:
        ValueError: the model is no ModelProto.
        PassNotFoundError: an unknown name.
    """
    if not isinstance(model, onnx.ModelProto):
        raise ValueError(f"optimize takes an onnx.ModelProto, not {type(model).__name__}")
    if passes is None:
        return tiered.optimize(model, opt_level=3)
    pipeline = tiered.Fixpoint(passes) if fixed_point else tiered.Sequential(passes)
    return tiered.optimize(model, passes=pipeline)
