"""Find out what is wrong: compare models, blame one rewrite, cut out what shows it, shrink it.

The names below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiered.loading import load_later

if TYPE_CHECKING:
    from tiered.debug.blame import Bisection, Blame, bisect
    from tiered.debug.bundle import Bundle, Failure, Replay, load_bundle, replay
    from tiered.debug.judges import CommandJudge, Judge, OutputJudge, SameEnd
    from tiered.debug.layers import Layer, LayerComparison, layer_precision_compare
    from tiered.debug.models import ModelComparison, OutputRow, Trial, compare_models
    from tiered.debug.picture import layers_svg
    from tiered.debug.reduction import reduce_model
    from tiered.debug.reproducers import reproduce, write_reproducer
    from tiered.debug.runs import Subject

__all__ = [
    "Bisection",
    "Blame",
    "Bundle",
    "CommandJudge",
    "Failure",
    "Judge",
    "Layer",
    "LayerComparison",
    "ModelComparison",
    "OutputJudge",
    "OutputRow",
    "Replay",
    "SameEnd",
    "Subject",
    "Trial",
    "bisect",
    "compare_models",
    "layer_precision_compare",
    "layers_svg",
    "load_bundle",
    "reduce_model",
    "replay",
    "reproduce",
    "write_reproducer",
]

_HOME = {
    "blame": ("Bisection", "Blame", "bisect"),
    "bundle": ("Bundle", "Failure", "Replay", "load_bundle", "replay"),
    "judges": ("CommandJudge", "Judge", "OutputJudge", "SameEnd"),
    "layers": ("Layer", "LayerComparison", "layer_precision_compare"),
    "models": ("ModelComparison", "OutputRow", "Trial", "compare_models"),
    "picture": ("layers_svg",),
    "reduction": ("reduce_model",),
    "reproducers": ("reproduce", "write_reproducer"),
    "runs": ("Subject",),
}

if not TYPE_CHECKING:  # with a __getattr__ to fall back to, type checkers would take any name
    __getattr__, __dir__ = load_later(__name__, _HOME)
