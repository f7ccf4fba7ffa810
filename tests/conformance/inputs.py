"""Inputs for whole models: as the JSON beside a model describes them, else made up.

A description lists for each input its dtype, its shape, the shape under another binding of the
dynamic dims (`alt_shape`) and how to fill it: "randint" with low and high, "mask" or "normal".
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from tiered.runtime.inputs.make import feasible_inputs
from tiered.runtime.session import Session

Feeds = dict[str, Any]


def feeds_for(
    path: Path, model: ModelProto, session: Session, *, binding: int, seed: int = 0
) -> Feeds:
    """Return the feeds for the first (0) or the second (1) binding of the dynamic dims.

    Another seed than 0 returns other numbers.
    """
    description = path.with_suffix(".json")
    if not description.exists():
        return feasible_inputs(model, seed=seed, binding=binding, session=session).feeds
    spec = json.loads(description.read_text())
    random = np.random.default_rng(spec.get("seed", 0) + binding + seed)
    return {entry["name"]: _filled(entry, binding, random) for entry in spec["inputs"]}


def _filled(entry: Mapping[str, Any], binding: int, random: np.random.Generator) -> np.ndarray:
    shape = tuple(entry.get("alt_shape", entry["shape"]) if binding else entry["shape"])
    fill = entry["fill"]
    values: np.ndarray
    match fill["kind"]:
        case "randint":
            values = random.integers(fill["low"], fill["high"], size=shape)
        case "normal":
            values = random.standard_normal(shape)
        case "mask":
            values = np.ones(shape)
            values[1:, shape[1] - shape[1] // 4 :] = 0  # the first row is not padded
        case kind:
            raise ValueError(f"input {entry['name']!r}: unknown fill {kind!r}")
    return values.astype(entry["dtype"])


def with_masked_row(path: Path, feeds: Mapping[str, Any]) -> Feeds | None:
    """Return feeds whose masks have no key in the first row; None if no input is a mask."""
    description = path.with_suffix(".json")
    if not description.exists():
        return None
    entries = json.loads(description.read_text())["inputs"]
    masks = [entry["name"] for entry in entries if entry["fill"]["kind"] == "mask"]
    masked = {name: feeds[name].copy() for name in masks}
    for array in masked.values():
        array[0] = 0
    return {**feeds, **masked} if masked else None
