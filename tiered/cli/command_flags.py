"""The options that the other commands share; `tiered optimize` does not load this file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from tiered.cli.commands.completion import complete_backend, complete_provider
from tiered.cli.declare import Declared
from tiered.cli.flags import (
    BackendName,
    Destination,
    Flag,
    InputShapes,
    Names,
    OptimizeOptions,
    Verbose,
    Writing,
)
from tiered.runtime.opening import CPU, RuntimeLevel


@dataclass(frozen=True, kw_only=True)
class WriteOptions(Writing, Destination):
    """The options of the commands that write one model, by passes of their own."""

    verify: Annotated[str | None, Declared(show_default=False)] = None
    """Compare what the model computes before and after, as for `tiered optimize`."""

    def with_passes(self, passes: str) -> OptimizeOptions:
        """Return the options of `tiered optimize` that run these passes."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return OptimizeOptions(passes=passes, **own)


@dataclass(frozen=True, kw_only=True)
class Runs:
    """How the commands that measure models run them."""

    inputs: Names = ()
    """Inputs: x.npy, feeds.npz or a folder; generated without any. Repeatable."""
    seed: int = 0
    """Seed of the generated inputs."""
    input_shape: InputShapes = ()
    """The shape of a generated input: x=1,3,224,224. The model keeps its own."""
    dim: Names = ()
    """The size of a dim of generated inputs, by its name: batch=1. The model keeps its own."""
    provider: Annotated[str, Declared(completer=complete_provider)] = CPU
    """The execution provider of onnxruntime, in full or short: cuda."""
    threads: int = 1
    """Threads that a node may use; 0 leaves the number to onnxruntime."""
    runtime_level: RuntimeLevel = "all"
    """Onnxruntime's own optimisations."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The options of the commands that print properties of a model."""

    input_shape: InputShapes = ()
    """As for `tiered optimize`."""
    dim: Names = ()
    """As for `tiered optimize`, by the name of a dim: batch=1."""
    json: Annotated[bool, Flag] = False
    """Print JSON instead of text."""
    verbose: Verbose = False
    """List everything, not only the first rows."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The target of `tiered check`, and the passes that may help."""

    backend: Annotated[str, Declared(completer=complete_backend)]
    """The target: a name that `tiered backends` lists, or a TOML file."""
    opt_level: Annotated[int, Declared(name=["--opt-level", "-O"])] = 2
    """The level of the passes that may replace unsupported nodes."""
    edit: Names = ()
    """Change the pipeline of the target: 'drop a', 'after a: b,c'. Repeatable."""
    html: Annotated[str | None, Declared(show_default=False)] = None
    """Write the report as a page, with all rows."""


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """The options of `tiered doctor`."""

    backend: BackendName = None
    """The target: a name that `tiered backends` lists, or a TOML file; any runtime by default."""
    opt_level: Annotated[int, Declared(name=["--opt-level", "-O"])] = 3
    """The level of the passes that are tried."""
    inputs: Names = ()
    """Samples, for what quantises: x.npy, feeds.npz or a folder; generated without any."""
    json: Annotated[bool, Flag] = False
    """Print JSON instead of text."""
    verbose: Verbose = False
    """List all reasons."""


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """The target of `tiered inspect`, and what else it shows."""

    backend: BackendName = None
    """Count the unsupported nodes of each operator on this target."""

    integers: bool = False
    """List the tensors that hold integers of few bits only: int3, uint5, bipolar."""

    html: Annotated[str | None, Declared(show_default=False)] = None
    """Write the report as a page, with all rows."""
