"""Rooms that lose precision: results are valid, run, keep shapes, and are at rest."""

from __future__ import annotations

import random
from typing import Any

import onnx

from tests.conformance.rooms.room import Result
from tests.conformance.rooms.same_outputs import applied

PRECISION: tuple[tuple[str, dict[str, Any]], ...] = (
    ("float_to_half", {}), ("float_to_half", {"keep_io_types": False}),
    ("float_to_mixed", {"budget": "cosine>=0.999", "samples": 2}),
    ("weights_to_int8", {"min_elements": 4}),
    ("weights_to_int8", {"min_elements": 4, "block_size": 4}),
    ("weights_to_int4", {"min_elements": 4, "block_size": 4}),
    ("fp8_weight", {"min_elements": 4}), ("float_to_fp8", {"min_elements": 4, "samples": 2}),
)  # fmt: skip

QUANTIZATION: tuple[tuple[str, dict[str, Any]], ...] = (
    ("quantize", {"samples": 2}), ("quantize", {"samples": 2, "method": "percentile"}),
    ("quantize", {"samples": 2, "reduce_range": True}), ("quantize_dynamic", {}),
    ("quantize_dynamic", {"reduce_range": True, "convolutions": True}),
)  # fmt: skip


def precision(source: random.Random, model: onnx.ModelProto) -> Result:
    """Narrower types, and weights in 8 bits or fewer."""
    return _at_rest(model, *source.choice(PRECISION))


def quantization(source: random.Random, model: onnx.ModelProto) -> Result:
    """Static and dynamic quantisation."""
    return _at_rest(model, *source.choice(QUANTIZATION))


def _at_rest(model: onnx.ModelProto, name: str, options: dict[str, Any]) -> Result:
    made = applied(model, name, **options)
    again = applied(made.model, name, **options)
    if again.model != made.model:
        raise AssertionError(f"{made.why}: a second run changes the result")
    return made
