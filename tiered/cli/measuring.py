"""The options of the commands that measure models."""

from __future__ import annotations

from typing import Annotated, ClassVar

from tiered.cli.effects import Effect
from tiered.cli.line.candidates import complete_provider
from tiered.cli.line.declaration import Flags
from tiered.cli.shared_options import MADE, InputShapes, Names, Sampled
from tiered.runtime.opening import CPU, RuntimeLevel


class Runs(Sampled):
    """How the commands that measure models run them."""

    input_shape: InputShapes = ()
    """The shape of a generated input: x=1,3,224,224. The model keeps its own."""
    dim: Names = ()
    """The size of a dim of generated inputs, by its name: batch=1. The model keeps its own."""
    provider: Annotated[str, Flags(completes=complete_provider)] = CPU
    """The execution provider of onnxruntime, in full or short: cuda."""
    threads: int = 1
    """Threads that a node may use; 0 leaves the number to onnxruntime."""
    runtime_level: RuntimeLevel = "all"
    """Onnxruntime's own optimisations."""

    EFFECTS: ClassVar[tuple[Effect, ...]] = (
        Effect(("seed", "input_shape", "dim"), MADE, lambda of: not of("inputs")),
    )
