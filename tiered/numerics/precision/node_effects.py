"""How much each node matters for the outputs: by gradients, to rank what returns to float."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import numpy as np

from tiered.analysis.roles.masks import LARGEST
from tiered.graph import Model, Node
from tiered.numerics.calibration.calibrate import Feeds, SampledModel
from tiered.support.errors import RuntimeFailure, UsageError
from tiered.support.loading import extension

Array = np.ndarray[Any, Any]

Order = Literal["auto", "error", "sensitivity"]
"""What ranks the nodes that may return to float: their own error, or its effect on the outputs.

That is the effect by default, and the error where an operator has no gradient.
"""

_SAMPLES: Final = 4
"""So many samples are differentiated; each is a run of about three times the model."""


def effects_for(
    order: Order, model: Model, nodes: Iterable[Node], feeds: Sequence[Feeds]
) -> dict[Node, float] | None:
    """Return the effects of nodes as of `output_effects`; None if an order does not need them.

    Raises:
        UsageError: the order is by sensitivity, and an operator has no gradient.
        RuntimeFailure: it is, and onnxruntime does not run the model or its gradients.
    """
    if order == "error":
        return None
    try:
        return output_effects(model, nodes, feeds)
    except (RuntimeFailure, UsageError):  # also where the gradients are not installed
        if order == "sensitivity":
            raise
        return None


def output_effects(
    model: Model, nodes: Iterable[Node], feeds: Sequence[Feeds]
) -> dict[Node, float]:
    """Return by how much a relative error of 1 of each node's output moves the model's outputs.

    That is |g| * |y| / sqrt(n), with the n elements y of the node's output, and g the gradient of a
    random projection of the model's outputs, each divided by its norm; as a mean over the samples.
    The product with the relative error |e| / |y| of a node is the movement to expect of an error e
    whose elements do not depend on each other.

    Args:
        model: it is not changed; its types are known.
        nodes: those of the main graph with one output of floats have an effect.
        feeds: samples.

    Raises:
        UsageError: a node between has no gradient rule that applies.
        RuntimeFailure: onnxruntime does not run the model or its gradients.
    """
    chosen = [node for node in nodes if node.owner.is_main and node.output.is_float]
    view = model.copy()
    view.refresh_types()
    outputs = [value for value in view.main.outputs if value.is_float]
    targets = [view.main.values[node.output.name] for node in chosen]
    if not outputs or not targets:
        return {}
    rules = extension("gradients")
    try:
        made = rules.add_gradients(view, outputs, targets, seed="input")
    except rules.NoGradient as error:
        found = str(error).partition("; name it in stop_at")[0]
        raise UsageError(f"no order by sensitivity: {found}; use order=error") from error
    added = [value.name for value in made.outputs]
    names = {target.name for target in targets}
    sums: dict[str, float] = defaultdict(float)
    source = np.random.default_rng(0)
    with SampledModel.of(model) as exact, SampledModel.of(view) as running:
        for sample in feeds[:_SAMPLES]:
            results = exact.run(sample)
            fed = dict(sample)
            for each, seed in made.seeds.items():
                fed[seed.name] = _seed(results[each.name], source)
            norms = {name: _norm(array) for name, array in exact.stream(sample, names)}
            for name, array in running.stream(fed, added):
                sums[name] += _norm(array) / float(np.sqrt(max(array.size, 1)))
            for target, gradient in zip(targets, added, strict=True):
                sums[target.name] += norms[target.name] * sums.pop(gradient)
    count = len(feeds[:_SAMPLES])
    return {node: sums[node.output.name] / count for node in chosen}


def _seed(output: Array, source: np.random.Generator) -> Array:
    """Return random numbers for an output, divided by its norm."""
    wide = source.standard_normal(output.shape) / (_norm(output) or 1.0)
    return np.asarray(wide, output.dtype)


def _norm(array: Array) -> float:
    """Return the norm of the numbers that are no masks."""
    wide = array.astype(np.float64)
    return float(np.linalg.norm(wide[np.abs(wide) < LARGEST]))
