"""sensitivity: the weights by how much a relative change of them changes the outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from tiered.extensions.debug.all_values import run
from tiered.extensions.debug.pipeline_runs import ModelLike
from tiered.extensions.gradients import add_gradients, float_values
from tiered.graph import Model
from tiered.pipeline import Sequential
from tiered.support.amounts import counted
from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from tiered.graph import Value

MATRIX = 2
"""Weights of fewer axes, such as biases, are not listed unless they are named."""


@dataclass(frozen=True)
class Sensitivity:
    """How the outputs depend on one weight.

    With the loss L = |y|^2 / 2 of the float outputs y, g = dL/dw, as a mean over the samples.

    Attributes:
        name: the weight.
        node, op_type: the first node that reads it.
        shape: its shape.
        gradient: the norm |g|.
        effect: the norm |g * w|: by how much L changes if each element of w changes by a relative
            part, as a narrower dtype does; by which the weights are ordered.
        share: the effect as a part of the sum over all weights.
    """

    name: str
    node: str
    op_type: str
    shape: tuple[int, ...]
    gradient: float
    effect: float
    share: float = 0.0


def sensitivity(
    model: ModelLike | Model,
    feeds: Iterable[Mapping[str, Any]] = (),
    *,
    weights: Sequence[str] = (),
    stop_at: Sequence[str] = (),
    seed: int = 0,
) -> list[Sensitivity]:
    """Return the weights of a model, those that matter most for its outputs first.

    Args:
        model: a file, a ModelProto or a Model; it is not changed.
        feeds: samples, arrays by input; without any, one is made.
        weights: names, with wildcards; by default all float initializers of two and more axes.
        stop_at: labels of nodes and names of values that count as constants.
        seed: of the inputs that are made.

    Raises:
        UsageError: no weight or output is floating-point, or a name matches nothing.
        NoGradient: a node between has no gradient rule that applies.
        RuntimeFailure: onnxruntime does not run the model.
    """
    view = model.copy() if isinstance(model, Model) else _loaded(model)
    Sequential(["inline", "infer_shapes"])(view)
    outputs = [value for value in view.main.outputs if value.is_float]
    if weights:
        named = float_values(view, weights, "sensitivity")
        chosen = [value for value in named if value.is_initializer]
    else:
        floats = (value for value in view.main.initializers if value.is_float)
        chosen = [value for value in floats if (value.rank or 0) >= MATRIX]
    if not outputs or not chosen:
        raise UsageError(
            f"sensitivity: the model has {counted(len(outputs), 'float output')} and "
            f"{counted(len(chosen), 'float weight')} of two and more axes; expected at least one "
            "of each"
        )
    before = view.copy()
    gradients = add_gradients(view, outputs, chosen, seed="input", stop_at=stop_at)
    names = [value.name for value in gradients.outputs]
    sums = {name: np.zeros(2) for name in names}
    samples = list(feeds) or [run(before, seed=seed, all_values=True).feeds]
    for sample in samples:
        made = run(before, sample, seed=seed)
        # The gradient of |y|^2 / 2 with respect to y is y.
        seeds = {seed.name: made[value.name] for value, seed in gradients.seeds.items()}
        found = run(view, {**sample, **seeds}, seed=seed)
        for value, name in zip(chosen, names, strict=True):
            sums[name] += _norms(found[name], value)
    return _ordered(chosen, [sums[name] / len(samples) for name in names])


def _loaded(model: ModelLike) -> Model:
    return Model.from_proto(model) if isinstance(model, onnx.ModelProto) else Model.load(model)


def _norms(grad: np.ndarray[Any, Any], weight: Value) -> np.ndarray[Any, Any]:
    """Return the norms of the gradient, and of its product with the weight."""
    wide = grad.astype(np.float64)
    contents = None if weight.default is None else weight.default.dense().astype(np.float64)
    product = wide if contents is None else wide * contents
    return np.array([np.linalg.norm(wide), np.linalg.norm(product)])


def _ordered(weights: Sequence[Value], norms: Sequence[Any]) -> list[Sensitivity]:
    total = sum(float(effect) for _, effect in norms)
    rows = []
    for value, (gradient, effect) in zip(weights, norms, strict=True):
        reader = value.users[0].node if value.users else None
        node, op_type = (reader.label, reader.op_type) if reader is not None else ("", "")
        shape = value.static_shape or ()
        share = float(effect) / total if total else 0.0
        rows.append(
            Sensitivity(value.name, node, op_type, shape, float(gradient), float(effect), share)
        )
    return sorted(rows, key=lambda row: (-row.effect, row.name))
