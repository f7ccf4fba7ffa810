"""Sensitivity: whether a difference is due to a pass, or to a model that amplifies last bits.

A threshold, a rounding to integers or an ill-conditioned sum makes a small difference large, and
every pass that reassociates then seems to be wrong. So the model before is run with its inputs and
constants moved by one ulp, of the narrowest floats that it computes in; for a pass that promises
integers within some steps, its inputs are quantised once more. Where that alone changes an output
by more than the pass may, the outputs prove nothing, and the changed nodes are judged by
themselves, on the values that they read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import onnx

from tiered.graph.core.dtypes import float_info
from tiered.graph.core.tensor import Tensor
from tiered.runtime.compare.outputs import Comparison, OutputDifference, compare
from tiered.support.errors import ModelError, RuntimeFailure
from tiered.support.numerics import Numerics, Promise
from tiered.verify.model_pair import ModelPair, unprefixed
from tiered.verify.sliced_session import feeds_for, open_model

_PROBES: Final = 2
"""How often inputs and constants are moved, each time in other directions."""
_ALIKE: Final = 16.0
_FEW_STEPS: Final = 2.0
"""How many times the difference of a probe one may be that is put down to the model."""
_MOVED: Final = "an input moved by one ulp"
_STEPPED: Final = "an input quantised once more"
_MOVABLE: Final = ("float16", "float32", "float64")
_MOST_MOVED: Final = 1 << 26
"""Bytes of constants up to which they are moved."""


@dataclass(frozen=True)
class _Probe:
    """A run with something moved by one ulp, and how its outputs compare."""

    what: str
    found: Comparison

    @property
    def factor(self) -> float:
        """How many times its difference another one may be that is put down to the model."""
        return _FEW_STEPS if self.what == _STEPPED else _ALIKE

    def of(self, name: str) -> OutputDifference | None:
        """Return how an output differs, None if it agrees."""
        return next((o for o in self.found.outputs if o.name == name and not o.ok), None)


def amplification(models: ModelPair, found: Comparison) -> str:
    """Return how the model amplifies small changes, if that is all that a difference shows; or "".

    Args:
        models: the models that differ; an exact promise excuses no difference.
        found: the comparison that failed.
    """
    if models.promise.numerics is Numerics.EXACT:
        return ""
    try:
        probes = list(_probed(models))
        shown = _shown(found, probes)
        if shown is None:
            return ""
        evidence = f"{shown.what} changes its outputs as well ({shown.found.worst})"
        judged = _changed_nodes_amplify(models)
    except (RuntimeFailure, ModelError, TypeError):
        return ""
    small = "steps of a quantisation" if shown.what == _STEPPED else "last bits"
    return f"the model amplifies {small}: {evidence}; {judged}" if judged else ""


def _changed_nodes_amplify(models: ModelPair) -> str:
    """Return how the changed nodes agree by themselves; "" if they do not."""
    changed = models.changed
    if changed is None:
        return ""
    found = changed.compared()
    if found.ok:
        return f"the {changed.size} changed nodes agree: {found}"
    shown = _shown(found, list(_probed(changed)))
    return "" if shown is None else f"the changed nodes differ by what {shown.what} changes, too"


def _shown(found: Comparison, probes: list[_Probe]) -> _Probe | None:
    """Return a probe that shows differences like those that were found; None if one is unlike."""
    shown: _Probe | None = None
    for output in found.outputs:
        if output.ok:
            continue
        alike = (p for p in probes if _is_like(output, p.of(output.name), p.factor))
        shown = next(alike, None)
        if shown is None:
            return None
    return shown


def _is_like(output: OutputDifference, probed: OutputDifference | None, factor: float) -> bool:
    if probed is None:
        return False
    if output.reason.startswith("shape") or probed.reason.startswith("shape"):
        return True  # What cannot be compared element by element has no size.
    if output.max_ulp is None:
        return True  # Integers are labels and places as often as sizes.
    if output.nan_mismatch and not probed.nan_mismatch:
        return False
    return output.max_abs <= factor * probed.max_abs


def _probed(models: ModelPair) -> Iterator[_Probe]:
    """Yield runs of the model before with moved inputs or constants, as far as they differ."""
    worker, model, feeds, promise = models.worker, models.before, models.feeds, models.promise
    move_ulp = partial(_moved, narrow=_narrowest(promise))
    with open_model(worker, model.proto, folder=model.folder) as session:
        fed = feeds_for(model.proto, feeds)
        expected = unprefixed(session.run(fed))
        by_steps = ((_STEPPED, _stepped),) if promise.steps else ()
        for what, move in (*by_steps, (_MOVED, move_ulp)):
            for seed in range(_PROBES):
                nearby = {name: move(value, seed) for name, value in fed.items()}
                found = compare(expected, unprefixed(session.run(nearby)), promise)
                if not found.ok:
                    yield _Probe(what, found)
    for seed in range(_PROBES):
        proto = _with_moved_constants(model.proto, seed)
        with open_model(worker, proto, folder=model.folder) as session:
            found = compare(expected, unprefixed(session.run(fed)), promise)
        if not found.ok:
            yield _Probe("a constant moved by one ulp", found)


def _stepped(value: Any, seed: int) -> Any:
    """Return values moved by the error of a quantisation to 8 bits.

    Floats move by up to half a step of 255 in their range, integers of 8 bits by one or not.
    """
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    random = np.random.default_rng(seed).random(value.shape)
    if value.dtype in (np.int8, np.uint8):
        wide = value.astype(np.int16) + np.floor(random * 3).astype(np.int16) - 1
        info = np.iinfo(value.dtype)
        return np.clip(wide, info.min, info.max).astype(value.dtype)
    if value.dtype.name not in _MOVABLE or not np.isfinite(value).all():
        return value
    step = (float(value.max()) - float(value.min())) / 255
    return (value + (random - 0.5) * step).astype(value.dtype)


def _with_moved_constants(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """Return a model with its small inline constants moved by one ulp."""
    moved = onnx.ModelProto()
    moved.CopyFrom(model)
    left = _MOST_MOVED
    for tensor in moved.graph.initializer:
        held = Tensor(tensor)
        if tensor.data_location == tensor.EXTERNAL or held.nbytes > left:
            continue
        left -= held.nbytes
        array = held.numpy()
        other = _moved(array, seed)
        if other is not array:
            tensor.CopyFrom(onnx.numpy_helper.from_array(other, tensor.name))
    return moved


def _narrowest(promise: Promise) -> np.dtype[Any] | None:
    """Return the dtype of the fewest digits that outputs are computed from; None for their own."""
    found = (dtype for _, dtype in promise.computed if dtype.name in _MOVABLE)
    return max(found, key=lambda dtype: float(float_info(dtype).eps), default=None)


def _moved(value: Any, seed: int, narrow: np.dtype[Any] | None = None) -> Any:
    """Return floats moved by one ulp, each up or down; 0, infinities and NaN stay.

    Args:
        value: floats, or anything else, which stays.
        seed: of the directions.
        narrow: a dtype of fewer digits, whose ulp is taken; numbers beyond its range stay.
    """
    if not isinstance(value, np.ndarray) or value.dtype.name not in _MOVABLE:
        return value
    up = np.random.default_rng(seed).random(value.shape) < 0.5
    with np.errstate(over="ignore"):
        rounded = value if narrow is None else value.astype(narrow)
        to = np.where(up, np.inf, -np.inf).astype(rounded.dtype)
        moved = np.nextafter(rounded, to)
    stays = (value == 0) | ~np.isfinite(value) | ~np.isfinite(moved)
    return np.where(stays, value, moved).astype(value.dtype)
